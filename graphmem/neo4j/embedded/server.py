"""Starts, joins and stops the embedded Neo4j, and checks that it answers.

One server runs per data folder. Every process that uses it holds a shared lock, which the kernel releases when the
process ends. A supervisor process restarts a server that has died, and stops it when no process holds the lock (see
`supervisor.py`). Every process that uses the server starts another supervisor when the supervisor has died.
"""

from __future__ import annotations

import asyncio
import itertools
import logging
import os
import sys
from asyncio.subprocess import DEVNULL
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import TracebackType
from typing import LiteralString, Self, cast

import httpx
import psutil
from neo4j import AsyncGraphDatabase, Query
from neo4j.exceptions import ClientError, DatabaseError, DriverError, Neo4jError

from graphmem.neo4j.embedded import supervisor
from graphmem.neo4j.embedded.distribution import argument_file, find_java, neo4j_jars, server_arguments
from graphmem.neo4j.embedded.home import NEO4J_USER, Neo4jHome, ServerInfo, choose_ports
from graphmem.runtime.errors import ConfigurationError
from graphmem.runtime.files import MIN_FREE_WHILE_STARTING, FileLock, cypher_root, free_bytes, wait_until
from graphmem.runtime.progress import StartProgress

_INITIAL_PASSWORD = "neo4j"
"""The password of a new Neo4j, which must be changed before use."""

_FAILED_DATABASE_CODES = ("Neo.DatabaseError.Transaction", "Neo.DatabaseError.Database")
"""Prefixes of the error codes with which a failed database refuses transactions."""

log = logging.getLogger(__name__)


async def is_reachable(info: ServerInfo) -> bool:
    """Return whether the server answers over HTTP, the last protocol that it starts."""
    # The address is plain HTTP: loading certificates for each request would take longer than many responses.
    async with httpx.AsyncClient(trust_env=False, verify=False) as client:
        try:
            return (await client.head(info.browser_url)).is_success
        except httpx.TransportError:
            return False


async def accepts_password(info: ServerInfo) -> bool:
    """Return whether the stored password works, setting it on a new server; False while the server does not answer.

    Raises ConfigurationError if the server rejects the password.
    """
    try:
        await _ensure_password_works(info)
    except (Neo4jError, DriverError, OSError) as error:
        log.debug("Neo4j is not ready: %s", error)
        return False
    return True


async def _ensure_password_works(info: ServerInfo) -> None:
    if await _can_log_in(info, info.password):
        return
    if not await _can_log_in(info, _INITIAL_PASSWORD):
        raise ConfigurationError(
            f"The password in {info.password_file} does not open the Neo4j data in {info.home}: "
            "write the right one to that file, or move the folder away to start with an empty database."
        )
    async with AsyncGraphDatabase.driver(info.uri, auth=(NEO4J_USER, _INITIAL_PASSWORD)) as driver:
        passwords = {"old": _INITIAL_PASSWORD, "new": info.password}
        await driver.execute_query(_admin_query("set_password"), passwords, database_="system")


def _admin_query(name: str) -> Query:
    text = (cypher_root() / "admin" / f"{name}.cypher").read_text(encoding="utf-8")
    return Query(cast("LiteralString", text))


async def has_failed_database(info: ServerInfo) -> bool:
    """Return whether the server reports that its database has failed."""
    query = _admin_query("check_database")
    async with (
        AsyncGraphDatabase.driver(info.uri, auth=(NEO4J_USER, info.password)) as driver,
        driver.session(database="neo4j") as session,
    ):
        try:
            await (await session.run(query)).consume()  # unlike a transaction function, it is not retried
        except DatabaseError as error:
            return (error.code or "").startswith(_FAILED_DATABASE_CODES)
        except (Neo4jError, DriverError, OSError):
            return False
    return False


async def _can_log_in(info: ServerInfo, password: str) -> bool:
    async with AsyncGraphDatabase.driver(info.uri, auth=(NEO4J_USER, password)) as driver:
        try:
            await driver.verify_connectivity()
        except ClientError as error:
            if (error.code or "").startswith("Neo.ClientError.Security."):
                return False
            raise
    return True


