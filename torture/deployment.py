"""A whole installation on this machine: API, worker, embedded Neo4j and Postgres, as processes that can be killed."""

from __future__ import annotations

import asyncio
import os
import secrets
import signal
import subprocess
import sys
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import IO

import httpx
import psutil

from graphmem.neo4j.driver import Graph
from graphmem.neo4j.embedded.home import Neo4jHome
from graphmem.runtime.files import wait_until
from tests.jobs.conftest import PostgresServer, find_postgres, free_port

ROOT = Path(__file__).parents[1]

START_SECONDS = 120
"""Seconds in which an installation must be ready."""

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
        self._processes: dict[str, subprocess.Popen[bytes]] = {}
        self._log: IO[bytes] = (folder / "processes.log").open("ab")
        binaries = find_postgres()
        self.postgres: PostgresServer | None = None
        if binaries is not None:
            (folder / "postgres").mkdir()
            folder.chmod(0o755)
            self.postgres = PostgresServer(binaries, folder / "postgres")

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
        inherited = {name: value for name, value in os.environ.items() if not name.startswith(("GRAPHMEM_", "OPENAI_"))}
        postgres = {"GRAPHMEM_JOBS_URL": self.postgres.url} if self.postgres else {}
        return {
            **inherited,
            **postgres,
            "PYTHONPATH": os.pathsep.join([str(ROOT), str(ROOT / "api"), os.environ.get("PYTHONPATH", "")]),
            "GRAPHMEM_DATA_DIR": str(self.data_dir),
            "GRAPHMEM_API_KEY": self.key,
            "GRAPHMEM_NIGHTLY": "false",
            "OPENAI_API_KEY": "key",
            "OPENAI_BASE_URL": self._model_address,
            "GRAPHMEM_LLM_OUTPUT": "native",
            **self._settings,
        }

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
        self._processes[name] = subprocess.Popen(
            [sys.executable, "-c", "from graphmem.cli import main; main()", *command],
            cwd=self.folder,
            env=self.environment,
            stdout=self._log,
            stderr=self._log,
        )

    async def wait_until_ready(self) -> float:
        """Return the seconds until the API is ready; raise TimeoutError."""
        started = time.monotonic()
        async with httpx.AsyncClient(base_url=self.address, timeout=5) as client, asyncio.timeout(START_SECONDS):
            while True:
                with suppress(httpx.HTTPError):
                    if (await client.get("/readyz")).status_code == 200:
                        return time.monotonic() - started
                await asyncio.sleep(0.2)

    async def kill(self, target: str) -> None:
        """Kill a process by SIGKILL, and start it again as whoever runs it would; Neo4j has a supervisor for that."""
        if target == "neo4j":
            os.kill(self.neo4j_pid, signal.SIGKILL)
        elif target == "postgres":
            assert self.postgres
            await asyncio.to_thread(self.postgres.kill)
            await asyncio.to_thread(self.postgres.start)
        else:
            process = self._processes[target]
            process.kill()
            await asyncio.to_thread(process.wait)
            self.start_process(target)

    @property
    def neo4j_pid(self) -> int:
        """The process id of the embedded Neo4j."""
        state = Neo4jHome.in_data_dir(self.data_dir).run_files.read_state()
        assert state is not None, "the embedded Neo4j is not running"
        return state.pid

    def memory_mb(self) -> dict[str, float]:
        """Return the resident memory of each process in MB."""
        pids = {name: process.pid for name, process in self._processes.items()} | {"neo4j": self.neo4j_pid}
        found = {}
        for name, pid in pids.items():
            with suppress(psutil.NoSuchProcess):
                found[name] = psutil.Process(pid).memory_info().rss / 1e6
        return found

    @asynccontextmanager
    async def open_graph(self) -> AsyncIterator[Graph]:
        """Open a connection to the database."""
        home = Neo4jHome.in_data_dir(self.data_dir)
        state = home.run_files.read_state()
        assert state is not None, "the embedded Neo4j is not running"
        graph = Graph(f"bolt://127.0.0.1:{state.bolt_port}", "neo4j", home.password_file.read_text().strip())
        try:
            yield graph
        finally:
            await graph.close()

    async def stop(self) -> None:
        """End every process; Neo4j stops with its last user."""
        for process in self._processes.values():
            process.terminate()
        for process in self._processes.values():
            with suppress(subprocess.TimeoutExpired):
                await asyncio.to_thread(process.wait, 20)
            process.kill()
        if self.postgres:
            await asyncio.to_thread(self.postgres.stop)
        files = Neo4jHome.in_data_dir(self.data_dir).run_files
        with suppress(TimeoutError):
            async with asyncio.timeout(30):
                await wait_until(lambda: files.server_process() is None)
        self._log.close()


@asynccontextmanager
async def deployed(folder: Path, model_address: str, **settings: str) -> AsyncIterator[Deployment]:
    """Start an installation in an empty folder, and stop it at the end."""
    deployment = Deployment(folder, model_address, **settings)
    try:
        await deployment.start()
        yield deployment
    finally:
        await deployment.stop()
