"""The command line against the test database: in this process, or where that matters as a process of its own."""

from __future__ import annotations

import asyncio
import io
import json
import os
import re
import signal
import sys
import tempfile
import threading
import time
import traceback
import uuid
import warnings
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, cast

import pytest
from graphmem_api.app import create_app
from pydantic import SecretStr

from graphmem.app.bootstrap import Services
from graphmem.cli import main
from graphmem.cli.startup import RECORD_FILE, new_secret, record_server
from graphmem.models.embedder import Embedder
from graphmem.neo4j.driver import Graph
from graphmem.runtime.settings import Settings
from tests.api.conftest import serve_app
from tests.conftest import QUIET_WORKERS
from tests.forks import Fork, read_streams, start_command
from tests.model_server import ModelServer

GRAPHMEM = Path(sys.executable).with_name("graphmem")

LONG_RUNNING = frozenset({"serve", "worker", "mcp", "quickstart", "evaluate"})
"""Commands that set up the process in which they run, or that run jobs there whatever the server."""

WORKING = frozenset({"consolidate", "maintain", "reembed", "jobs", "ingest", "summarize", "placement"})
"""Commands that run jobs where no server is called; a process runs those of one service only."""


@dataclass(frozen=True)
class CommandResult:
    """The result of a command."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        """Standard output as JSON."""
        return json.loads(self.out)


@dataclass(frozen=True)
class Cli:
    """Runs `graphmem` in an empty folder with an environment of its own."""

    folder: Path
    environment: dict[str, str] = field(default_factory=dict)
    program: Path = GRAPHMEM
    """What is started as a process of its own."""

    async def start(self, *arguments: str, **environment: str) -> Process:
        """Start a command in a new process."""
        return await asyncio.create_subprocess_exec(
            self.program,
            *arguments,
            cwd=self.folder,
            env=self._variables(environment),
            stdin=PIPE,
            stdout=PIPE,
            stderr=PIPE,
        )

    async def __call__(self, *arguments: str, stdin: str = "", **environment: str) -> CommandResult:
        """Run a command to its end, in this process unless it runs jobs or serves."""
        if not LONG_RUNNING.intersection(arguments[:1]):
            variables = self._variables(environment)
            calls_server = "GRAPHMEM_URL" in variables or (self.folder / "data" / RECORD_FILE).exists()
            if calls_server or not WORKING.intersection(arguments):
                return await self.here(*arguments, stdin=stdin, **environment)
        with tempfile.TemporaryDirectory() as name:
            streams = Path(name)
            process = self.fork(arguments, streams, stdin, **environment)
            code = await asyncio.to_thread(process.wait)
            return CommandResult(code, *read_streams(name))

    async def here(self, *arguments: str, stdin: str = "", **environment: str) -> CommandResult:
        """Run a command to its end in this process, which runs no jobs meanwhile."""
        return await asyncio.to_thread(run_here, arguments, self._variables(environment), self.folder, stdin)

    def fork(self, arguments: Sequence[str], streams: Path, stdin: str = "", **environment: str) -> Fork:
        """Start a command in a process that need not import everything first; write its output to `out` and `err`."""
        (streams / "in").write_bytes(stdin.encode("utf-8", "surrogateescape"))
        return start_command(arguments, self._variables(environment), self.folder, streams)

    def _variables(self, environment: Mapping[str, str]) -> dict[str, str]:
        inherited = {name: value for name, value in os.environ.items() if not name.startswith(("GRAPHMEM_", "OPENAI_"))}
        return {**inherited, **QUIET_WORKERS, "COLUMNS": "200", **self.environment, **environment}


_process_state = threading.Lock()
"""Held while a command has the environment, the folder and the streams of the process to itself."""


def run_here(arguments: Sequence[str], variables: Mapping[str, str], folder: Path, stdin: str) -> CommandResult:
    """Run a command in a thread of this process, which has what it needs of a process for that time."""
    streams = [
        io.TextIOWrapper(io.BytesIO(stdin.encode("utf-8", "surrogateescape")), encoding="utf-8"),
        *(io.TextIOWrapper(io.BytesIO(), encoding="utf-8") for _ in range(2)),
    ]
    with _process_state, warnings.catch_warnings():
        left = dict(os.environ), Path.cwd(), sys.argv, (sys.stdin, sys.stdout, sys.stderr)
        sys.stdin, sys.stdout, sys.stderr = streams
        try:
            _take_over(variables, folder, ["graphmem", *arguments])
            main()
            code: Any = 0
        except SystemExit as ended:
            code = ended.code or 0
        except Exception:
            traceback.print_exc()
            code = 1
        finally:
            sys.stdin, sys.stdout, sys.stderr = left[3]
            _take_over(*left[:3])
    out, err = (_written(stream) for stream in streams[1:])
    return CommandResult(cast("int", code), out, err)


def _take_over(variables: Mapping[str, str], folder: Path, arguments: list[str]) -> None:
    changed = os.environ.get("TZ") != variables.get("TZ")
    os.environ.clear()
    os.environ.update(variables)
    if changed:
        time.tzset()
    os.chdir(folder)
    sys.argv = arguments


def _written(stream: io.TextIOWrapper) -> str:
    stream.flush()
    assert isinstance(stream.buffer, io.BytesIO)
    return stream.buffer.getvalue().decode()


@pytest.fixture
def cli_without_settings(tmp_path: Path) -> Cli:
    """The command line without any setting but an empty data folder."""
    return Cli(tmp_path, {"GRAPHMEM_DATA_DIR": str(tmp_path / "data")})


@pytest.fixture
def cli(cli_without_settings: Cli, database: Settings, graph: Graph) -> Cli:
    """The command line on the migrated test database."""
    return on_database(cli_without_settings, database)


def on_database(cli: Cli, database: Settings) -> Cli:
    """Return a command line with the address of a database."""
    assert database.neo4j_uri
    assert database.neo4j_password
    address = {
        "GRAPHMEM_NEO4J_URI": database.neo4j_uri,
        "GRAPHMEM_NEO4J_USER": database.neo4j_user,
        "GRAPHMEM_NEO4J_PASSWORD": database.neo4j_password.get_secret_value(),
    }
    return replace(cli, environment={**cli.environment, **address})


@pytest.fixture
def cli_with_models(cli: Cli, models: ModelServer) -> Cli:
    """The command line with vectors from the run's embedder and completions from `models`."""
    return replace(cli, environment={**cli.environment, **models.environment})


