"""The application for callers in the same process, without what protects a server from the network."""

from __future__ import annotations

from starlette.types import ASGIApp, Receive, Scope, Send

from graphmem.tenants.access import ApiKey
from graphmem_api.auth import IN_PROCESS_CALLER
from graphmem_api.path_encoding import keep_path_encoded


class InProcessApp:
    """An ASGI application whose requests are all from one caller, who needs no key and has no limits."""

    def __init__(self, app: ASGIApp, caller: ApiKey) -> None:
        self._app = app
        self._caller = caller

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        keep_path_encoded(scope)
        await self._app({**scope, IN_PROCESS_CALLER: self._caller}, receive, send)
