"""Memories without a model: save, list, read, change, end, undo, look back."""

from __future__ import annotations

import re
from typing import Annotated

from fastapi import APIRouter, Header, Query
from fastapi.responses import Response

from graphmem.domain.api_key import ApiKey
from graphmem.domain.identity import Owner
from graphmem.domain.listing import ListFilters, Page
from graphmem.domain.memory import Memory, MemoryPatch, MemoryVersion, Scope
from graphmem.errors import InvalidInput
from graphmem_api import route_classes, schemas
from graphmem_api.auth import Caller, OwnerInPath, require_admin
from graphmem_api.dependencies import GraphMemoryDep

read_router = APIRouter(route_class=route_classes.ReadRoute, tags=["memories"])
write_router = APIRouter(route_class=route_classes.WriteRoute, tags=["memories"])

MEMORIES_PATH = "/v1/users/{user_id:segment}/memories"
MEMORY_PATH = MEMORIES_PATH + "/{memory_id:segment}"

_ETAG_PATTERN = re.compile(r'^(?:W/)?"?(\d{1,9})"?$')


@write_router.post(MEMORIES_PATH, summary="Save memories without a language model", response_model=schemas.SaveOut)
async def save(owner: OwnerInPath, caller: Caller, memory: GraphMemoryDep, body: schemas.SaveIn) -> schemas.SaveOut:
    """Save a list of statements: all of it or nothing."""
    if any(each.scope is Scope.GLOBAL for each in body.memories):
        require_admin(caller, "Writing what all users of the tenant read (scope global)")
    return schemas.SaveOut(results=await memory.memories.save(owner, body.memories, actor=caller.id))


@read_router.get(MEMORIES_PATH, summary="List memories without ranking", response_model=Page[Memory])
async def page(owner: OwnerInPath, memory: GraphMemoryDep, filters: Annotated[ListFilters, Query()]) -> Page[Memory]:
    """List current memories by attributes, without ranking or embedding."""
    return await memory.memories.page(owner, filters)


@read_router.get(MEMORY_PATH, summary="Read a memory", response_model=Memory)
async def get(owner: OwnerInPath, memory_id: str, memory: GraphMemoryDep, response: Response) -> Memory:
    """Read a memory as it is now, deleted or not; `ETag` is its version."""
    found = await memory.memories.get(owner, memory_id)
    response.headers["ETag"] = f'"{found.version}"'
    return found


@write_router.patch(MEMORY_PATH, summary="Make a new version of a memory", response_model=Memory)
async def patch(
    owner: OwnerInPath,
    memory_id: str,
    caller: Caller,
    memory: GraphMemoryDep,
    body: MemoryPatch,
    response: Response,
    if_match: Annotated[
        str | None, Header(description="The version that is to be changed: 409 when it is stale.")
    ] = None,
) -> Memory:
    """Correct a memory: the fields given make a new version, the old one stays in history."""
    version = _parse_if_match(if_match)
    await _require_admin_if_global(memory, owner, caller, memory_id)
    changed = await memory.memories.patch(owner, memory_id, body, if_version=version, actor=caller.id)
    response.headers["ETag"] = f'"{changed.version}"'
    return changed


@write_router.delete(MEMORY_PATH, summary="End or erase a memory", response_model=Memory | schemas.ErasedMemory)
async def delete(
    owner: OwnerInPath,
    memory_id: str,
    caller: Caller,
    memory: GraphMemoryDep,
    hard: Annotated[bool, Query(description="Erase every version everywhere (admin).")] = False,
) -> Memory | schemas.ErasedMemory:
    """End a memory, which stays in history; with `hard=true` an admin erases it."""
    if hard:
        require_admin(caller, "Erasing a memory")
        return schemas.ErasedMemory(id=memory_id, erased=await memory.memories.erase(owner, memory_id))
    await _require_admin_if_global(memory, owner, caller, memory_id)
    return await memory.memories.delete(owner, memory_id, actor=caller.id)


@read_router.get(MEMORY_PATH + "/history", summary="Every version of a memory", response_model=Page[MemoryVersion])
async def history(owner: OwnerInPath, memory_id: str, memory: GraphMemoryDep) -> Page[MemoryVersion]:
    """List every version, oldest first, with why it ended and what replaced it."""
    return Page(items=await memory.memories.history(owner, memory_id))


@write_router.post(MEMORY_PATH + "/revert", summary="Undo one supersession", response_model=Memory)
async def revert(owner: OwnerInPath, memory_id: str, caller: Caller, memory: GraphMemoryDep) -> Memory:
    """Reopen a superseded memory and close what replaced it."""
    await _require_admin_if_global(memory, owner, caller, memory_id)
    return await memory.memories.revert(owner, memory_id, actor=caller.id)


async def _require_admin_if_global(memory: GraphMemoryDep, owner: Owner, caller: ApiKey, memory_id: str) -> None:
    """Keep what all users of the tenant read from being changed by anyone but admins."""
    if not caller.is_admin and (await memory.memories.get(owner, memory_id)).scope is Scope.GLOBAL:
        require_admin(caller, "Changing what all users of the tenant read (scope global)")


def _parse_if_match(given: str | None) -> int | None:
    if given is None or given.strip() == "*":
        return None
    match = _ETAG_PATTERN.match(given.strip())
    if match is None:
        raise InvalidInput(
            'If-Match takes the version as in ETag, for example "3".',
            errors=[{"loc": ["header", "If-Match"], "msg": 'must be a version in quotes, for example "3"'}],
        )
    return int(match[1])
