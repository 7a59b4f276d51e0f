"""Serving one user over standard input and output, to the program that started this process."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Any

from mcp.server.mcpserver import MCPServer

from graphmem.bootstrap import GraphMemory
from graphmem.domain.identity import DEFAULT_TENANT, make_owner
from graphmem.mcp.connection import Connection
from graphmem.mcp.server import SERVER_NAME, make_server
from graphmem.settings import Settings


async def run_stdio(settings: Settings, user_id: str, tenant: str = DEFAULT_TENANT) -> None:
    """Serve the tools for one user until standard input ends; nothing else is written to standard output.

    The memory is opened in the background, since clients do not wait long for a server to greet them. What keeps it
    from being opened is told to whoever calls a tool, and tried again at the next call. Raises InvalidInput for a user
    id that cannot be one.
    """
    connection = Connection(make_owner(tenant, user_id), actor=SERVER_NAME)
    lazy_memory = LazyMemory(settings)
    await make_server(lazy_memory.get_memory, lambda _: connection, lazy_memory.lifespan).run_stdio_async()


class LazyMemory:
    """A memory that is being opened, is open or could not be opened."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._closing = asyncio.Event()
        self._opening_task: asyncio.Task[None]
        self._memory_future: asyncio.Future[GraphMemory]

    @asynccontextmanager
    async def lifespan(self, _: MCPServer[Any]) -> AsyncIterator[None]:
        """Open the memory while a server runs and close it after."""
        self._start()
        try:
            yield
        finally:
            self._closing.set()
            if not self._memory_future.done():
                self._opening_task.cancel()
            with suppress(asyncio.CancelledError):
                await self._opening_task

    async def get_memory(self) -> GraphMemory:
        """Return the memory once it is open; raise the error that kept it from being opened."""
        if self._opening_task.done():
            self._start()
        return await asyncio.shield(self._memory_future)

    def _start(self) -> None:
        self._memory_future = asyncio.get_running_loop().create_future()
        self._opening_task = asyncio.create_task(self._hold_open(self._memory_future))

    async def _hold_open(self, future: asyncio.Future[GraphMemory]) -> None:
        """Keep the memory open until the end, opened and closed by this one task."""
        try:
            async with GraphMemory.open(self._settings, worker=False) as memory:
                future.set_result(memory)
                await self._closing.wait()
        except Exception as error:
            if future.done():
                raise
            future.set_exception(error)
            future.exception()
