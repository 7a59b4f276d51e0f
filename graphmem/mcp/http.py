"""MCP over streamable HTTP: `/mcp` for a key that is bound to one user, `/mcp/<user>` for any other."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from urllib.parse import unquote_to_bytes

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from graphmem.app.bootstrap import Services
from graphmem.mcp.connection import resolve_connection
from graphmem.mcp.http_sessions import CONNECTION_KEY, HttpSessions
from graphmem.neo4j.availability import limit_database_time
from graphmem.runtime.errors import GraphmemError, InvalidInput
from graphmem.runtime.problems import PROBLEM_MEDIA_TYPE, problem_document, problem_headers
from graphmem.runtime.settings import Settings
from graphmem.tenants.bearer_token import parse_bearer_token

MCP_PATH = "/mcp"
DATABASE_SECONDS = 30.0
"""Seconds that the database may work for one request."""


@asynccontextmanager
async def mount(app: Starlette, services: Services, settings: Settings) -> AsyncIterator[None]:
    """Serve the tools under `/mcp` of an application while the context lasts.

    Requests share no state, so that any process can answer any of them. The
    application must handle GraphmemError, as the HTTP API does.
    """
    async with HttpSessions.open(services, settings.max_body_bytes) as sessions:
        authenticated = McpAuthMiddleware(services, sessions.handle)
        routes = [Route(path, authenticated, methods=["POST"]) for path in (MCP_PATH, MCP_PATH + "/{user_id:path}")]
        app.router.routes.extend(routes)
        try:
            yield
        finally:
            for route in routes:
                app.router.routes.remove(route)


def make_app(services: Services, settings: Settings) -> Starlette:
    """Return an application that serves the tools alone; it neither opens nor closes the services."""

    def lifespan(app: Starlette) -> AbstractAsyncContextManager[None]:
        return mount(app, services, settings)

    return Starlette(exception_handlers={GraphmemError: _respond_to_error}, lifespan=lifespan)


class McpAuthMiddleware:
    """Accepts requests whose key has access to the user in their path."""

    def __init__(self, services: Services, inner: ASGIApp) -> None:
        self._services = services
        self._inner = inner

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve a request; raise Unauthenticated, RateLimited or Forbidden."""
        request = Request(scope)
        token = parse_bearer_token(request.headers.get("authorization"))
        key = await self._services.keys.authenticate(token, request.client.host if request.client else "")
        scope.setdefault("state", {})["caller"] = key
        scope[CONNECTION_KEY] = resolve_connection(key, _user_id_in_path(scope))
        with limit_database_time(DATABASE_SECONDS):
            await self._inner(scope, receive, send)


def _user_id_in_path(scope: Scope) -> str | None:
    """Return the user named after `/mcp/`, from the undecoded path: a user id may hold a slash."""
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
