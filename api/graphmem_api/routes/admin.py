"""Consolidation, its undoing, and upkeep."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query
from fastapi.responses import Response

from graphmem.domain.listing import Page
from graphmem.domain.proposals import Rollback, Run
from graphmem_api import guard, schemas
from graphmem_api.auth import Caller
from graphmem_api.facade import Memory as Facade
from graphmem_api.openapi import Responses

reading = APIRouter(route_class=guard.AdminReading, tags=["admin"])
writing = APIRouter(route_class=guard.AdminWriting, tags=["admin"])

RUNS = "/v1/admin/consolidations"
ONE = RUNS + "/{run_id:segment}"
FINISHED: Responses = {200: {"model": Run, "description": "The finished run (`wait=true`)."}}


@writing.post(
    RUNS, summary="Start a consolidation", status_code=202, response_model=schemas.RunAccepted, responses=FINISHED
)
async def start(caller: Caller, memory: Facade, body: schemas.ConsolidationIn) -> Response:
    """Consolidate one user or all of the tenant, or carry out proposals curated by hand."""
    outcome: Run | str = await memory.consolidations.start(
        caller.tenant,
        user_id=body.user_id,
        dry_run=body.dry_run,
        wait=body.wait,
        proposals=body.proposals,
        actor=caller.id,
    )
    if isinstance(outcome, Run):
        return Response(outcome.model_dump_json(), 200, media_type="application/json")
    return Response(schemas.RunAccepted(run_id=outcome).model_dump_json(), 202, media_type="application/json")


@reading.get(RUNS, summary="List consolidation runs", response_model=Page[Run])
async def page(
    caller: Caller,
    memory: Facade,
    user_id: Annotated[str | None, Query(max_length=255)] = None,
    limit: Annotated[int, Query(ge=1, le=200)] = 50,
    cursor: Annotated[str | None, Query(max_length=2000)] = None,
) -> Page[Run]:
    """List runs, the latest first, without their changes."""
    found: Page[Run] = await memory.consolidations.page(caller.tenant, user_id=user_id, limit=limit, cursor=cursor)
    return found


@reading.get(ONE, summary="Read a consolidation run", response_model=Run)
async def get(run_id: str, caller: Caller, memory: Facade) -> Run:
    """Read a run with its proposals and every change it made."""
    found: Run = await memory.consolidations.get(caller.tenant, run_id)
    return found


@writing.post(ONE + "/rollback", summary="Undo a consolidation run", response_model=Rollback)
async def rollback(run_id: str, caller: Caller, memory: Facade, body: schemas.RollbackIn | None = None) -> Rollback:
    """Restore what a run changed; 409 with the list when later writes touched it, unless forced."""
    force = body.force if body else False
    undone: Rollback = await memory.consolidations.rollback(caller.tenant, run_id, force=force, actor=caller.id)
    return undone


@writing.post("/v1/admin/maintenance", summary="Do upkeep now", response_model=schemas.MaintenanceOut)
async def maintain(caller: Caller, memory: Facade, body: schemas.MaintenanceIn) -> schemas.MaintenanceOut:
    """Decay, compress, prune and expire, as asked."""
    return schemas.MaintenanceOut(tasks=await memory.maintenance.run(caller.tenant, body.tasks))
