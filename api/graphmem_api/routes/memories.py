"""Memories without a model: save, list, read, change, end, undo, look back."""

from __future__ import annotations

import re
from typing import Annotated

from fastapi import APIRouter, Header, Query
from fastapi.responses import Response

from graphmem.domain.identity import Owner
from graphmem.domain.key import Key
from graphmem.domain.listing import ListFilters, Page
from graphmem.domain.memory import HistoryRow, Memory, MemoryPatch, Scope
from graphmem.errors import InvalidInput
from graphmem_api import guard, schemas
from graphmem_api.auth import Caller, OwnerInPath, require_admin
from graphmem_api.facade import Memory as Facade

reading = APIRouter(route_class=guard.Reading, tags=["memories"])
writing = APIRouter(route_class=guard.Writing, tags=["memories"])

MEMORIES = "/v1/users/{user_id:segment}/memories"
ONE = MEMORIES + "/{memory_id:segment}"

_VERSION = re.compile(r'^(?:W/)?"?(\d{1,9})"?$')


@writing.post(MEMORIES, summary="Save memories without a language model", response_model=schemas.SaveOut)
async def save(owner: OwnerInPath, caller: Caller, memory: Facade, body: schemas.SaveIn) -> schemas.SaveOut:
    """Save a list of statements: all of it or nothing."""
    if any(each.scope is Scope.GLOBAL for each in body.memories):
        require_admin(caller, "Writing what all users of the tenant read (scope global)")
    return schemas.SaveOut(results=await memory.memories.save(owner, body.memories, actor=caller.id))


@reading.get(MEMORIES, summary="List memories without ranking", response_model=Page[Memory])
async def page(owner: OwnerInPath, memory: Facade, filters: Annotated[ListFilters, Query()]) -> Page[Memory]:
    """List current memories by attributes, without ranking or embedding."""
    return await memory.memories.page(owner, filters)


@reading.get(ONE, summary="Read a memory", response_model=Memory)
async def get(owner: OwnerInPath, memory_id: str, memory: Facade, response: Response) -> Memory:
    """Read a memory as it is now, deleted or not; `ETag` is its version."""
    found = await memory.memories.get(owner, memory_id)
    response.headers["ETag"] = f'"{found.version}"'
    return found


@writing.patch(ONE, summary="Make a new version of a memory", response_model=Memory)
async def patch(
    owner: OwnerInPath,
    memory_id: str,
    caller: Caller,
    memory: Facade,
    body: MemoryPatch,
    response: Response,
    if_match: Annotated[
        str | None, Header(description="The version that is to be changed: 409 when it is stale.")
    ] = None,
) -> Memory:
    """Correct a memory: the fields given make a new version, the old one stays in history."""
    version = _read_version(if_match)
    await _check_global(memory, owner, caller, memory_id)
    changed = await memory.memories.patch(owner, memory_id, body, if_version=version, actor=caller.id)
    response.headers["ETag"] = f'"{changed.version}"'
    return changed


@writing.delete(ONE, summary="End or erase a memory", response_model=Memory | schemas.Erased)
async def delete(
    owner: OwnerInPath,
    memory_id: str,
    caller: Caller,
    memory: Facade,
    hard: Annotated[bool, Query(description="Erase every version everywhere (admin).")] = False,
) -> Memory | schemas.Erased:
    """End a memory, which stays in history; with `hard=true` an admin erases it."""
    if hard:
        require_admin(caller, "Erasing a memory")
        return schemas.Erased(id=memory_id, erased=await memory.memories.erase(owner, memory_id))
    await _check_global(memory, owner, caller, memory_id)
    return await memory.memories.delete(owner, memory_id, actor=caller.id)


@reading.get(ONE + "/history", summary="Every version of a memory", response_model=Page[HistoryRow])
async def history(owner: OwnerInPath, memory_id: str, memory: Facade) -> Page[HistoryRow]:
    """List every version, oldest first, with why it ended and what replaced it."""
    return Page(items=await memory.memories.history(owner, memory_id))


@writing.post(ONE + "/revert", summary="Undo one supersession", response_model=Memory)
async def revert(owner: OwnerInPath, memory_id: str, caller: Caller, memory: Facade) -> Memory:
    """Reopen a superseded memory and close what replaced it."""
    await _check_global(memory, owner, caller, memory_id)
    return await memory.memories.revert(owner, memory_id, actor=caller.id)


async def _check_global(memory: Facade, owner: Owner, caller: Key, memory_id: str) -> None:
    """Keep what all users of the tenant read from being changed by anyone but admins."""
    if not caller.is_admin and (await memory.memories.get(owner, memory_id)).scope is Scope.GLOBAL:
        require_admin(caller, "Changing what all users of the tenant read (scope global)")


def _read_version(given: str | None) -> int | None:
    if given is None or given.strip() == "*":
        return None
    match = _VERSION.match(given.strip())
    if match is None:
        raise InvalidInput(
            'If-Match takes the version as in ETag, for example "3".',
            errors=[{"loc": ["header", "If-Match"], "msg": 'must be a version in quotes, for example "3"'}],
        )
    return int(match[1])
