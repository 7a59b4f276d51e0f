"""Whether the service lives and is ready, and its measures."""

from __future__ import annotations

from fastapi import APIRouter
from fastapi.responses import Response
from prometheus_client import CONTENT_TYPE_LATEST, REGISTRY, generate_latest

from graphmem_api import route_classes, schemas
from graphmem_api.dependencies import GraphMemoryDep
from graphmem_api.openapi import Responses, openapi_problem

public_router = APIRouter(tags=["health"])
metrics_router = APIRouter(route_class=route_classes.AdminReadRoute, tags=["health"])

UNAVAILABLE: Responses = {503: openapi_problem("A part the service stands on is away.", retry=True)}
PROMETHEUS_TEXT: Responses = {
    200: {"description": "Prometheus text.", "content": {"text/plain": {"schema": {"type": "string"}}}}
}


@public_router.get("/healthz", summary="Alive?", response_model=schemas.HealthOut)
async def healthz() -> schemas.HealthOut:
    """Answer while the process lives."""
    return schemas.HealthOut()


@public_router.get("/readyz", summary="Ready?", response_model=schemas.ReadinessOut, responses=UNAVAILABLE)
async def readyz(memory: GraphMemoryDep) -> schemas.ReadinessOut:
    """Answer when Neo4j and the job store do, else 503."""
    return schemas.ReadinessOut(parts=await memory.readiness.check())


@metrics_router.get("/metrics", summary="Measures for Prometheus", responses=PROMETHEUS_TEXT, response_class=Response)
async def metrics(memory: GraphMemoryDep) -> Response:
    """Write all measures of the process."""
    await memory.storage.measure()
    return Response(generate_latest(REGISTRY), media_type=CONTENT_TYPE_LATEST)
