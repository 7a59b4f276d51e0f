"""API keys of a tenant."""

from __future__ import annotations

from fastapi import APIRouter

from graphmem.domain.api_key import ApiKeyIn, CreatedApiKey
from graphmem_api import route_classes, schemas
from graphmem_api.auth import Caller
from graphmem_api.dependencies import GraphMemoryDep

read_router = APIRouter(route_class=route_classes.AdminReadRoute, tags=["keys"])
write_router = APIRouter(route_class=route_classes.KeyWriteRoute, tags=["keys"])

KEYS_PATH = "/v1/admin/keys"


@write_router.post(KEYS_PATH, summary="Make a key", status_code=201, response_model=CreatedApiKey)
async def create(caller: Caller, memory: GraphMemoryDep, body: ApiKeyIn) -> CreatedApiKey:
    """Make a key; its secret is shown in this answer only."""
    created: CreatedApiKey = await memory.keys.create(caller.tenant, body)
    return created


@read_router.get(KEYS_PATH, summary="List keys", response_model=schemas.KeyList)
async def page(caller: Caller, memory: GraphMemoryDep) -> schemas.KeyList:
    """List the tenant's keys without their secrets, oldest first."""
    return schemas.KeyList(items=await memory.keys.list(caller.tenant))


@write_router.delete(KEYS_PATH + "/{key_id:segment}", summary="Revoke a key", status_code=204)
async def revoke(key_id: str, caller: Caller, memory: GraphMemoryDep) -> None:
    """Revoke a key at once."""
    await memory.keys.revoke(caller.tenant, key_id)
