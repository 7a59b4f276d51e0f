"""Starting, joining and stopping the embedded Neo4j.

One server runs per data folder. Every process that uses it holds a lock which the kernel takes back when the process
ends; a keeper process ends the server when no such lock is left (see `keeper.py`).
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

from graphmem.artifacts import Progress
from graphmem.embedded import keeper
from graphmem.embedded.distribution import neo4j_jars
from graphmem.embedded.home import USER, Home, ServerInfo, choose_ports
from graphmem.embedded.java import argument_file, find_java, server_arguments
from graphmem.errors import SetupError
from graphmem.file_lock import FileLock, until
from graphmem.resources import cypher_root

_FIRST_PASSWORD = "neo4j"
_READY_SECONDS = 180
_STOP_SECONDS = 90
_POLL_SECONDS = 0.2


class EmbeddedNeo4j:
    """This process's use of the server of one data folder; `info` tells how to reach it."""

    def __init__(self, home: Home, users: FileLock, info: ServerInfo) -> None:
        self._home = home
        self._users = users
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
        progress: Progress | None = None,
        detached: bool = False,
    ) -> Self:
        """Use the server of `data_dir`, starting it if it does not run.

        Ports of 0 are chosen freely; a running server keeps its own. `detached` lets the server stay up until `stop`
        is called on its data folder. Raises SetupError when the server cannot be had.
        """
        home = Home.of(data_dir)
        home.prepare()
        async with FileLock(home.run / keeper.GATE):
            users = FileLock(home.run / keeper.USERS, shared=True)
            await users.acquire()
            try:
                home.ensure_password()
                if home.server() is None or home.keeper() is None:
                    await _launch(home, cache_dir, bolt_port, http_port, mirror, progress)
                info = await _ready(home)
                await _ensure_log_in(info)
                if detached:
                    (home.run / keeper.DETACHED).touch()
            except BaseException:
                await _leave(home, users)
                raise
        return cls(home, users, home.info() or info)

    async def stop(self) -> None:
        """End this use; the last one to leave waits for the end of a server that is not detached."""
        if self._users.held:
            async with FileLock(self._home.run / keeper.GATE):
                await _leave(self._home, self._users)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.stop()


async def status(data_dir: Path) -> ServerInfo | None:
    """Return the server of `data_dir` if it runs and answers."""
    info = Home.of(data_dir).info()
    return info if info and await _answers(info) else None


async def stop(data_dir: Path) -> bool:
    """Stop the server of `data_dir`, whoever uses it, and wait for its end; say whether there was one."""
    home = Home.of(data_dir)
    if home.server() is None:
        return False
    async with FileLock(home.run / keeper.GATE):
        await _end(home)
    return True


async def _launch(
    home: Home, cache_dir: Path, bolt_port: int, http_port: int, mirror: str | None, progress: Progress | None
) -> None:
    """Start a keeper with a new server, or one for the server a killed keeper left behind."""
    java = find_java()
    if home.server() is None:
        keeper.forget(home.run)
        bolt_port, http_port = choose_ports(bolt_port, http_port)
        home.check_space()
        jars = await neo4j_jars().fetch(cache_dir, mirror, progress)
        home.configure(bolt_port, http_port)
        home.set_logs_aside()
        arguments = argument_file(server_arguments(java, home.path, jars))
        (home.run / keeper.ARGUMENTS).write_text(arguments, encoding="utf-8")
    command = [
        sys.executable,
        "-P",
        keeper.__file__,
        str(home.path),
        str(java.executable),
        str(bolt_port),
        str(http_port),
    ]
    with home.console_log.open("ab") as log:
        launcher = await asyncio.create_subprocess_exec(*command, stdin=DEVNULL, stdout=log, stderr=log)
        await launcher.wait()


async def _ready(home: Home) -> ServerInfo:
    """Wait until the server answers."""
    try:
        async with asyncio.timeout(_READY_SECONDS):
            while info := home.info():
                if await _answers(info):
                    return info
                await asyncio.sleep(_POLL_SECONDS)
    except TimeoutError as error:
        raise SetupError(f"Neo4j was not ready within {_READY_SECONDS} seconds: see {home.server_log}.") from error
    raise SetupError(f"Neo4j ended while it started: {home.last_words()}.")


async def _answers(info: ServerInfo) -> bool:
    """Whether the server answers over HTTP, which it starts after everything else."""
    async with httpx.AsyncClient(trust_env=False) as client:
        try:
            return (await client.head(info.browser_url)).is_success
        except httpx.TransportError:
            return False


async def _ensure_log_in(info: ServerInfo) -> None:
    """Make sure that the kept password opens the server, setting it on a fresh one."""
    if await _logs_in(info, info.password):
        return
    if not await _logs_in(info, _FIRST_PASSWORD):
        raise SetupError(
            f"The password in {info.password_file} does not open the Neo4j data in {info.home}: "
            "put the right one into that file, or move the folder away to start empty."
        )
    text = (cypher_root() / "admin" / "set_password.cypher").read_text(encoding="utf-8")
    async with AsyncGraphDatabase.driver(info.uri, auth=(USER, _FIRST_PASSWORD)) as driver:
        passwords = {"old": _FIRST_PASSWORD, "new": info.password}
        await driver.execute_query(Query(text), passwords, database_="system")


async def _logs_in(info: ServerInfo, password: str) -> bool:
    async with AsyncGraphDatabase.driver(info.uri, auth=(USER, password)) as driver:
        try:
            await driver.verify_connectivity()
        except ClientError as error:
            if (error.code or "").startswith("Neo.ClientError.Security."):
                return False
            raise
    return True


async def _leave(home: Home, users: FileLock) -> None:
    """Give up a use, with the gate held; end the server if that was the last one."""
    users.release()
    alone = FileLock(home.run / keeper.USERS)
    if alone.try_acquire():
        try:
            if not (home.run / keeper.DETACHED).exists():
                await _end(home)
        finally:
            alone.release()


async def _end(home: Home) -> None:
    """End the server, with the gate held, through its keeper or, if that was killed, directly."""
    if home.keeper() is None:
        if process := home.server():
            await asyncio.to_thread(keeper.end, process)
        keeper.forget(home.run)
        return
    (home.run / keeper.STOP).touch()
    try:
        async with asyncio.timeout(_STOP_SECONDS):
            await until(lambda: home.keeper() is None)
    except TimeoutError as error:
        raise SetupError(f"Neo4j did not stop within {_STOP_SECONDS} seconds: see {home.server_log}.") from error