READY_TIMEOUT_SECONDS = 180
"""Seconds within which a launched server must answer while its process lives."""

_STOP_TIMEOUT_SECONDS = 90
"""Seconds within which the supervisor must stop the server; longer than the supervisor's own timeout."""

_LEAVE_TIMEOUT_SECONDS = 3
"""Seconds that the last process waits for the server to end; the supervisor stops it in any case."""

_SUPERVISOR_CHECK_SECONDS = 2.0
"""Seconds between checks that the supervisor runs."""

_CHECKS_OF_DATABASE = 5
"""Number of supervisor checks per check of the database."""

_HALTED_STATUSES = (psutil.STATUS_STOPPED, psutil.STATUS_TRACING_STOP, psutil.STATUS_ZOMBIE, psutil.STATUS_DEAD)
"""Statuses of a process that does not run until it is resumed or replaced."""

_POLL_SECONDS = 0.2
"""Seconds between requests to a starting server."""


@dataclass(frozen=True, slots=True)
class ServerOptions:
    """How to launch a server: its ports (0 for any free one), and where its jars are stored or downloaded from."""

    cache_dir: Path
    bolt_port: int = 0
    http_port: int = 0
    mirror: str | None = None
    progress: StartProgress = field(default_factory=StartProgress)


class EmbeddedNeo4j:
    """This process's use of a data folder's server; `info` says how to connect to it."""

    def __init__(self, home: Neo4jHome, users_lock: FileLock, info: ServerInfo, options: ServerOptions) -> None:
        self._home = home
        self._users_lock = users_lock
        self._options = options
        self._watch = asyncio.create_task(self._keep_running())
        self.info = info

    @classmethod
    async def start_or_join(
        cls,
        data_dir: Path,
        cache_dir: Path,
        *,
        bolt_port: int = 0,
        http_port: int = 0,
        mirror: str | None = None,
        progress: StartProgress | None = None,
        detached: bool = False,
    ) -> Self:
        """Use the server of `data_dir`, starting it if it does not run.

        A port of 0 means any free port; a running server keeps its ports. With `detached`, the server runs until
        `stop_server`. `progress` reports waits. Raises ConfigurationError if the server cannot be started or used.
        """
        progress = progress or StartProgress()
        options = ServerOptions(cache_dir, bolt_port, http_port, mirror, progress)
        home = Neo4jHome.in_data_dir(data_dir)
        home.create_folders()
        files = home.run_files
        if files.server_process() is None:
            home.check_space()
        async with _lifecycle_locked(home, progress):
            users_lock = FileLock(files.users_lock, shared=True)
            await users_lock.acquire()
            try:
                home.ensure_password()
                if files.stop_request.exists():  # the last user has left, and the server is still ending
                    async with progress.waiting_for("waiting for the previous Neo4j to stop"):
                        await _wait_for_supervisor_end(home)
                if files.supervisor_process() is None:
                    if files.server_process() is None:
                        files.detached.unlink(missing_ok=True)
                    await _launch_supervisor(home, options)
                async with progress.waiting_for(f"waiting for Neo4j, which starts in {home.path}"):
                    info = await _wait_until_ready(home)
                if detached:
                    files.detached.touch()
            except BaseException:
                await _leave_server(home, users_lock)
                raise
        return cls(home, users_lock, home.info() or info, options)

    async def stop(self) -> None:
        """Stop using the server; if no other process uses it and it is not detached, wait until it has stopped.

        A server that does not end within `_LEAVE_TIMEOUT_SECONDS` is stopped by its supervisor later.
        """
        self._watch.cancel()
        if not self._users_lock.is_held:
            return
        try:
            async with asyncio.timeout(_LEAVE_TIMEOUT_SECONDS), FileLock(self._home.run_files.lifecycle_lock):
                await _leave_server(self._home, self._users_lock)
        except TimeoutError:
            self._users_lock.release()
            log.info("Neo4j has not ended yet: its supervisor stops it")

    def is_running(self) -> bool:
        """Return whether the server's process exists and has not been stopped by a signal."""
        process = self._home.run_files.server_process()
        try:
            return process is not None and process.status() not in _HALTED_STATUSES
        except psutil.Error:
            return False

    async def _keep_running(self) -> None:
        """Replace a supervisor that was killed, and restart a server whose database has failed, until cancelled."""
        for number in itertools.count(1):
            await asyncio.sleep(_SUPERVISOR_CHECK_SECONDS)
            try:
                await self._replace_supervisor()
                if number % _CHECKS_OF_DATABASE == 0:
                    await self._restart_failed_database()
            except (ConfigurationError, OSError, psutil.Error) as error:
                log.warning("Neo4j is not kept running: %s", error)

    async def _replace_supervisor(self) -> None:
        files = self._home.run_files
        state = files.read_state()
        if state is None or files.supervisor_process() is not None:  # an orderly stop removes the state
            return
        options = replace(self._options, bolt_port=state.bolt_port, http_port=state.http_port)
        async with FileLock(files.lifecycle_lock):
            if files.read_state() == state:
                await _launch_supervisor(self._home, options)
                log.warning("Neo4j's supervisor was killed and has been replaced")

    async def _restart_failed_database(self) -> None:
        """Kill a server whose database refuses all transactions, as after a full disk; its supervisor restarts it."""
        if not self._home.has_space() or not await has_failed_database(self.info):
            return
        async with FileLock(self._home.run_files.lifecycle_lock):
            process = self._home.run_files.server_process()
            if process is not None and await has_failed_database(self.info):
                log.warning("Neo4j's database has failed; it is restarted")
                process.kill()  # it has nothing left to write, and may not end by itself
                await asyncio.to_thread(process.wait, _STOP_TIMEOUT_SECONDS)
                await _wait_until_ready(self._home)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.stop()


