"""The users of a tenant."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query

from graphmem.runtime.paging import Page
from graphmem.tenants.owners import UserListQuery, UserSummary
from graphmem_api import route_classes
from graphmem_api.auth import Caller
from graphmem_api.dependencies import ServicesDep

router = APIRouter(route_class=route_classes.ReadRoute, tags=["user data"])


@router.get("/v1/users", summary="List users", operation_id="users_list")
async def page(caller: Caller, services: ServicesDep, query: Annotated[UserListQuery, Query()]) -> Page[UserSummary]:
    """List the users that the key has access to, by id; `query` finds a part of an id."""
    return await services.users.page(caller.tenant, query, caller)
