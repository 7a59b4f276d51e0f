"""Spaces: memories that users and keys share, and their members."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query
from fastapi.responses import Response

from graphmem.runtime.paging import Page
from graphmem.tenants.spaces import MemberQuery, Space, SpaceIn, SpaceRoleIn
from graphmem.user_data.models import ErasureResult
from graphmem_api import route_classes
from graphmem_api.dependencies import Caller, ServicesDep, forbid_third_party_text
from graphmem_api.openapi import Responses

read_router = APIRouter(route_class=route_classes.ReadRoute, tags=["spaces"])
write_router = APIRouter(route_class=route_classes.SpaceWriteRoute, tags=["spaces"])

SPACES_PATH = "/v1/spaces"
SPACE_PATH = SPACES_PATH + "/{space_id:segment}"
MEMBER_PATH = SPACE_PATH + "/members/{member_id:segment}"

A_SPACE = "What a space is called and who belongs to it"

CHANGED_SPACE: Responses = {200: {"model": Space, "description": "The changed space."}}


@write_router.put(
    SPACE_PATH, summary="Create or change a space", status_code=201, operation_id="spaces_put", responses=CHANGED_SPACE
)
async def put(space_id: str, caller: Caller, services: ServicesDep, body: SpaceIn, response: Response) -> Space:
    """Create (201) or change (200) a space with its members; an agent may add users that its key has access to."""
    forbid_third_party_text(caller, A_SPACE)
    space, is_new = await services.spaces.put(caller, space_id, body)
    response.status_code = 201 if is_new else 200
    return space


@read_router.get(SPACES_PATH, summary="List spaces", operation_id="spaces_list")
async def page(caller: Caller, services: ServicesDep) -> Page[Space]:
    """List the spaces that the key or one of its users is a member of, by id; for an admin, all of the tenant."""
    return Page(items=await services.spaces.list(caller))


@read_router.get(SPACE_PATH, summary="Read a space", operation_id="spaces_get")
async def get(space_id: str, caller: Caller, services: ServicesDep) -> Space:
    """Read a space with its members; 404 without access to it."""
    return await services.spaces.get(caller, space_id)


@write_router.put(MEMBER_PATH, summary="Give a member a role", operation_id="spaces_set_member")
async def set_member(
    space_id: str,
    member_id: str,
    caller: Caller,
    services: ServicesDep,
    body: SpaceRoleIn,
    query: Annotated[MemberQuery, Query()],
) -> Space:
    """Add a user or a key to a space, or change its role."""
    forbid_third_party_text(caller, A_SPACE)
    return await services.spaces.set_member(caller, space_id, member_id, body.role, query.kind)


@write_router.delete(MEMBER_PATH, summary="Remove a member", status_code=204, operation_id="spaces_remove_member")
async def remove_member(
    space_id: str, member_id: str, caller: Caller, services: ServicesDep, query: Annotated[MemberQuery, Query()]
) -> None:
    """Remove a user or a key from a space; takes effect with the next request."""
    forbid_third_party_text(caller, A_SPACE)
    await services.spaces.remove_member(caller, space_id, member_id, query.kind)


@write_router.delete(SPACE_PATH, summary="Erase a space", operation_id="spaces_delete")
async def delete(space_id: str, caller: Caller, services: ServicesDep) -> ErasureResult:
    """Erase a space with all its data everywhere, then count what is left."""
    forbid_third_party_text(caller, "Erasing a space")
    return await services.forgetting.forget(await services.spaces.check_deletable(caller, space_id))