@asynccontextmanager
async def _lifecycle_locked(home: Neo4jHome, progress: StartProgress) -> AsyncIterator[None]:
    """Hold the lifecycle lock; meanwhile no other process starts, joins or stops the server."""
    lock = FileLock(home.run_files.lifecycle_lock)
    async with progress.waiting_for(f"waiting for another process, which starts or stops the Neo4j in {home.path}"):
        await lock.acquire()
    try:
        yield
    finally:
        lock.release()


async def find_server(data_dir: Path) -> ServerInfo | None:
    """Return the server of `data_dir`; None if it does not run or does not answer."""
    info = find_server_process(data_dir)
    return info if info and await is_reachable(info) else None


def find_server_process(data_dir: Path) -> ServerInfo | None:
    """Return the server of `data_dir` if its process runs, whether it answers or not."""
    return Neo4jHome.in_data_dir(data_dir).info()


async def stop_server(data_dir: Path) -> bool:
    """Stop the server of `data_dir`, even if it is in use, and wait until it ends; return whether it was running."""
    home = Neo4jHome.in_data_dir(data_dir)
    if home.run_files.server_process() is None and home.run_files.supervisor_process() is None:
        return False
    async with FileLock(home.run_files.lifecycle_lock):
        await _stop_server(home)
    return True


@asynccontextmanager
async def paused_server(data_dir: Path, cache_dir: Path, mirror: str | None = None) -> AsyncIterator[Neo4jHome]:
    """Keep the server of `data_dir` stopped, so that its files are complete.

    A server that was running is restarted on the same ports. No process can start or join it meanwhile. If this process
    is killed, the server's users restart it.
    """
    home = Neo4jHome.in_data_dir(data_dir)
    home.create_folders()
    files = home.run_files
    async with FileLock(files.lifecycle_lock):
        is_running = files.server_process() is not None or files.supervisor_process() is not None
        state, is_detached = files.read_state(), files.detached.exists()
        if state and is_running:
            await _stop_server(home)
            files.write_state(state)
            if is_detached:
                files.detached.touch()
        try:
            yield home
        finally:
            if state and is_running:
                await _launch_supervisor(home, ServerOptions(cache_dir, state.bolt_port, state.http_port, mirror))
                await _wait_until_ready(home)


