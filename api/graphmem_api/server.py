"""Common parts of graphmem's HTTP servers: protection from the network, and the worker's application."""

from __future__ import annotations

from collections.abc import Iterable

import uvicorn
from fastapi import APIRouter, FastAPI
from fastapi.telemetry import TelemetryConfig
from limits import parse

from graphmem.app.bootstrap import Services
from graphmem.runtime.settings import Settings
from graphmem.tenants.keys import RateLimit
from graphmem_api.middleware import (
    IDLE_SECONDS,
    Admission,
    BodyDeadlineMiddleware,
    ImpatientHttpProtocol,
    RequestMiddleware,
)
from graphmem_api.problems import add_exception_handlers
from graphmem_api.routes import health

API_VERSION = "1.0.0"
"""Version of the HTTP API, independent of the version of the package."""

NO_TELEMETRY: TelemetryConfig = {"tracing": False, "metrics": False, "logs": False, "operation_spans": False}
"""Turns off FastAPI's own spans and logs, which quote query strings and input; `graphmem.runtime.tracing` has ours."""

SHUTDOWN_SECONDS = 5
"""Seconds given to requests in progress after the signal to stop."""


def create_worker_app(services: Services, settings: Settings) -> FastAPI:
    """Return an application with only the health and metrics routes of a worker."""
    app = FastAPI(title="graphmem worker", version=API_VERSION, openapi_url=None, telemetry=NO_TELEMETRY)
    add_protected_routes(app, services, settings, (health.public_router, health.metrics_router))
    return app


def add_protected_routes(
    app: FastAPI,
    services: Services,
    settings: Settings,
    routers: Iterable[APIRouter],
    local_secret: str | None = None,
) -> None:
    """Add routes behind a server's protection from its network; `local_secret` authorises commands on this machine."""
    app.state.local_secret = local_secret
    rate = parse(settings.rate_limit) if settings.rate_limit else None
    app.state.rate_limit = RateLimit(rate, f"The limit of this key is {rate}", settings.cache_url)
    app.state.admission = Admission(settings.max_requests)
    app.add_middleware(BodyDeadlineMiddleware, seconds=settings.body_timeout)
    app.add_middleware(RequestMiddleware)
    add_routes(app, services, settings, routers)


def add_routes(app: FastAPI, services: Services, settings: Settings, routers: Iterable[APIRouter]) -> None:
    """Add routes over open services."""
    app.state.services = services
    app.state.settings = settings
    add_exception_handlers(app)
    for router in routers:
        app.include_router(router)


def make_uvicorn_server(app: FastAPI, host: str, port: int) -> uvicorn.Server:
    """Return a server for an application, to run with `await server.serve()`; port 0 selects a free one."""
    return uvicorn.Server(
        uvicorn.Config(
            app,
            host=host,
            port=port,
            log_config=None,
            access_log=False,
            server_header=False,
            proxy_headers=False,
            http=ImpatientHttpProtocol,
            timeout_keep_alive=IDLE_SECONDS,
            timeout_graceful_shutdown=SHUTDOWN_SECONDS,
            lifespan="off",
        )
    )
