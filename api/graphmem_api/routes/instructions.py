"""Custom instructions of a tenant."""

from __future__ import annotations

from fastapi import APIRouter

from graphmem.tenants.instructions import Instructions, InstructionsIn
from graphmem_api import route_classes
from graphmem_api.auth import Caller
from graphmem_api.dependencies import ServicesDep

read_router = APIRouter(route_class=route_classes.AdminReadRoute, tags=["admin"])
write_router = APIRouter(route_class=route_classes.AdminWriteRoute, tags=["admin"])

INSTRUCTIONS_PATH = "/v1/admin/instructions"


@read_router.get(INSTRUCTIONS_PATH, summary="Read the custom instructions", operation_id="instructions_get")
async def get_instructions(caller: Caller, services: ServicesDep) -> Instructions:
    """Read what the tenant wants remembered, and what not."""
    return await services.instructions.get(caller.tenant)


@write_router.post(INSTRUCTIONS_PATH, summary="Set the custom instructions", operation_id="instructions_set")
async def set_instructions(caller: Caller, services: ServicesDep, body: InstructionsIn) -> Instructions:
    """Set what the tenant wants remembered, and what not; an empty text removes it.

    Prompts show the text as data of the admin. It never permits what the secrets policy refuses.
    """
    return await services.instructions.set(caller.tenant, body, caller.id)
