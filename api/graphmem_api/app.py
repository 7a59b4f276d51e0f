"""The HTTP application of the API; the services are opened and closed by the caller."""

from __future__ import annotations

from fastapi import FastAPI

from graphmem.app.bootstrap import Services
from graphmem.runtime.settings import Settings
from graphmem_api.openapi import install_openapi
from graphmem_api.openapi_texts import SERVERS, TAGS, make_description, make_operation_id
from graphmem_api.routers import ROUTERS
from graphmem_api.server import API_VERSION, NO_TELEMETRY, add_protected_routes, add_routes


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
    """Return an application for callers in the same process, without what protects a server from the network."""
    app = FastAPI(
        title="graphmem", version=API_VERSION, openapi_url=None, redirect_slashes=False, telemetry=NO_TELEMETRY
    )
    add_routes(app, services, settings, ROUTERS)
    return app
