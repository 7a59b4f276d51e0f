"""Liveness, readiness and metrics."""

from __future__ import annotations

from typing import Literal

from fastapi import APIRouter
from fastapi.responses import Response
from prometheus_client import CONTENT_TYPE_LATEST, REGISTRY, generate_latest
from pydantic import BaseModel

from graphmem_api import route_classes
from graphmem_api.dependencies import ServicesDep
from graphmem_api.openapi import UNAVAILABLE_DESCRIPTION, Responses, openapi_problem


class HealthOut(BaseModel):
    """The process is alive."""

    status: Literal["ok"] = "ok"


class ReadinessOut(BaseModel):
    """The service is ready, dependency by dependency."""

    status: Literal["ready"] = "ready"
    parts: dict[str, str]


public_router = APIRouter(tags=["health"])
metrics_router = APIRouter(route_class=route_classes.AdminReadRoute, tags=["health"])

UNAVAILABLE: Responses = {503: openapi_problem(503, UNAVAILABLE_DESCRIPTION)}
PROMETHEUS_TEXT: Responses = {
    200: {"description": "Metrics as Prometheus text.", "content": {"text/plain": {"schema": {"type": "string"}}}}
}


@public_router.get("/healthz", summary="Liveness", operation_id="healthz")
async def healthz() -> HealthOut:
    """Answer as long as the process runs."""
    return HealthOut()


@public_router.get("/readyz", summary="Readiness", operation_id="readyz", responses=UNAVAILABLE)
async def readyz(services: ServicesDep) -> ReadinessOut:
    """Answer 200 when Neo4j and the job store are available, else 503."""
    return ReadinessOut(parts=await services.readiness.check())


@metrics_router.get(
    "/metrics", summary="Prometheus metrics", operation_id="metrics", responses=PROMETHEUS_TEXT, response_class=Response
)
async def metrics(services: ServicesDep) -> Response:
    """Return the metrics of this process."""
    await services.storage.measure()
    await services.jobs.measure()
    return Response(generate_latest(REGISTRY), media_type=CONTENT_TYPE_LATEST)