@asynccontextmanager
async def running(cli: Cli, *arguments: str, **environment: str) -> AsyncIterator[tuple[Fork, str]]:
    """Run a command that serves; yield its process and the address that it serves. It is killed if it still runs."""
    with tempfile.TemporaryDirectory() as name:
        process = cli.fork(arguments, Path(name), **environment)
        try:
            while not (served := re.search(r"serves (http://\S+)", _read_log(name))):
                assert process.returncode is None, f"it ended before it served: {_read_log(name)}"
                await asyncio.sleep(0.02)
            yield process, served[1]
        finally:
            process.kill()
            await asyncio.to_thread(process.wait)


@asynccontextmanager
async def serving(cli: Cli, log: list[str] | None = None) -> AsyncIterator[tuple[str, str]]:
    """Serve the data folder of a command line; yield the address and the secret of the server.

    What it writes is added to `log` in the end.
    """
    with tempfile.TemporaryDirectory() as name:
        process = cli.fork(("serve", "--port", "0"), Path(name))
        while process.poll() is None and "Started server" not in _read_log(name):  # noqa: ASYNC110 - a file
            await asyncio.sleep(0.02)
        record = cli.folder / "data" / RECORD_FILE
        assert record.stat().st_mode & 0o777 == 0o600
        recorded = json.loads(record.read_text())
        try:
            yield recorded["url"], recorded["secret"]
        finally:
            process.send_signal(signal.SIGTERM)
            await asyncio.to_thread(process.wait)
        assert recorded["secret"] not in _read_log(name)
        if log is not None:
            log.append(_read_log(name))
        assert not record.exists()


def _read_log(streams: str) -> str:
    log = Path(streams, "err")
    return log.read_text("utf-8") if log.exists() else ""


@pytest.fixture(scope="package")
async def server(
    database: Settings, graph: Graph, embedder: Embedder, _models: ModelServer, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[tuple[Settings, str, str]]:
    """The settings, the address and the secret of a server in this process, which has a model."""
    secret = new_secret()
    model = {"openai_base_url": _models.url, "openai_api_key": SecretStr("sk-test")}
    settings = database.model_copy(update={"data_dir": tmp_path_factory.mktemp("server"), **model})
    async with (
        Services.open(settings, embedder=embedder) as services,
        serve_app(create_app(services, settings, secret)) as address,
    ):
        yield settings, address, secret


@pytest.fixture
def served(cli_with_models: Cli, server: tuple[Settings, str, str], models: ModelServer) -> Iterator[tuple[str, str]]:
    """The address and the secret of the server, which commands find in the data folder."""
    settings, address, secret = server
    folder = cli_with_models.folder / "data"
    with record_server(settings.model_copy(update={"data_dir": folder}), address, secret):
        yield address, secret


@pytest.fixture
def user() -> str:
    """A user of this test alone."""
    return f"cli-{uuid.uuid4().hex[:12]}"
