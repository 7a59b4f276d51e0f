"""Types of memories and entities that a tenant declares."""

from __future__ import annotations

from fastapi import APIRouter

from graphmem.memories.declared_types import DeclaredTypes, DeclaredTypesIn
from graphmem_api import route_classes
from graphmem_api.auth import Caller
from graphmem_api.dependencies import ServicesDep

read_router = APIRouter(route_class=route_classes.AdminReadRoute, tags=["admin"])
write_router = APIRouter(route_class=route_classes.AdminWriteRoute, tags=["admin"])

TYPES_PATH = "/v1/admin/types"


@read_router.get(TYPES_PATH, summary="Read the declared types", operation_id="types_get")
async def get_declared_types(caller: Caller, services: ServicesDep) -> DeclaredTypes:
    """Read the types of memories and entities that the tenant declared."""
    return await services.declared_types.get(caller.tenant)


@write_router.put(TYPES_PATH, summary="Declare types", operation_id="types_set")
async def set_declared_types(caller: Caller, services: ServicesDep, body: DeclaredTypesIn) -> DeclaredTypes:
    """Declare types of memories and entities; they replace those declared before, and empty lists remove them.

    Saves, filters and extraction accept them. Memories of a type that is no longer declared keep it.
    """
    return await services.declared_types.set(caller.tenant, body, caller.id)
