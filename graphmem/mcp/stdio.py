"""Serving one user over standard input and output, to the program that started this process."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Any

from mcp.server.mcpserver import MCPServer

from graphmem.bootstrap import GraphMemory
from graphmem.domain.identity import DEFAULT_TENANT, owner_of
from graphmem.mcp.connection import Connection
from graphmem.mcp.server import NAME, make_server
from graphmem.settings import Settings


async def run_stdio(settings: Settings, user_id: str, tenant: str = DEFAULT_TENANT) -> None:
    """Serve the tools for one user until standard input ends; nothing else is written to standard output.

    The memory is opened in the background, since clients do not wait long for a server to greet them. What keeps it
    from being opened is told to whoever calls a tool, and tried again at the next call. Raises InvalidInput for a user
    id that cannot be one.
    """
    connection = Connection(owner_of(tenant, user_id), actor=NAME)
    opening = Opening(settings)
    await make_server(opening.memory, lambda _: connection, opening.lifespan).run_stdio_async()


class Opening:
    """A memory that is being opened, is open or could not be opened."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._closing = asyncio.Event()
        self._holder: asyncio.Task[None]
        self._opened: asyncio.Future[GraphMemory]

    @asynccontextmanager
    async def lifespan(self, _: MCPServer[Any]) -> AsyncIterator[None]:
        """Open the memory while a server runs and close it after."""
        self._start()
        try:
            yield
        finally:
            self._closing.set()
            if not self._opened.done():
                self._holder.cancel()
            with suppress(asyncio.CancelledError):
                await self._holder

    async def memory(self) -> GraphMemory:
        """Return the memory once it is open; raise the error that kept it from being opened."""
        if self._holder.done():
            self._start()
        return await asyncio.shield(self._opened)

    def _start(self) -> None:
        self._opened = asyncio.get_running_loop().create_future()
        self._holder = asyncio.create_task(self._hold(self._opened))

    async def _hold(self, opened: asyncio.Future[GraphMemory]) -> None:
        """Keep the memory open until the end, opened and closed by this one task."""
        try:
            async with GraphMemory.open(self._settings, worker=False) as memory:
                opened.set_result(memory)
                await self._closing.wait()
        except Exception as error:
            if opened.done():
                raise
            opened.set_exception(error)
            opened.exception()
