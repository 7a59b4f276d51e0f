"""Statements that extraction has kept from the memories: list, release, drop."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query

from graphmem.ingestion.quarantined_statement import QuarantinedStatement, QuarantineQuery
from graphmem.memories.memory import SaveResult
from graphmem.runtime.paging import Page
from graphmem_api import route_classes
from graphmem_api.auth import Caller
from graphmem_api.dependencies import IdempotentRequestDep, ServicesDep

read_router = APIRouter(route_class=route_classes.AdminReadRoute, tags=["admin"])
write_router = APIRouter(route_class=route_classes.AdminWriteRoute, tags=["admin"])

QUARANTINE_PATH = "/v1/admin/quarantine"
STATEMENT_PATH = QUARANTINE_PATH + "/{statement_id:segment}"


@read_router.get(QUARANTINE_PATH, summary="List what is in quarantine", operation_id="quarantine_list")
async def page(
    caller: Caller, services: ServicesDep, query: Annotated[QuarantineQuery, Query()]
) -> Page[QuarantinedStatement]:
    """List statements that addressed the assistant instead of informing it, with the reason, the latest first."""
    return await services.quarantine.page(caller.tenant, query)


@write_router.post(STATEMENT_PATH + "/release", summary="Release a statement", operation_id="quarantine_release")
async def release(
    statement_id: str, caller: Caller, services: ServicesDep, request: IdempotentRequestDep
) -> SaveResult:
    """Save a statement as the memory that it would have been; the key is the actor in the memory's history."""
    return await services.quarantine.release(caller.tenant, statement_id, actor=caller.id, request=request)


@write_router.delete(STATEMENT_PATH, summary="Drop a statement", status_code=204, operation_id="quarantine_drop")
async def drop(statement_id: str, caller: Caller, services: ServicesDep) -> None:
    """Erase a statement from the quarantine; the message that it is from stays."""
    await services.quarantine.drop(caller.tenant, statement_id)
