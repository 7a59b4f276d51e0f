"""Whether the service lives and is ready, and its measures."""

from __future__ import annotations

from fastapi import APIRouter
from fastapi.responses import Response
from prometheus_client import CONTENT_TYPE_LATEST, REGISTRY, generate_latest

from graphmem_api import guard, schemas
from graphmem_api.facade import Memory as Facade
from graphmem_api.openapi import Responses, problem_response

open_to_all = APIRouter(tags=["health"])
measures = APIRouter(route_class=guard.AdminReading, tags=["health"])

AWAY: Responses = {503: problem_response("A part the service stands on is away.", retry=True)}
TEXT: Responses = {200: {"description": "Prometheus text.", "content": {"text/plain": {"schema": {"type": "string"}}}}}


@open_to_all.get("/healthz", summary="Alive?", response_model=schemas.Health)
async def healthz() -> schemas.Health:
    """Answer while the process lives."""
    return schemas.Health()


@open_to_all.get("/readyz", summary="Ready?", response_model=schemas.Readiness, responses=AWAY)
async def readyz(memory: Facade) -> schemas.Readiness:
    """Answer when Neo4j and the job store do, else 503."""
    return schemas.Readiness(parts=await memory.readiness.check())


@measures.get("/metrics", summary="Measures for Prometheus", responses=TEXT, response_class=Response)
async def metrics(memory: Facade) -> Response:
    """Write all measures of the process."""
    await memory.contexts.measure()
    return Response(generate_latest(REGISTRY), media_type=CONTENT_TYPE_LATEST)
