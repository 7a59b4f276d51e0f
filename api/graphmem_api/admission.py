"""A limit on the requests in progress, so that a crowd is refused at once instead of slowing everybody down."""

from __future__ import annotations

from http import HTTPStatus

from starlette.types import ASGIApp, Receive, Scope, Send

from graphmem.app.bootstrap import Services
from graphmem_api.problems import make_problem_response

RETRY_SECONDS = 1
"""Seconds after which a refused request may be sent again."""

_LIMITED_PATHS = ("/v1/", "/_admin/")
"""Paths whose requests count: not probes, which must answer under load, nor the streams of MCP and of models."""


class AdmissionMiddleware:
    """An ASGI middleware that answers 503 while `limit` requests are worked on; waiting for a job does not count."""

    def __init__(self, app: ASGIApp, limit: int, services: Services) -> None:
        self._app = app
        self._limit = limit
        self._services = services
        self._in_progress = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve or refuse one request."""
        if scope["type"] != "http" or not scope["path"].startswith(_LIMITED_PATHS):
            await self._app(scope, receive, send)
            return
        if self._in_progress - self._services.waiting.count >= self._limit:
            refusal = make_problem_response(
                scope["path"],
                HTTPStatus.SERVICE_UNAVAILABLE,
                "Unavailable",
                "The server has too many requests in progress: send this one again after the seconds in `Retry-After`.",
                headers={"Retry-After": str(RETRY_SECONDS)},
            )
            await refusal(scope, receive, send)
            return
        self._in_progress += 1
        try:
            await self._app(scope, receive, send)
        finally:
            self._in_progress -= 1