async def _launch_supervisor(home: Neo4jHome, options: ServerOptions) -> None:
    """Start a supervisor that launches a server, or adopts the server that a killed supervisor left behind.

    The caller holds the lifecycle lock.
    """
    java = find_java()
    bolt_port, http_port = options.bolt_port, options.http_port
    home.run_files.stop_request.unlink(missing_ok=True)
    if home.run_files.server_process() is None:
        bolt_port, http_port = _choose_server_ports(home, options)
        home.check_space()
        jars = await neo4j_jars().fetch(options.cache_dir, options.mirror, options.progress.download)
        home.write_config(bolt_port, http_port)
        home.rotate_logs()
        arguments = argument_file(server_arguments(java, home.path, jars, options.cache_dir))
        home.run_files.arguments.write_text(arguments, encoding="utf-8")
    command = [sys.executable, "-P", "-m", supervisor.__name__, str(home.path), str(java.executable)]
    command += [str(bolt_port), str(http_port)]
    with home.console_log.open("ab") as log_file:
        launcher = await asyncio.create_subprocess_exec(
            *command, stdin=DEVNULL, stdout=log_file, stderr=log_file, env=_with_this_package(os.environ)
        )
        await launcher.wait()


def _choose_server_ports(home: Neo4jHome, options: ServerOptions) -> tuple[int, int]:
    """Return the ports to listen on: if possible those of a killed server, which its users still know."""
    killed = home.run_files.read_state()
    if killed and options.bolt_port in (0, killed.bolt_port) and options.http_port in (0, killed.http_port):
        with suppress(ConfigurationError):
            return choose_ports(killed.bolt_port, killed.http_port)
    return choose_ports(options.bolt_port, options.http_port)


def _with_this_package(environment: Mapping[str, str]) -> dict[str, str]:
    """Return an environment in which Python finds this process's `graphmem` package."""
    root = str(Path(__file__).parents[3])
    paths = [root, *filter(None, [environment.get("PYTHONPATH")])]
    return {**environment, "PYTHONPATH": os.pathsep.join(paths)}


async def _wait_until_ready(home: Neo4jHome) -> ServerInfo:
    """Return the server once it answers and its password works.

    Raises ConfigurationError if its process ends, the disk is full, the password does not match its data, or it takes
    more than `READY_TIMEOUT_SECONDS`.
    """
    try:
        async with asyncio.timeout(READY_TIMEOUT_SECONDS):
            while (info := home.info()) or home.run_files.supervisor_process():
                if info and await is_reachable(info) and await accepts_password(info):
                    return info
                if free_bytes(home.path) < MIN_FREE_WHILE_STARTING:
                    home.check_space()
                await asyncio.sleep(_POLL_SECONDS)
    except TimeoutError as error:
        raise ConfigurationError(
            f"Neo4j runs, but has not answered within {READY_TIMEOUT_SECONDS} seconds: try again when the machine is "
            f"less busy; its log is {home.server_log}."
        ) from error
    raise ConfigurationError(f"Neo4j ended while it started{home.last_words()}, remove the cause and start it again.")


async def _leave_server(home: Neo4jHome, users_lock: FileLock) -> None:
    """Stop using the server; stop it if no other process uses it. The caller holds the lifecycle lock."""
    users_lock.release()
    exclusive_lock = FileLock(home.run_files.users_lock)
    if exclusive_lock.try_acquire():
        try:
            if not home.run_files.detached.exists():
                await _stop_server(home)
        finally:
            exclusive_lock.release()


async def _stop_server(home: Neo4jHome) -> None:
    """Stop the server through its supervisor, or directly if that is dead. The caller holds the lifecycle lock."""
    files = home.run_files
    if files.supervisor_process() is None:
        if process := files.server_process():
            await asyncio.to_thread(supervisor.terminate, process)
        files.clear()
        return
    files.stop_request.touch()
    await _wait_for_supervisor_end(home)


async def _wait_for_supervisor_end(home: Neo4jHome) -> None:
    try:
        async with asyncio.timeout(_STOP_TIMEOUT_SECONDS):
            await wait_until(lambda: home.run_files.supervisor_process() is None)
    except TimeoutError as error:
        raise ConfigurationError(
            f"Neo4j did not stop within {_STOP_TIMEOUT_SECONDS} seconds: see {home.server_log}."
        ) from error
