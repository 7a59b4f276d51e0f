"""Consolidation, rollback, maintenance and re-embedding."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query
from fastapi.responses import Response

from graphmem.consolidation.models import (
    ConsolidationIn,
    ConsolidationRun,
    MaintenanceIn,
    MaintenanceOut,
    RollbackIn,
    RollbackPreview,
    RollbackResult,
    RunAccepted,
    RunListQuery,
)
from graphmem.jobs.job import Job
from graphmem.models.embedding_models import EmbeddingStatus, ReembeddingIn
from graphmem.runtime.paging import Page
from graphmem.tenants.access import COMMAND_LINE
from graphmem_api import route_classes
from graphmem_api.dependencies import Caller, IdempotentRequestDep, ServicesDep
from graphmem_api.openapi import Responses

read_router = APIRouter(route_class=route_classes.AdminReadRoute, tags=["consolidation"])
write_router = APIRouter(route_class=route_classes.AdminWriteRoute, tags=["consolidation"])

RUNS_PATH = "/v1/admin/consolidations"
RUN_PATH = RUNS_PATH + "/{run_id:segment}"
FINISHED_RUN: Responses = {200: {"model": ConsolidationRun, "description": "The finished run (`wait=true`)."}}


@write_router.post(
    RUNS_PATH,
    summary="Start a consolidation",
    status_code=202,
    response_model=RunAccepted,
    responses=FINISHED_RUN,
)
async def start(
    caller: Caller, services: ServicesDep, body: ConsolidationIn, request: IdempotentRequestDep
) -> Response:
    """Consolidate one user, one space, or all of the tenant, or execute curated proposals."""
    if body.space is not None:
        await services.spaces.get(caller, body.space)
    outcome = await services.consolidations.start(
        caller.tenant,
        user_id=body.user_id,
        space=body.space,
        dry_run=body.dry_run,
        wait=body.wait,
        proposals=body.proposals,
        actor=caller.id,
        request=request,
    )
    if isinstance(outcome, ConsolidationRun):
        return Response(outcome.model_dump_json(), 200, media_type="application/json")
    return Response(RunAccepted(run_id=outcome).model_dump_json(), 202, media_type="application/json")


@read_router.get(RUNS_PATH, summary="List consolidation runs")
async def page(
    caller: Caller, services: ServicesDep, query: Annotated[RunListQuery, Query()]
) -> Page[ConsolidationRun]:
    """List runs, latest first, without their changes."""
    return await services.consolidations.page(caller.tenant, query)


@read_router.get(RUN_PATH, summary="Read a consolidation run")
async def get(run_id: str, caller: Caller, services: ServicesDep) -> ConsolidationRun:
    """Read a run with its proposals and all changes it made."""
    if caller.id == COMMAND_LINE:
        run_id = await services.consolidations.complete_id(caller.tenant, run_id)
    return await services.consolidations.get(caller.tenant, run_id)


@write_router.post(RUN_PATH + "/rollback", summary="Undo a consolidation run")
async def rollback(
    run_id: str, caller: Caller, services: ServicesDep, body: RollbackIn | None = None
) -> RollbackResult | RollbackPreview:
    """Restore what a run changed; 409 with a list of conflicts when later writes touched it, unless `force`.

    With `dry_run`, change nothing and return what would go back, come back and stay.
    """
    if body and body.dry_run:
        return await services.consolidations.preview_rollback(caller.tenant, run_id)
    force = body.force if body else False
    return await services.consolidations.rollback(caller.tenant, run_id, force=force, actor=caller.id)


@write_router.post("/v1/admin/maintenance", summary="Run maintenance now", operation_id="maintenance_run")
async def maintain(caller: Caller, services: ServicesDep, body: MaintenanceIn) -> MaintenanceOut:
    """Run the maintenance tasks given, or all: decay, compress, prune, expire."""
    return MaintenanceOut(tasks=await services.maintenance.run(caller.tenant, body.tasks))


@write_router.post(
    "/v1/admin/reembed",
    summary="Re-embed everything with another model",
    operation_id="reembedding_start",
    status_code=202,
)
async def reembed(caller: Caller, services: ServicesDep, body: ReembeddingIn | None = None) -> Job:
    """Replace all vectors by those of another model while searches continue; 409 if a re-embedding is running."""
    return await services.reembedding.start(caller.tenant, body.model if body else None)


@read_router.get(
    "/v1/admin/reembed",
    summary="Read the embedding model and the progress of a re-embedding",
    operation_id="reembedding_get",
)
async def embedding(_: Caller, services: ServicesDep) -> EmbeddingStatus:
    """Read the model of all vectors and the progress of a re-embedding."""
    return await services.reembedding.status()
