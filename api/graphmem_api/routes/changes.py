"""What changed in a user's memory."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query

from graphmem.changes.models import ChangesQuery, MemoryChange
from graphmem.runtime.paging import Page
from graphmem_api import route_classes
from graphmem_api.auth import Caller, OwnerInPath
from graphmem_api.dependencies import USER_PATH, ServicesDep

router = APIRouter(route_class=route_classes.ReadRoute, tags=["memories"])


@router.get(USER_PATH + "/changes", summary="List what changed between two times", operation_id="memories_list_changes")
async def page(
    owner: OwnerInPath, caller: Caller, services: ServicesDep, query: Annotated[ChangesQuery, Query()]
) -> Page[MemoryChange]:
    """List what graphmem learned, corrected, merged, deleted and restored, oldest first; with `space` in that space."""
    place = await services.rights.find_place(owner, caller, query.space)
    return await services.changes.page(place, query)
