"""Serving users by streamable HTTP: `/mcp` for a key that is bound to one user, `/mcp/<user>` for any other."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from urllib.parse import unquote_to_bytes

from mcp.server.mcpserver import Context as ToolCall
from mcp.server.transport_security import TransportSecuritySettings
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from graphmem.bootstrap import GraphMemory
from graphmem.errors import GraphmemError, InvalidInput, Unauthenticated
from graphmem.mcp.connection import Connection, resolve_connection
from graphmem.mcp.server import make_server
from graphmem.settings import Settings

MCP_PATH = "/mcp"
_CONNECTION_KEY = "graphmem.connection"


@asynccontextmanager
async def mount(app: Starlette, memory: GraphMemory, settings: Settings) -> AsyncIterator[None]:
    """Serve the tools under `/mcp` of an application for as long as the context lasts.

    Each request stands for itself, so that any process can answer it and a revoked key is out at once. The application
    must answer errors of graphmem, as the HTTP API does.
    """

    async def get_memory() -> GraphMemory:
        return memory

    server = make_server(get_memory, _request_connection)
    # Every request carries a key, which a page in a browser does not have: no list of hosts is needed.
    security = TransportSecuritySettings(enable_dns_rebinding_protection=False)
    server.streamable_http_app(
        stateless_http=True,
        json_response=True,
        max_request_body_size=settings.max_body_bytes,
        transport_security=security,
    )
    authenticated = McpAuthMiddleware(memory, server.session_manager.handle_request)
    routes = [Route(path, authenticated, methods=["POST"]) for path in (MCP_PATH, MCP_PATH + "/{user_id:path}")]
    async with server.session_manager.run():
        app.router.routes.extend(routes)
        try:
            yield
        finally:
            for route in routes:
                app.router.routes.remove(route)


def make_app(memory: GraphMemory, settings: Settings) -> Starlette:
    """Return an application that serves the tools alone; it neither opens nor closes the memory."""

    def lifespan(app: Starlette) -> AbstractAsyncContextManager[None]:
        return mount(app, memory, settings)

    return Starlette(exception_handlers={GraphmemError: _problem_response}, lifespan=lifespan)


class McpAuthMiddleware:
    """Lets a request in when its key opens the user it is for."""

    def __init__(self, memory: GraphMemory, inner: ASGIApp) -> None:
        self._memory = memory
        self._inner = inner

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve a request; raise Unauthenticated or Forbidden."""
        key = await self._memory.keys.authenticate(_read_bearer_token(Request(scope)))
        scope.setdefault("state", {})["caller"] = key
        scope[_CONNECTION_KEY] = resolve_connection(key, _user_id_in_path(scope))
        await self._inner(scope, receive, send)


def _request_connection(call: ToolCall) -> Connection:
    request = call.request_context.request
    assert request is not None
    found: Connection = request.scope[_CONNECTION_KEY]
    return found


def _read_bearer_token(request: Request) -> str:
    scheme, _, secret = request.headers.get("authorization", "").partition(" ")
    if scheme.lower() != "bearer" or not secret.strip():
        raise Unauthenticated("Send a key as `Authorization: Bearer <key>`.")
    return secret.strip()


def _user_id_in_path(scope: Scope) -> str | None:
    """Return the user named behind `/mcp/`, from the address as it was sent: a user id may hold a slash."""
    sent = scope["raw_path"].split(b"?", 1)[0].removesuffix(b"/")
    before, _, last = sent.rpartition(b"/")
    if last == b"mcp" and not before.endswith(b"/mcp"):
        return None
    try:
        return unquote_to_bytes(last).decode()
    except UnicodeDecodeError as error:
        raise InvalidInput("The user in the address is not percent-encoded UTF-8.") from error


async def _problem_response(_: Request, error: Exception) -> Response:
    """Return an error as a problem document."""
    assert isinstance(error, GraphmemError)
    headers = {"WWW-Authenticate": "Bearer"} if isinstance(error, Unauthenticated) else {}
    if error.retry_after is not None:
        headers["Retry-After"] = str(error.retry_after)
    document = {"title": error.title, "status": error.status, "detail": error.detail}
    return JSONResponse(document, error.status, headers=headers, media_type="application/problem+json")
