"""MCP over standard input and output, for one user."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Any

from mcp.server.mcpserver import MCPServer

from graphmem.app.bootstrap import Services
from graphmem.app.warm_up import QUERY
from graphmem.mcp.connection import Connection
from graphmem.mcp.server import SERVER_NAME, make_server
from graphmem.runtime.errors import GraphmemError
from graphmem.runtime.progress import StartProgress
from graphmem.runtime.settings import Settings
from graphmem.tenants.owners import DEFAULT_TENANT, Owner, make_owner


async def run_stdio(settings: Settings, user_id: str, tenant: str = DEFAULT_TENANT) -> None:
    """Serve the tools for one user until standard input ends; only the protocol is written to standard output.

    The services are opened in the background, because clients wait only briefly for a server to start. When opening
    fails, tool calls report the error and the next call tries again. Raises InvalidInput for an unusable user id.
    """
    connection = Connection(make_owner(tenant, user_id), actor=SERVER_NAME)
    lazy_services = LazyServices(settings, connection.owner)
    await make_server(lazy_services.get, lambda _: connection, lazy_services.lifespan).run_stdio_async()


class LazyServices:
    """Services that are opened and warmed up for one user in the background."""

    def __init__(self, settings: Settings, owner: Owner) -> None:
        self._settings = settings
        self._owner = owner
        self._closing = asyncio.Event()
        self._opening: _Opening | None = None

    @asynccontextmanager
    async def lifespan(self, _: MCPServer[Any]) -> AsyncIterator[None]:
        """Open the services while a server runs, and close them after it."""
        self._opening = self._start()
        try:
            yield
        finally:
            self._closing.set()
            await self._opening.stop()

    async def get(self) -> Services:
        """Return the services once they are open; raise the error that prevented it."""
        if self._opening is None or self._opening.has_failed:
            self._opening = self._start()
        return await self._opening.wait()

    def _start(self) -> _Opening:
        return _Opening(self._settings, self._owner, self._closing)


class _Opening:
    """One attempt to open the services; one task opens them and, when `closing` is set, closes them."""

    def __init__(self, settings: Settings, owner: Owner, closing: asyncio.Event) -> None:
        self._settings = settings
        self._owner = owner
        self._closing = closing
        self._services: asyncio.Future[Services] = asyncio.get_running_loop().create_future()
        self._task = asyncio.create_task(self._hold_open())

    @property
    def has_failed(self) -> bool:
        """Whether the task has ended, which it does before `closing` only on an error."""
        return self._task.done()

    async def wait(self) -> Services:
        """Return the services once they are open; raise the error that prevented it."""
        return await asyncio.shield(self._services)

    async def stop(self) -> None:
        """Wait until the services are closed, or cancel opening them."""
        if not self._services.done():
            self._task.cancel()
        with suppress(asyncio.CancelledError):
            await self._task

    async def _hold_open(self) -> None:
        try:
            async with Services.open(
                self._settings, worker=False, progress=StartProgress.on_standard_error()
            ) as services:
                self._services.set_result(services)
                with suppress(GraphmemError):
                    await services.retrieval.search(self._owner, QUERY)
                await self._closing.wait()
        except Exception as error:
            if self._services.done():
                raise
            self._services.set_exception(error)
            # Retrieve the error, so that asyncio does not log it when no tool is called.
            self._services.exception()
