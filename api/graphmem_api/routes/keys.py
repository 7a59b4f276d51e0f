"""API keys of a tenant."""

from __future__ import annotations

from fastapi import APIRouter

from graphmem.domain.key import CreatedKey, KeyIn
from graphmem_api import guard, schemas
from graphmem_api.auth import Caller
from graphmem_api.facade import Memory as Facade

reading = APIRouter(route_class=guard.AdminReading, tags=["keys"])
writing = APIRouter(route_class=guard.KeyWriting, tags=["keys"])

KEYS = "/v1/admin/keys"


@writing.post(KEYS, summary="Make a key", status_code=201, response_model=CreatedKey)
async def create(caller: Caller, memory: Facade, body: KeyIn) -> CreatedKey:
    """Make a key; its secret is shown in this answer only."""
    created: CreatedKey = await memory.keys.create(caller.tenant, body)
    return created


@reading.get(KEYS, summary="List keys", response_model=schemas.KeyList)
async def page(caller: Caller, memory: Facade) -> schemas.KeyList:
    """List the tenant's keys without their secrets, oldest first."""
    return schemas.KeyList(items=await memory.keys.list(caller.tenant))


@writing.delete(KEYS + "/{key_id:segment}", summary="Revoke a key", status_code=204)
async def revoke(key_id: str, caller: Caller, memory: Facade) -> None:
    """Revoke a key at once."""
    await memory.keys.revoke(caller.tenant, key_id)
