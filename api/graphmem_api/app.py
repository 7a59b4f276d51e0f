"""The HTTP application: routes over a memory that somebody else opened and closes."""

from __future__ import annotations

from collections.abc import Iterable

from fastapi import APIRouter, FastAPI
from fastapi.telemetry import TelemetryConfig

from graphmem.bootstrap import GraphMemory
from graphmem.settings import Settings
from graphmem_api.middleware import RequestMiddleware
from graphmem_api.openapi import install_openapi
from graphmem_api.problems import add_exception_handlers
from graphmem_api.rate_limit import RateLimiter
from graphmem_api.routes import ROUTERS, health

API_VERSION = "1.0.0"
"""Version of what is promised to callers, not of the package."""


NO_TELEMETRY: TelemetryConfig = {"tracing": False, "metrics": False, "logs": False, "operation_spans": False}
"""FastAPI's own spans and logs hold query strings and refused input; `graphmem.tracing` has ours."""


def create_app(memory: GraphMemory, settings: Settings) -> FastAPI:
    """Return the application for an open memory; it neither opens nor closes it."""
    app = FastAPI(
        title="graphmem",
        summary="A memory service for agents.",
        description="Bi-temporal memories in a graph: saved, extracted, searched, looked back upon and undone.",
        version=API_VERSION,
        redoc_url=None,
        redirect_slashes=False,
        telemetry=NO_TELEMETRY,
    )
    _configure(app, memory, settings, ROUTERS)
    install_openapi(app)
    return app


def create_worker_app(memory: GraphMemory, settings: Settings) -> FastAPI:
    """Return an application that tells of a worker's health and measures, and does nothing else."""
    app = FastAPI(title="graphmem worker", version=API_VERSION, openapi_url=None, telemetry=NO_TELEMETRY)
    _configure(app, memory, settings, (health.public_router, health.metrics_router))
    return app


def _configure(app: FastAPI, memory: GraphMemory, settings: Settings, routers: Iterable[APIRouter]) -> None:
    app.state.memory = memory
    app.state.settings = settings
    app.state.rate_limiter = RateLimiter(settings.rate_limit, settings.cache_url)
    app.add_middleware(RequestMiddleware)
    add_exception_handlers(app)
    for router in routers:
        app.include_router(router)
