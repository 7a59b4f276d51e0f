"""A `graphmem serve` process on 127.0.0.1 with a data folder of its own."""

from __future__ import annotations

import asyncio
import os
import secrets
import socket
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import httpx
import psutil
from pydantic import SecretStr

from graphmem.neo4j.embedded.home import Neo4jHome
from graphmem.neo4j.embedded.server import EmbeddedNeo4j
from graphmem.runtime.settings import Settings

ROOT = Path(__file__).parents[1]

RUN = "from graphmem.cli import main; main()"
"""Runs the command line of this checkout in an environment where another one may be installed."""

READY_SECONDS = 180
"""Seconds in which the server must be ready."""

STOP_SECONDS = 60
"""Seconds in which the server must have ended."""

POLL_SECONDS = 0.02
"""Seconds between two questions whether the server is ready."""


class ServerProcess:
    """The HTTP API and the embedded Neo4j of one data folder; `key` is an admin key, `settings` are further ones.

    `command` is the command that serves it, `worker` for a worker with its health routes; `root` is the checkout whose
    code it runs.
    """

    def __init__(
        self,
        data_dir: Path,
        python: Path = Path(sys.executable),
        settings: Mapping[str, str] | None = None,
        command: Sequence[str] = ("serve",),
        root: Path = ROOT,
    ) -> None:
        self.data_dir = data_dir
        self._settings = dict(settings or {})
        self._command = command
        self._root = root
        self.key = secrets.token_hex(16)
        self._python = python
        self._port = find_free_port()
        self._process: subprocess.Popen[bytes] | None = None
        self._log = data_dir.with_name(f"{data_dir.name}.log")

    @property
    def address(self) -> str:
        """The address of the API."""
        return f"http://127.0.0.1:{self._port}"

    @property
    def environment(self) -> dict[str, str]:
        """The environment of the process: of the caller only where downloads are, no model, no schedule."""
        return {
            **clean_environment(self._root),
            "GRAPHMEM_MAX_REQUESTS": "1000",  # all agents have one key, which may not take all places
            "GRAPHMEM_DATA_DIR": str(self.data_dir),
            "GRAPHMEM_ADMIN_KEY": self.key,
            "GRAPHMEM_NIGHTLY": "false",
            **self._settings,
        }

    @property
    def pids(self) -> dict[str, int]:
        """The process ids of the API and of Neo4j."""
        assert self._process is not None, "the server is not started"
        return {"API": self._process.pid, "Neo4j": find_neo4j(self.data_dir)}

    async def start(self) -> float:
        """Start the API, and Neo4j unless it runs; return the seconds until it was ready."""
        started = time.perf_counter()
        self._process = process = self._launch()
        async with httpx.AsyncClient(base_url=self.address, timeout=5, trust_env=False) as client:
            async with asyncio.timeout(READY_SECONDS):
                while True:
                    with suppress(httpx.HTTPError):
                        if (await client.get("/readyz")).status_code == 200:
                            return time.perf_counter() - started
                    if process.poll() is not None:
                        raise RuntimeError(f"graphmem serve has ended: {self._log.read_text()[-2000:]}")
                    await asyncio.sleep(POLL_SECONDS)

    def _launch(self) -> subprocess.Popen[bytes]:
        self.data_dir.mkdir(parents=True, exist_ok=True)
        with self._log.open("ab") as log:
            return subprocess.Popen(
                [str(self._python), "-c", RUN, *self._command, "--port", str(self._port)],
                cwd=self.data_dir.parent,
                env=self.environment,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )

    async def stop(self) -> None:
        """End the API; Neo4j stops with its last user."""
        if self._process is None:
            return
        self._process.terminate()
        try:
            await asyncio.to_thread(self._process.wait, STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            await asyncio.to_thread(self._process.wait)
        self._process = None

    def open_client(self, key: str | None = None) -> httpx.AsyncClient:
        """Return a client that sends a key, by default the admin key."""
        headers = {"Authorization": f"Bearer {key or self.key}"}
        return httpx.AsyncClient(base_url=self.address, headers=headers, timeout=600, trust_env=False)

    def memory_mb(self) -> dict[str, float]:
        """Return the resident memory of the API and of Neo4j in MB."""
        return {name: psutil.Process(pid).memory_info().rss / 1e6 for name, pid in self.pids.items()}


def find_neo4j(data_dir: Path) -> int:
    """Return the process id of the embedded Neo4j of a data folder, which runs."""
    state = Neo4jHome.in_data_dir(data_dir).run_files.read_state()
    assert state is not None, "the embedded Neo4j is not running"
    return state.pid


@asynccontextmanager
async def running_neo4j(data_dir: Path) -> AsyncIterator[Settings]:
    """Run the embedded Neo4j of a data folder during the block; yield settings that connect to it."""
    settings = Settings(_env_file=None, data_dir=data_dir)
    async with await EmbeddedNeo4j.start_or_join(data_dir, settings.cache_dir, mirror=settings.jar_mirror) as server:
        info = server.info
        connection = {"neo4j_uri": info.uri, "neo4j_user": info.user, "neo4j_password": SecretStr(info.password)}
        yield settings.model_copy(update=connection)


def clean_environment(root: Path = ROOT) -> dict[str, str]:
    """Return the environment without the settings of graphmem and of models, with a checkout on Python's path.

    Python may store the modules that it compiles, as it does for users: without that, every start compiles them again.
    """
    kept = ("GRAPHMEM_CACHE_DIR", "GRAPHMEM_JAR_MIRROR")
    inherited = {
        name: value
        for name, value in os.environ.items()
        if name in kept or not name.startswith(("GRAPHMEM_", "OPENAI_"))
    }
    inherited.pop("PYTHONDONTWRITEBYTECODE", None)
    paths = [str(root), str(root / "api"), *filter(None, [os.environ.get("PYTHONPATH")])]
    return {**inherited, "PYTHONPATH": os.pathsep.join(paths)}


def find_free_port() -> int:
    """Return a port of 127.0.0.1 that is free now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
