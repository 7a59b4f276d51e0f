"""The command line as a process of its own, against the test database."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
import tempfile
import uuid
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from graphmem.cli.local_server import RECORD_FILE
from graphmem.neo4j.driver import Graph
from graphmem.runtime.settings import Settings
from tests.conftest import QUIET_WORKERS
from tests.forks import Fork, read_streams, start_command
from tests.model_server import ModelServer

GRAPHMEM = Path(sys.executable).with_name("graphmem")


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

    async def start(self, *arguments: str, **environment: str) -> Process:
        """Start a command in a new process."""
        return await asyncio.create_subprocess_exec(
            GRAPHMEM,
            *arguments,
            cwd=self.folder,
            env=self._variables(environment),
            stdin=PIPE,
            stdout=PIPE,
            stderr=PIPE,
        )

    async def __call__(self, *arguments: str, stdin: str = "", **environment: str) -> CommandResult:
        """Run a command to its end."""
        with tempfile.TemporaryDirectory() as name:
            streams = Path(name)
            process = self.fork(arguments, streams, stdin, **environment)
            code = await asyncio.to_thread(process.wait)
            return CommandResult(code, *read_streams(name))

    def fork(self, arguments: Sequence[str], streams: Path, stdin: str = "", **environment: str) -> Fork:
        """Start a command in a process that need not import everything first; write its output to `out` and `err`."""
        (streams / "in").write_bytes(stdin.encode("utf-8", "surrogateescape"))
        return start_command(arguments, self._variables(environment), self.folder, streams)

    def _variables(self, environment: Mapping[str, str]) -> dict[str, str]:
        inherited = {name: value for name, value in os.environ.items() if not name.startswith(("GRAPHMEM_", "OPENAI_"))}
        return {**inherited, **QUIET_WORKERS, "COLUMNS": "200", **self.environment, **environment}


@pytest.fixture
def cli_without_settings(tmp_path: Path) -> Cli:
    """The command line without any setting but an empty data folder."""
    return Cli(tmp_path, {"GRAPHMEM_DATA_DIR": str(tmp_path / "data")})


@pytest.fixture
def cli(cli_without_settings: Cli, database: Settings, graph: Graph) -> Cli:
    """The command line on the migrated test database."""
    assert database.neo4j_uri
    assert database.neo4j_password
    address = {
        "GRAPHMEM_NEO4J_URI": database.neo4j_uri,
        "GRAPHMEM_NEO4J_USER": database.neo4j_user,
        "GRAPHMEM_NEO4J_PASSWORD": database.neo4j_password.get_secret_value(),
    }
    return replace(cli_without_settings, environment={**cli_without_settings.environment, **address})


@pytest.fixture
def cli_with_models(cli: Cli, models: ModelServer) -> Cli:
    """The command line with vectors from the run's embedder and completions from `models`."""
    return replace(cli, environment={**cli.environment, **models.environment})


@asynccontextmanager
async def serving(cli: Cli) -> AsyncIterator[tuple[str, str]]:
    """Serve the data folder of a command line; yield the address and the secret of the server."""
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
        assert not record.exists()


def _read_log(streams: str) -> str:
    log = Path(streams, "err")
    return log.read_text("utf-8") if log.exists() else ""


@pytest.fixture
async def served(cli_with_models: Cli) -> AsyncIterator[tuple[str, str]]:
    """The address and the secret of a server on the data folder."""
    async with serving(cli_with_models) as server:
        yield server


@pytest.fixture
def user() -> str:
    """A user of this test alone."""
    return f"cli-{uuid.uuid4().hex[:12]}"
