"""The HTTP API's application, and one for callers in the same process; the caller opens and closes the services."""

from __future__ import annotations

from fastapi import FastAPI
from starlette.types import ASGIApp, Receive, Scope, Send

from graphmem.app.bootstrap import Services
from graphmem.runtime.settings import Settings
from graphmem.tenants.access import ApiKey
from graphmem_api.dependencies import IN_PROCESS_CALLER
from graphmem_api.middleware import keep_path_encoded
from graphmem_api.openapi import SERVERS, TAGS, install_openapi, make_description, make_operation_id
from graphmem_api.routes import (
    admin,
    chats,
    context,
    docs,
    health,
    jobs,
    memories,
    messages,
    search,
    spaces,
    tenant,
    ui,
    user_data,
)
from graphmem_api.server import API_VERSION, NO_TELEMETRY, add_protected_routes, add_routes

ROUTERS = (
    health.public_router,
    health.metrics_router,
    ui.router,
    docs.router,
    memories.read_router,
    memories.write_router,
    memories.changes_router,
    search.entity_router,
    search.search_router,
    search.persona_router,
    messages.read_router,
    messages.write_router,
    messages.admin_router,
    jobs.read_router,
    jobs.write_router,
    context.router,
    context.write_router,
    chats.router,
    user_data.export_router,
    user_data.import_router,
    user_data.forget_router,
    user_data.users_router,
    spaces.read_router,
    spaces.write_router,
    tenant.key_read_router,
    tenant.key_router,
    admin.read_router,
    admin.write_router,
    tenant.read_router,
    tenant.write_router,
    tenant.webhook_router,
)
"""All routers of the API; their order decides between routes that match the same path."""


def create_app(services: Services, settings: Settings, local_secret: str | None = None) -> FastAPI:
    """Return the application over open services; `local_secret` authorises commands on this machine."""
    app = FastAPI(
        title="graphmem",
        summary="A memory service for agents.",
        description=make_description(),
        version=API_VERSION,
        servers=SERVERS,
        openapi_tags=TAGS,
        generate_unique_id_function=make_operation_id,
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,
        telemetry=NO_TELEMETRY,
    )
    add_protected_routes(app, services, settings, ROUTERS, local_secret)
    install_openapi(app)
    return app


def create_in_process_app(services: Services, settings: Settings) -> FastAPI:
    """Return an application for callers in the same process, without a server's protection from the network."""
    app = FastAPI(
        title="graphmem", version=API_VERSION, openapi_url=None, redirect_slashes=False, telemetry=NO_TELEMETRY
    )
    add_routes(app, services, settings, ROUTERS)
    return app


class InProcessApp:
    """An ASGI application for one caller in this process, who needs no key and has no limits."""

    def __init__(self, app: ASGIApp, caller: ApiKey) -> None:
        self._app = app
        self._caller = caller

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        keep_path_encoded(scope)
        await self._app({**scope, IN_PROCESS_CALLER: self._caller}, receive, send)
