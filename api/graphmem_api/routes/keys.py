"""API keys of a tenant."""

from __future__ import annotations

from fastapi import APIRouter

from graphmem.tenants.access import ApiKeyIn, CreatedApiKey
from graphmem_api import route_classes, schemas
from graphmem_api.auth import Caller
from graphmem_api.dependencies import ServicesDep

read_router = APIRouter(route_class=route_classes.AdminReadRoute, tags=["keys"])
write_router = APIRouter(route_class=route_classes.SecretWriteRoute, tags=["keys"])

KEYS_PATH = "/v1/admin/keys"


@write_router.post(KEYS_PATH, summary="Create an API key", status_code=201)
async def create(caller: Caller, services: ServicesDep, body: ApiKeyIn) -> CreatedApiKey:
    """Create an API key; only this response holds its secret."""
    return await services.keys.create(caller.tenant, body)


@read_router.get(KEYS_PATH, summary="List API keys")
async def page(caller: Caller, services: ServicesDep) -> schemas.KeyList:
    """List the tenant's API keys without their secrets, oldest first."""
    return schemas.KeyList(items=await services.keys.list(caller.tenant))


@write_router.delete(KEYS_PATH + "/{key_id:segment}", summary="Revoke an API key", status_code=204)
async def revoke(key_id: str, caller: Caller, services: ServicesDep) -> None:
    """Revoke an API key with immediate effect."""
    await services.keys.revoke(caller.tenant, key_id)
