"""A whole installation on this machine: API, worker, embedded Neo4j and Postgres, as processes that can be killed."""

from __future__ import annotations

import asyncio
import os
import secrets
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import psutil

from graphmem.neo4j.driver import Graph
from graphmem.neo4j.embedded.home import Neo4jHome
from graphmem.runtime.files import wait_until
from tests.jobs.conftest import PostgresServer, find_postgres, free_port
from torture.findings import Findings
from torture.processes import Processes, base_environment, wait_until_ready
from torture.stories import Check

TARGETS = ("api", "worker", "neo4j", "postgres")
"""What can be killed."""


class Deployment:
    """The processes of one installation in `folder`."""

    def __init__(self, folder: Path, model_address: str, **settings: str) -> None:
        self.folder = folder
        self.key = secrets.token_hex(16)
        self.port = free_port()
        self._settings = settings
        self._model_address = model_address
        self._processes = Processes(folder)
        binaries = find_postgres()
        self.postgres: PostgresServer | None = None
        if binaries is not None:
            self.postgres = make_postgres(binaries, folder)

    @property
    def targets(self) -> list[str]:
        """What can be killed here: without the binaries of Postgres, the job store is a file."""
        return [target for target in TARGETS if target != "postgres" or self.postgres is not None]

    @property
    def address(self) -> str:
        """The address of the API."""
        return f"http://127.0.0.1:{self.port}"

    @property
    def data_dir(self) -> Path:
        """The data folder."""
        return self.folder / "data"

    @property
    def environment(self) -> dict[str, str]:
        """The environment of every process."""
        return base_environment(
            GRAPHMEM_DATA_DIR=str(self.data_dir),
            GRAPHMEM_ADMIN_KEY=self.key,
            GRAPHMEM_NIGHTLY="false",
            OPENAI_API_KEY="key",
            OPENAI_BASE_URL=self._model_address,
            GRAPHMEM_LLM_OUTPUT="native",
            **({"GRAPHMEM_JOBS_URL": self.postgres.url} if self.postgres else {}),
            **self._settings,
        )

    async def start(self) -> None:
        """Start everything and wait until it is ready."""
        if self.postgres:
            await asyncio.to_thread(self.postgres.start)
        self.start_process("api")
        await self.wait_until_ready()
        self.start_process("worker")

    def start_process(self, name: str) -> None:
        """Start the API or the worker."""
        command = {"api": ["serve", "--no-worker", "--port", str(self.port)], "worker": ["worker"]}[name]
        self._processes.start_graphmem(name, command, self.environment)

    async def wait_until_ready(self) -> float:
        """Return the seconds until the API is ready; raise TimeoutError."""
        return await wait_until_ready(self.address)

    async def kill(self, target: str) -> None:
        """Kill a process by SIGKILL, and start it again as whoever runs it would; Neo4j has a supervisor for that."""
        if target == "neo4j":
            os.kill(self.neo4j_pid, signal.SIGKILL)
        elif target == "postgres":
            assert self.postgres
            await asyncio.to_thread(self.postgres.kill)
            await asyncio.to_thread(self.postgres.start)
        else:
            await self._processes.kill(target)
            self.start_process(target)

    @property
    def neo4j_pid(self) -> int:
        """The process id of the embedded Neo4j."""
        state = Neo4jHome.in_data_dir(self.data_dir).run_files.read_state()
        assert state is not None, "the embedded Neo4j is not running"
        return state.pid

    def memory_mb(self) -> dict[str, float]:
        """Return the resident memory of each process in MB."""
        found = self._processes.memory_mb()
        with suppress(psutil.NoSuchProcess):
            found["neo4j"] = psutil.Process(self.neo4j_pid).memory_info().rss / 1e6
        return found

    @property
    def keys(self) -> list[str]:
        """The key of the only tenant."""
        return [self.key]

    @property
    def notes(self) -> dict[str, str]:
        """What else is reported: nothing."""
        return {}

    async def begin_move(self, findings: Findings) -> Check | None:
        """Begin nothing: there is one graph."""
        return None

    @asynccontextmanager
    async def open_graphs(self) -> AsyncIterator[list[Graph]]:
        """Open a connection to the database."""
        home = Neo4jHome.in_data_dir(self.data_dir)
        state = home.run_files.read_state()
        assert state is not None, "the embedded Neo4j is not running"
        graph = Graph(f"bolt://127.0.0.1:{state.bolt_port}", "neo4j", home.password_file.read_text().strip())
        try:
            yield [graph]
        finally:
            await graph.close()

    async def stop(self) -> None:
        """End every process; Neo4j stops with its last user."""
        await self._processes.stop_all()
        if self.postgres:
            await asyncio.to_thread(self.postgres.stop)
        files = Neo4jHome.in_data_dir(self.data_dir).run_files
        with suppress(TimeoutError):
            async with asyncio.timeout(30):
                await wait_until(lambda: files.server_process() is None)


def make_postgres(binaries: Path, folder: Path) -> PostgresServer:
    """Return a Postgres whose data are in a folder; its user may enter the folder."""
    (folder / "postgres").mkdir()
    folder.chmod(0o755)
    return PostgresServer(binaries, folder / "postgres")


@asynccontextmanager
async def deployed(folder: Path, model_address: str, **settings: str) -> AsyncIterator[Deployment]:
    """Start an installation in an empty folder, and stop it at the end."""
    deployment = Deployment(folder, model_address, **settings)
    try:
        await deployment.start()
        yield deployment
    finally:
        await deployment.stop()
