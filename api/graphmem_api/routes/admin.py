"""Consolidation, its undoing, and maintenance."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query
from fastapi.responses import Response

from graphmem.domain.consolidation_models import ConsolidationRun, RollbackResult
from graphmem.domain.listing import Page
from graphmem_api import route_classes, schemas
from graphmem_api.auth import Caller
from graphmem_api.dependencies import GraphMemoryDep
from graphmem_api.openapi import Responses

read_router = APIRouter(route_class=route_classes.AdminReadRoute, tags=["admin"])
write_router = APIRouter(route_class=route_classes.AdminWriteRoute, tags=["admin"])

RUNS_PATH = "/v1/admin/consolidations"
RUN_PATH = RUNS_PATH + "/{run_id:segment}"
FINISHED: Responses = {200: {"model": ConsolidationRun, "description": "The finished run (`wait=true`)."}}


@write_router.post(
    RUNS_PATH, summary="Start a consolidation", status_code=202, response_model=schemas.RunAccepted, responses=FINISHED
)
async def start(caller: Caller, memory: GraphMemoryDep, body: schemas.ConsolidationIn) -> Response:
    """Consolidate one user or all of the tenant, or carry out proposals curated by hand."""
    outcome: ConsolidationRun | str = await memory.consolidations.start(
        caller.tenant,
        user_id=body.user_id,
        dry_run=body.dry_run,
        wait=body.wait,
        proposals=body.proposals,
        actor=caller.id,
    )
    if isinstance(outcome, ConsolidationRun):
        return Response(outcome.model_dump_json(), 200, media_type="application/json")
    return Response(schemas.RunAccepted(run_id=outcome).model_dump_json(), 202, media_type="application/json")


@read_router.get(RUNS_PATH, summary="List consolidation runs", response_model=Page[ConsolidationRun])
async def page(
    caller: Caller,
    memory: GraphMemoryDep,
    user_id: Annotated[str | None, Query(max_length=255)] = None,
    limit: Annotated[int, Query(ge=1, le=200)] = 50,
    cursor: Annotated[str | None, Query(max_length=2000)] = None,
) -> Page[ConsolidationRun]:
    """List runs, the latest first, without their changes."""
    found: Page[ConsolidationRun] = await memory.consolidations.page(
        caller.tenant, user_id=user_id, limit=limit, cursor=cursor
    )
    return found


@read_router.get(RUN_PATH, summary="Read a consolidation run", response_model=ConsolidationRun)
async def get(run_id: str, caller: Caller, memory: GraphMemoryDep) -> ConsolidationRun:
    """Read a run with its proposals and every change it made."""
    found: ConsolidationRun = await memory.consolidations.get(caller.tenant, run_id)
    return found


@write_router.post(RUN_PATH + "/rollback", summary="Undo a consolidation run", response_model=RollbackResult)
async def rollback(
    run_id: str, caller: Caller, memory: GraphMemoryDep, body: schemas.RollbackIn | None = None
) -> RollbackResult:
    """Restore what a run changed; 409 with the list when later writes touched it, unless forced."""
    force = body.force if body else False
    undone: RollbackResult = await memory.consolidations.rollback(caller.tenant, run_id, force=force, actor=caller.id)
    return undone


@write_router.post("/v1/admin/maintenance", summary="Run maintenance now", response_model=schemas.MaintenanceOut)
async def maintain(caller: Caller, memory: GraphMemoryDep, body: schemas.MaintenanceIn) -> schemas.MaintenanceOut:
    """Decay, compress, prune and expire, as asked."""
    return schemas.MaintenanceOut(tasks=await memory.maintenance.run(caller.tenant, body.tasks))
