"""Starting, joining and stopping the embedded Neo4j.

One server runs per data folder. Every process that uses it holds a lock which the kernel takes back when the process
ends; a supervisor process ends the server when no such lock is left (see `supervisor.py`).
"""

from __future__ import annotations

import asyncio
import sys
from asyncio.subprocess import DEVNULL
from pathlib import Path
from types import TracebackType
from typing import Self

import httpx
from neo4j import AsyncGraphDatabase, Query
from neo4j.exceptions import ClientError

from graphmem.artifacts import DownloadProgress
from graphmem.embedded import supervisor
from graphmem.embedded.distribution import neo4j_jars
from graphmem.embedded.home import NEO4J_USER, Neo4jHome, ServerInfo, choose_ports
from graphmem.embedded.java import argument_file, find_java, server_arguments
from graphmem.errors import ConfigurationError
from graphmem.file_lock import FileLock, wait_until
from graphmem.resources import cypher_root

_INITIAL_PASSWORD = "neo4j"
_READY_TIMEOUT_SECONDS = 180
_STOP_TIMEOUT_SECONDS = 90
_POLL_SECONDS = 0.2


class EmbeddedNeo4j:
    """This process's use of the server of one data folder; `info` tells how to reach it."""

    def __init__(self, home: Neo4jHome, users: FileLock, info: ServerInfo) -> None:
        self._home = home
        self._users_lock = users
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
        progress: DownloadProgress | None = None,
        detached: bool = False,
    ) -> Self:
        """Use the server of `data_dir`, starting it if it does not run.

        Ports of 0 are chosen freely; a running server keeps its own. `detached` lets the server stay up until `stop`
        is called on its data folder. Raises ConfigurationError when the server cannot be had.
        """
        home = Neo4jHome.in_data_dir(data_dir)
        home.create_folders()
        async with FileLock(home.run_dir / supervisor.GATE_LOCK):
            users = FileLock(home.run_dir / supervisor.USERS_LOCK, shared=True)
            await users.acquire()
            try:
                home.ensure_password()
                if home.server_process() is None or home.supervisor_process() is None:
                    await _launch_supervisor(home, cache_dir, bolt_port, http_port, mirror, progress)
                info = await _wait_until_ready(home)
                await _ensure_password_works(info)
                if detached:
                    (home.run_dir / supervisor.DETACHED_FILE).touch()
            except BaseException:
                await _leave_server(home, users)
                raise
        return cls(home, users, home.info() or info)

    async def stop(self) -> None:
        """End this use; the last one to leave waits for the end of a server that is not detached."""
        if self._users_lock.is_held:
            async with FileLock(self._home.run_dir / supervisor.GATE_LOCK):
                await _leave_server(self._home, self._users_lock)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.stop()


async def status(data_dir: Path) -> ServerInfo | None:
    """Return the server of `data_dir` if it runs and answers."""
    info = Neo4jHome.in_data_dir(data_dir).info()
    return info if info and await _is_reachable(info) else None


async def stop(data_dir: Path) -> bool:
    """Stop the server of `data_dir`, whoever uses it, and wait for its end; say whether there was one."""
    home = Neo4jHome.in_data_dir(data_dir)
    if home.server_process() is None:
        return False
    async with FileLock(home.run_dir / supervisor.GATE_LOCK):
        await _stop_server(home)
    return True


async def _launch_supervisor(
    home: Neo4jHome,
    cache_dir: Path,
    bolt_port: int,
    http_port: int,
    mirror: str | None,
    progress: DownloadProgress | None,
) -> None:
    """Start a supervisor with a new server, or one for the server a killed supervisor left behind."""
    java = find_java()
    if home.server_process() is None:
        supervisor.clear_run_files(home.run_dir)
        bolt_port, http_port = choose_ports(bolt_port, http_port)
        home.check_space()
        jars = await neo4j_jars().fetch(cache_dir, mirror, progress)
        home.write_config(bolt_port, http_port)
        home.rotate_logs()
        arguments = argument_file(server_arguments(java, home.path, jars))
        (home.run_dir / supervisor.ARGUMENTS_FILE).write_text(arguments, encoding="utf-8")
    command = [
        sys.executable,
        "-P",
        supervisor.__file__,
        str(home.path),
        str(java.executable),
        str(bolt_port),
        str(http_port),
    ]
    with home.console_log.open("ab") as log:
        launcher = await asyncio.create_subprocess_exec(*command, stdin=DEVNULL, stdout=log, stderr=log)
        await launcher.wait()


async def _wait_until_ready(home: Neo4jHome) -> ServerInfo:
    """Wait until the server answers."""
    try:
        async with asyncio.timeout(_READY_TIMEOUT_SECONDS):
            while info := home.info():
                if await _is_reachable(info):
                    return info
                await asyncio.sleep(_POLL_SECONDS)
    except TimeoutError as error:
        raise ConfigurationError(
            f"Neo4j was not ready within {_READY_TIMEOUT_SECONDS} seconds: see {home.server_log}."
        ) from error
    raise ConfigurationError(f"Neo4j ended while it started: {home.last_error()}.")


async def _is_reachable(info: ServerInfo) -> bool:
    """Whether the server answers over HTTP, which it starts after everything else."""
    async with httpx.AsyncClient(trust_env=False) as client:
        try:
            return (await client.head(info.browser_url)).is_success
        except httpx.TransportError:
            return False


async def _ensure_password_works(info: ServerInfo) -> None:
    """Make sure that the kept password opens the server, setting it on a fresh one."""
    if await _can_log_in(info, info.password):
        return
    if not await _can_log_in(info, _INITIAL_PASSWORD):
        raise ConfigurationError(
            f"The password in {info.password_file} does not open the Neo4j data in {info.home}: "
            "put the right one into that file, or move the folder away to start empty."
        )
    text = (cypher_root() / "admin" / "set_password.cypher").read_text(encoding="utf-8")
    async with AsyncGraphDatabase.driver(info.uri, auth=(NEO4J_USER, _INITIAL_PASSWORD)) as driver:
        passwords = {"old": _INITIAL_PASSWORD, "new": info.password}
        await driver.execute_query(Query(text), passwords, database_="system")


async def _can_log_in(info: ServerInfo, password: str) -> bool:
    async with AsyncGraphDatabase.driver(info.uri, auth=(NEO4J_USER, password)) as driver:
        try:
            await driver.verify_connectivity()
        except ClientError as error:
            if (error.code or "").startswith("Neo.ClientError.Security."):
                return False
            raise
    return True


async def _leave_server(home: Neo4jHome, users: FileLock) -> None:
    """Give up a use, with the gate held; end the server if that was the last one."""
    users.release()
    alone = FileLock(home.run_dir / supervisor.USERS_LOCK)
    if alone.try_acquire():
        try:
            if not (home.run_dir / supervisor.DETACHED_FILE).exists():
                await _stop_server(home)
        finally:
            alone.release()


async def _stop_server(home: Neo4jHome) -> None:
    """End the server, with the gate held, through its supervisor or, if that was killed, directly."""
    if home.supervisor_process() is None:
        if process := home.server_process():
            await asyncio.to_thread(supervisor.terminate, process)
        supervisor.clear_run_files(home.run_dir)
        return
    (home.run_dir / supervisor.STOP_FILE).touch()
    try:
        async with asyncio.timeout(_STOP_TIMEOUT_SECONDS):
            await wait_until(lambda: home.supervisor_process() is None)
    except TimeoutError as error:
        raise ConfigurationError(
            f"Neo4j did not stop within {_STOP_TIMEOUT_SECONDS} seconds: see {home.server_log}."
        ) from error
