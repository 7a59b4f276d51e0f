"""Job stores under test: SQLite, and Postgres where the machine has its binaries."""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import AsyncExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

import psutil
import psycopg
import pytest

from graphmem.jobs.job import Job
from graphmem.jobs.runner import JobRunner
from graphmem.jobs.store import SQLITE_FILE, JobStore
from graphmem.jobs.worker import WorkerOptions
from graphmem.runtime.settings import Settings
from tests.conftest import require_program
from tests.forks import Fork, start_script
from tests.jobs.kinds import HANDOVER_PAUSES, HandleJob, handlers_of
from tests.system_packages import find_program

WORKER = Path(__file__).with_name("worker_process.py")


OpenRunner = Callable[..., Awaitable[JobRunner]]


async def get_job(runner: JobRunner, job_id: str) -> Job:
    """The job of that id, which there is."""
    return await runner.get(job_id)


async def wait_to_the_end(runner: JobRunner, job_id: str) -> Job:
    """Return a job when it is final, however often it waits."""
    async with asyncio.timeout(60):
        while (job := await runner.wait(job_id, 60)).waits_until:  # noqa: ASYNC110 - it polls a store
            await asyncio.sleep(0.05)
    return job


def free_port() -> int:
    """A TCP port of this machine that nothing listens on."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


class PostgresServer:
    """A private Postgres of the machine's own binaries, listening on 127.0.0.1 only."""

    def __init__(self, binaries: Path, folder: Path) -> None:
        self._binaries = binaries
        self._port = free_port()
        self._run: dict[str, Any] = {"cwd": folder, "stdout": subprocess.DEVNULL, "stderr": subprocess.STDOUT}
        self._options = ["-D", str(folder / "data"), "-h", "127.0.0.1", "-p", str(self._port), "-k", str(folder), "-F"]
        self._process: subprocess.Popen[bytes] | None = None
        if os.geteuid() == 0:  # Postgres refuses to run as root
            self._run |= {"user": "postgres", "group": "postgres", "extra_groups": []}
            shutil.chown(folder, "postgres", "postgres")
        initdb = [str(binaries / "initdb"), "-D", str(folder / "data"), "-A", "trust", "-U", "graphmem", "--no-sync"]
        subprocess.run(initdb, check=True, **self._run)

    @property
    def url(self) -> str:
        return f"postgresql://graphmem@127.0.0.1:{self._port}/postgres"

    def start(self) -> None:
        _wait_until(self._is_started)

    def _is_started(self) -> bool:
        if self._process is None or self._process.poll() is not None:  # refused while children of a killed one end
            self._process = subprocess.Popen([str(self._binaries / "postgres"), *self._options], **self._run)
        return self._answers()

    def stop(self) -> None:
        if self._process is not None:
            self._process.send_signal(signal.SIGINT)  # Postgres's fast shutdown: connected clients are cut off
            self._process.wait(60)
            self._process = None

    @contextmanager
    def frozen(self) -> Iterator[None]:
        """Stop the server and its backends without ending them."""
        assert self._process is not None
        server = psutil.Process(self._process.pid)
        processes = [server, *server.children(recursive=True)]
        for process in processes:
            with suppress(psutil.NoSuchProcess):  # a backend that has just ended
                process.suspend()
        try:
            yield
        finally:
            for process in processes:
                with suppress(psutil.NoSuchProcess):
                    process.resume()

    def kill(self) -> None:
        """End it as a crash would."""
        if self._process is not None:
            self._process.kill()
            self._process.wait(60)
            self._process = None

    def _answers(self) -> bool:
        try:
            psycopg.connect(self.url, connect_timeout=2).close()
        except psycopg.OperationalError:
            return False
        return True


def find_postgres() -> Path | None:
    """The folder of the binaries of the latest Postgres on this machine."""
    initdb = find_program("postgresql")
    return Path(initdb).parent if initdb else None


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[PostgresServer]:
    """A running private server."""
    binaries = Path(require_program("postgresql")).parent
    # Not below pytest's own folder, which every run closes to other users again.
    with tempfile.TemporaryDirectory(prefix="graphmem-postgres-") as folder:
        server = PostgresServer(binaries, Path(folder))
        server.start()
        yield server
        server.stop()


