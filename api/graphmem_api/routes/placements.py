"""The graphs in which tenants live, and moves between them."""

from __future__ import annotations

from fastapi import APIRouter

from graphmem.jobs.job import Job
from graphmem.placement.models import DrainIn, PlacementIn, PlacementList
from graphmem.runtime.paging import Page
from graphmem_api import route_classes
from graphmem_api.auth import Caller
from graphmem_api.dependencies import ServicesDep

read_router = APIRouter(route_class=route_classes.AdminReadRoute, tags=["admin"])
write_router = APIRouter(route_class=route_classes.AdminWriteRoute, tags=["admin"])

PLACEMENTS_PATH = "/v1/admin/placements"


@read_router.get(PLACEMENTS_PATH, summary="List graphs and where the tenant lives", operation_id="placements_list")
async def list_placements(caller: Caller, services: ServicesDep) -> PlacementList:
    """List the graphs in which tenants may live, whether they answer, and in which of them the tenant lives."""
    return await services.placements.describe(caller)


@write_router.post(
    PLACEMENTS_PATH,
    summary="Move the tenant to another graph",
    operation_id="placements_move",
    status_code=202,
)
async def move(caller: Caller, services: ServicesDep, body: PlacementIn) -> Job:
    """Move everything of the tenant to another graph, while it is read and written; 409 where it is already."""
    return await services.placements.move(caller.tenant, body.graph)


@write_router.post(
    PLACEMENTS_PATH + "/{graph}/drain",
    summary="Move all tenants of a graph to another one",
    operation_id="placements_drain",
    status_code=202,
)
async def drain(graph: str, caller: Caller, services: ServicesDep, body: DrainIn) -> Page[Job]:
    """Move all tenants of a graph to another one; only for callers on the server's machine."""
    return Page(items=await services.placements.drain(caller, graph, body.to))
