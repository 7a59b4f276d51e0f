"""Which sources a tenant trusts more than others."""

from __future__ import annotations

from fastapi import APIRouter

from graphmem.tenants.trust import Trust, TrustIn
from graphmem_api import route_classes
from graphmem_api.auth import Caller
from graphmem_api.dependencies import ServicesDep

read_router = APIRouter(route_class=route_classes.AdminReadRoute, tags=["admin"])
write_router = APIRouter(route_class=route_classes.AdminWriteRoute, tags=["admin"])

TRUST_PATH = "/v1/admin/trust"


@read_router.get(TRUST_PATH, summary="Read the order of trust", operation_id="trust_get")
async def get_trust(caller: Caller, services: ServicesDep) -> Trust:
    """Read which sources the tenant trusts more than others, the most trusted first."""
    return await services.trust.get(caller.tenant)


@write_router.put(TRUST_PATH, summary="Set the order of trust", operation_id="trust_set")
async def set_trust(caller: Caller, services: ServicesDep, body: TrustIn) -> Trust:
    """Set which sources the tenant trusts more than others; an empty order sets the default one again.

    It applies to every later read and write. What is contested stays so until it is resolved.
    """
    return await services.trust.set(caller.tenant, body, caller.id)