@pytest.fixture(scope="session")
def postgres(request: pytest.FixtureRequest) -> str:
    """The address of a Postgres: the one GRAPHMEM_TEST_POSTGRES_URL names, else a private one."""
    return os.environ.get("GRAPHMEM_TEST_POSTGRES_URL") or request.getfixturevalue("postgres_server").url


def _wait_until(condition: Callable[[], bool], seconds: float = 60.0) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            raise TimeoutError("waited in vain")
        time.sleep(0.05)


both_stores = pytest.mark.parametrize("settings", ["sqlite", "postgres"], indirect=True)
postgres_first = pytest.mark.parametrize(
    "settings", ["postgres", pytest.param("sqlite", marks=pytest.mark.long)], indirect=True
)
"""Runs a test of what both stores leave to the same queries on Postgres; most other tests run on SQLite."""


@pytest.fixture(scope="session")
def sqlite_store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The file of an empty job store, of which tests get copies: making its tables takes longer than many tests."""
    folder = tmp_path_factory.mktemp("jobs")
    JobStore.open(Settings(data_dir=folder)).close()
    return folder / SQLITE_FILE


@pytest.fixture(scope="session")
def postgres_store(postgres: str, tmp_path_factory: pytest.TempPathFactory) -> str:
    """The name of an empty job store on Postgres, of which tests get copies."""
    settings = _new_database(postgres, "template1", tmp_path_factory.mktemp("jobs"))
    JobStore.open(settings).close()
    assert settings.jobs_url
    return settings.jobs_url.rpartition("/")[2]


def _new_database(url: str, template: str, folder: Path) -> Settings:
    """Return settings with a new database, a copy of another one."""
    name = f"jobs_{uuid.uuid4().hex}"
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name} TEMPLATE {template}".encode())
    return Settings(data_dir=folder, jobs_url=url.rsplit("/", 1)[0] + f"/{name}")


@pytest.fixture
def settings(request: pytest.FixtureRequest, tmp_path: Path) -> Settings:
    """Settings with an empty job store: SQLite, unless the test asks for `both_stores`."""
    if getattr(request, "param", "sqlite") == "sqlite":
        shutil.copy(request.getfixturevalue("sqlite_store"), tmp_path)
        return Settings(data_dir=tmp_path)
    url, template = (request.getfixturevalue(name) for name in ("postgres", "postgres_store"))
    return _new_database(url, template, tmp_path)


@pytest.fixture
async def open_runner(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[OpenRunner]:
    """Opens runners on the job store under test, with a worker for those given functions; closes them at the end."""
    monkeypatch.setattr("graphmem.jobs.store.POLL_SECONDS", 0.05)
    async with AsyncExitStack() as opened:

        async def open_runner(functions: dict[str, HandleJob] | None = None, **changes: Any) -> JobRunner:
            runner = await opened.enter_async_context(await JobRunner.open(settings))
            if functions is not None:
                options: Any = {
                    "dead_worker_seconds": 2.0,
                    "retry_delays": (0.01, 0.01),
                    "database_pauses": (0.2,) * 100,
                    "handover_pauses": HANDOVER_PAUSES,
                    "model_pauses": (),
                    **changes,
                }
                await runner.start_worker(handlers_of(functions), WorkerOptions(**options))
            return runner

        yield open_runner


class WorkerSubprocess:
    """A worker in a separate process, and its journal with one line for each step it does."""

    def __init__(self, settings: Settings, folder: Path, name: str = "child") -> None:
        self.journal = folder / "journal"
        self.folder = folder
        where = [str(settings.data_dir), settings.jobs_url or "", str(folder)]
        self._arguments = [*where, name]
        self.process: Fork | None = None

    def start(self) -> Fork:
        self.process = start_script(WORKER, *self._arguments)
        return self.process

    def lines(self) -> list[str]:
        return self.journal.read_text().split() if self.journal.exists() else []

    def wait_for_line(self, line: str) -> None:
        _wait_until(lambda: line in self.lines())

    def stop(self) -> None:
        if self.process is not None and self.process.poll() is None:
            self.process.kill()
            self.process.wait()


@pytest.fixture
def worker_process(settings: Settings, tmp_path: Path) -> Iterator[WorkerSubprocess]:
    """A worker process, not yet started; killed at the end."""
    folder = tmp_path / "worker"
    folder.mkdir()
    worker = WorkerSubprocess(settings, folder)
    yield worker
    worker.stop()
