"""MCP over streamable HTTP: `/mcp` for a key that is bound to one user, `/mcp/<user>` for any other."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from importlib import import_module
from typing import TYPE_CHECKING, Self
from urllib.parse import unquote_to_bytes

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from graphmem.app.bootstrap import Services
from graphmem.runtime.errors import Forbidden, GraphmemError, InvalidInput
from graphmem.runtime.settings import Settings
from graphmem.runtime.validation import PROBLEM_MEDIA_TYPE, problem_document, problem_headers
from graphmem.tenants.access import ApiKey, parse_bearer_token
from graphmem.tenants.owners import make_owner

if TYPE_CHECKING:
    from mcp.server.mcpserver import Context as ToolCall
    from mcp.server.streamable_http_manager import StreamableHTTPSessionManager

    from graphmem.client import AsyncClient
    from graphmem.mcp.tools import UserMemory

CONNECTION_KEY = "graphmem.connection"
"""The scope key of a request's connection: the client and its user."""

MakeClient = Callable[[ApiKey], "AsyncClient"]
"""Returns a client of the application in this process that uses a key."""


class HttpSessions:
    """Serves MCP requests, whose scope holds their connection."""

    def __init__(self, services: Services, max_body_bytes: int) -> None:
        self._services = services
        self._max_body_bytes = max_body_bytes
        self._running: asyncio.Task[None] | None = None
        self._manager: asyncio.Future[StreamableHTTPSessionManager] | None = None
        self._closing = asyncio.Event()

    @classmethod
    @asynccontextmanager
    async def open(cls, services: Services, max_body_bytes: int) -> AsyncIterator[Self]:
        """Open the sessions for `async with`; all requests end when it exits."""
        sessions = cls(services, max_body_bytes)
        try:
            yield sessions
        finally:
            sessions._closing.set()
            if sessions._running is not None:
                await sessions._running

    async def handle(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve a request; the first one starts the MCP server."""
        if self._manager is None:
            self._manager = asyncio.get_running_loop().create_future()
            self._running = asyncio.create_task(self._run(self._manager))
        manager = await asyncio.shield(self._manager)
        await manager.handle_request(scope, receive, send)

    async def _run(self, started: asyncio.Future[StreamableHTTPSessionManager]) -> None:
        """Run the server until the sessions are closed, in a single task as its task group requires."""
        try:
            await asyncio.to_thread(import_module, "graphmem.mcp.server")
            manager = self._make_manager()
            async with manager.run():
                started.set_result(manager)
                await self._closing.wait()
        except Exception as error:
            if started.done():
                raise
            self._manager = None  # the next request retries
            started.set_exception(error)

    def _make_manager(self) -> StreamableHTTPSessionManager:
        from mcp.server.transport_security import TransportSecuritySettings

        from graphmem.mcp.server import MemoryServer

        server = MemoryServer(_request_connection, can_ask=self._services.answers.has_model)
        # Every request needs a key, which web pages cannot send, so protection against DNS rebinding is not needed.
        security = TransportSecuritySettings(enable_dns_rebinding_protection=False)
        server.streamable_http_app(
            stateless_http=True,
            json_response=True,
            max_request_body_size=self._max_body_bytes,
            transport_security=security,
        )
        return server.session_manager


def _request_connection(call: ToolCall) -> UserMemory:
    from graphmem.mcp.tools import UserMemory  # loads the MCP library, already loaded by the first request

    request = call.request_context.request
    assert request is not None
    client, user_id = request.scope[CONNECTION_KEY]
    return UserMemory(client, user_id)


MCP_PATH = "/mcp"


@asynccontextmanager
async def mount(app: Starlette, services: Services, settings: Settings, make_client: MakeClient) -> AsyncIterator[None]:
    """Serve the tools under `/mcp` of an application while the context lasts.

    Requests share no state, so that any process can answer any of them. The application must handle GraphmemError, as
    the HTTP API does.
    """
    async with HttpSessions.open(services, settings.max_body_bytes) as sessions:
        authenticated = McpAuthMiddleware(services, sessions.handle, make_client)
        routes = [Route(path, authenticated, methods=["POST"]) for path in (MCP_PATH, MCP_PATH + "/{user_id:path}")]
        app.router.routes.extend(routes)
        try:
            yield
        finally:
            for route in routes:
                app.router.routes.remove(route)


def make_app(services: Services, settings: Settings, make_client: MakeClient) -> Starlette:
    """Return an application that serves only the tools; the caller opens and closes the services."""

    def lifespan(app: Starlette) -> AbstractAsyncContextManager[None]:
        return mount(app, services, settings, make_client)

    return Starlette(exception_handlers={GraphmemError: _respond_to_error}, lifespan=lifespan)


class McpAuthMiddleware:
    """Accepts requests whose key has access to the user in the path."""

    def __init__(self, services: Services, inner: ASGIApp, make_client: MakeClient) -> None:
        self._services = services
        self._inner = inner
        self._make_client = make_client

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve a request; raise Unauthenticated, RateLimited or Forbidden."""
        request = Request(scope)
        token = parse_bearer_token(request.headers.get("authorization"))
        key = await self._services.keys.authenticate(token, request.client.host if request.client else "")
        scope.setdefault("state", {})["caller"] = key
        user_id = resolve_user(key, _user_id_in_path(scope))
        scope[CONNECTION_KEY] = self._make_client(key), user_id
        await self._inner(scope, receive, send)


def resolve_user(key: ApiKey, user_id: str | None) -> str:
    """Return the user in the path, or else the only user that the key is bound to.

    Raises Forbidden if the key has no access to the user, or if the path names no user and the key is not bound to
    exactly one; InvalidInput for an invalid id.
    """
    if user_id is None:
        if key.users is None or len(key.users) != 1:
            raise Forbidden("The key is not bound to exactly one user: name the user in the path, as in /mcp/<user>.")
        user_id = key.users[0]
    key.require_access(user_id)
    return make_owner(key.tenant, user_id).user_id


def _user_id_in_path(scope: Scope) -> str | None:
    """Return the user named after `/mcp/`, from the undecoded path, since a user id may contain a slash."""
    path = scope["raw_path"].split(b"?", 1)[0].removesuffix(b"/")
    before, _, last = path.rpartition(b"/")
    if last == b"mcp" and not before.endswith(b"/mcp"):
        return None
    try:
        return unquote_to_bytes(last).decode()
    except UnicodeDecodeError as error:
        raise InvalidInput("The user in the path is not percent-encoded UTF-8.") from error


async def _respond_to_error(request: Request, error: Exception) -> Response:
    """Return an error as a problem document."""
    assert isinstance(error, GraphmemError)
    document = problem_document(request.scope["path"], error.status, error.title, error.detail, error.errors)
    return JSONResponse(document, error.status, headers=problem_headers(error), media_type=PROBLEM_MEDIA_TYPE)
