"""The MCP server behind `/mcp`, built by its first request: its packages take half a second and 20 MB."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from importlib import import_module
from typing import TYPE_CHECKING, Self

from starlette.types import Receive, Scope, Send

from graphmem.app.bootstrap import Services
from graphmem.mcp.connection import Connection

if TYPE_CHECKING:
    from mcp.server.mcpserver import Context as ToolCall
    from mcp.server.streamable_http_manager import StreamableHTTPSessionManager

CONNECTION_KEY = "graphmem.connection"
"""Where the scope of a request holds its connection."""


class HttpSessions:
    """Answers the requests of the protocol, whose scope holds their connection."""

    def __init__(self, services: Services, max_body_bytes: int) -> None:
        self._services = services
        self._max_body_bytes = max_body_bytes
        self._running: asyncio.Task[None] | None = None
        self._manager: asyncio.Future[StreamableHTTPSessionManager] | None = None
        self._closing = asyncio.Event()

    @classmethod
    @asynccontextmanager
    async def open(cls, services: Services, max_body_bytes: int) -> AsyncIterator[Self]:
        """Open the sessions for `async with`; at its end their requests have ended."""
        sessions = cls(services, max_body_bytes)
        try:
            yield sessions
        finally:
            sessions._closing.set()
            if sessions._running is not None:
                await sessions._running

    async def handle(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request; the first one starts the server."""
        if self._manager is None:
            self._manager = asyncio.get_running_loop().create_future()
            self._running = asyncio.create_task(self._run(self._manager))
        manager = await asyncio.shield(self._manager)
        await manager.handle_request(scope, receive, send)

    async def _run(self, started: asyncio.Future[StreamableHTTPSessionManager]) -> None:
        """Run the server until the sessions are closed, in one task as its task group demands."""
        try:
            await asyncio.to_thread(import_module, "graphmem.mcp.server")
            manager = self._make_manager()
            async with manager.run():
                started.set_result(manager)
                await self._closing.wait()
        except Exception as error:
            if started.done():
                raise
            self._manager = None  # the next request tries again
            started.set_exception(error)

    def _make_manager(self) -> StreamableHTTPSessionManager:
        from mcp.server.transport_security import TransportSecuritySettings

        from graphmem.mcp.server import make_server

        async def get_services() -> Services:
            return self._services

        server = make_server(get_services, _request_connection)
        # Web pages cannot send a key, which every request needs: the protection against DNS rebinding is not needed.
        security = TransportSecuritySettings(enable_dns_rebinding_protection=False)
        server.streamable_http_app(
            stateless_http=True,
            json_response=True,
            max_request_body_size=self._max_body_bytes,
            transport_security=security,
        )
        return server.session_manager


def _request_connection(call: ToolCall) -> Connection:
    request = call.request_context.request
    assert request is not None
    connection: Connection = request.scope[CONNECTION_KEY]
    return connection
