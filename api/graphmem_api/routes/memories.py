"""Memories without a language model: save, list, read, update, end, revert; and their changes."""

from __future__ import annotations

import re
from typing import Annotated

from fastapi import APIRouter, Header, Query
from fastapi.responses import Response

from graphmem.app.bootstrap import Services
from graphmem.changes.models import ChangesQuery, MemoryChange
from graphmem.memories.filters import ListFilters
from graphmem.memories.memory import (
    ErasedMemory,
    Memory,
    MemoryPatch,
    MemoryVersion,
    ResolutionIn,
    SaveIn,
    SaveOut,
    Scope,
)
from graphmem.runtime.errors import InvalidInput
from graphmem.runtime.paging import Page
from graphmem.tenants.access import COMMAND_LINE, ApiKey
from graphmem.tenants.owners import Owner
from graphmem.tenants.spaces import ReadScope, SpaceRole
from graphmem_api import headers, route_classes
from graphmem_api.dependencies import USER_PATH, Caller, IdempotentRequestDep, OwnerInPath, ServicesDep, require_admin
from graphmem_api.openapi import openapi_problem

read_router = APIRouter(route_class=route_classes.ReadRoute, tags=["memories"])
changes_router = APIRouter(route_class=route_classes.ReadRoute, tags=["memories"])
write_router = APIRouter(route_class=route_classes.WriteRoute, tags=["memories"])

MEMORIES_PATH = USER_PATH + "/memories"
MEMORY_PATH = MEMORIES_PATH + "/{memory_id:segment}"

_IF_MATCH = re.compile(headers.IF_MATCH_PATTERN)


@write_router.post(
    MEMORIES_PATH,
    summary="Save memories without a language model",
    responses={501: openapi_problem(501, "`infer` requires a language model, and none is configured.")},
)
async def save(
    owner: OwnerInPath, caller: Caller, services: ServicesDep, body: SaveIn, request: IdempotentRequestDep
) -> SaveOut:
    """Save a list of statements, all or none; with `infer`, a model compares them with what is known."""
    if any(memory.scope is Scope.GLOBAL for memory in body.memories):
        require_admin(caller, "Writing what all users of the tenant read (scope global)")
    named = {memory.space for memory in body.memories if memory.space is not None}
    spaces = await services.rights.find_groups(owner, caller, named, SpaceRole.WRITER)
    if len(body.memories) == 1 and len(body.memories[0].content.split()) == 1:
        await services.users.refuse_swapped(owner, body.memories[0].content, caller)
    await services.trust.check_claims(caller, [memory.source.kind for memory in body.memories if memory.source])
    return SaveOut(
        results=await services.memories.save(
            owner,
            body.memories,
            actor=caller.id,
            kind=caller.source_kind,
            request=request,
            infer=body.infer,
            spaces=spaces,
        )
    )


@read_router.get(MEMORIES_PATH, summary="List memories without ranking")
async def page(
    owner: OwnerInPath, caller: Caller, services: ServicesDep, filters: Annotated[ListFilters, Query()]
) -> Page[Memory]:
    """List current memories by attributes, without ranking or embedding."""
    selection = filters.space_selection if filters.space is None else [filters.space]
    scope = await services.rights.read_scope(owner, caller, selection)
    return await services.memories.page(scope, filters)


@read_router.get(MEMORY_PATH, summary="Read a memory")
async def get(owner: OwnerInPath, memory_id: str, caller: Caller, services: ServicesDep, response: Response) -> Memory:
    """Read the current state of a memory, deleted or not; `ETag` is its version."""
    scope = await services.rights.read_scope(owner, caller)
    if caller.id == COMMAND_LINE:
        memory_id = await services.memories.complete_id(scope, memory_id)
    memory = await services.memories.get(scope, memory_id)
    response.headers["ETag"] = f'"{memory.version}"'
    return memory


@write_router.patch(MEMORY_PATH, summary="Correct a memory in a new version")
async def patch(
    owner: OwnerInPath,
    memory_id: str,
    caller: Caller,
    services: ServicesDep,
    body: MemoryPatch,
    request: IdempotentRequestDep,
    response: Response,
    if_match: Annotated[str | None, Header(description="The version to change; 409 if it is not the latest.")] = None,
) -> Memory:
    """Create a new version with the given fields; the earlier version stays in the history.

    A key that is trusted less than the source of the memory does not change what it says: the change is stored, and
    returned, as a contested memory next to it.
    """
    version = _parse_if_match(if_match)
    scope = await _scope_of_change(services, owner, caller, memory_id)
    changed = await services.memories.patch(
        scope, memory_id, body, if_version=version, actor=caller.id, kind=caller.changes_as, request=request
    )
    response.headers["ETag"] = f'"{changed.version}"'
    return changed


@write_router.delete(MEMORY_PATH, summary="End or erase a memory")
async def delete(
    owner: OwnerInPath,
    memory_id: str,
    caller: Caller,
    services: ServicesDep,
    hard: Annotated[bool, Query(description="Erase every version everywhere (admin).")] = False,
) -> Memory | ErasedMemory:
    """End a memory and keep its history; with `hard=true`, an admin erases it."""
    if hard:
        require_admin(caller, "Erasing a memory")
        scope = await services.rights.read_scope(owner, caller)
        return ErasedMemory(id=memory_id, erased=await services.forgetting.erase_memory(scope, memory_id))
    scope = await _scope_of_change(services, owner, caller, memory_id)
    return await services.memories.delete(scope, memory_id, actor=caller.id, kind=caller.changes_as)


@read_router.get(MEMORY_PATH + "/history", summary="List the versions of a memory")
async def history(owner: OwnerInPath, memory_id: str, caller: Caller, services: ServicesDep) -> Page[MemoryVersion]:
    """List all versions, oldest first, with why they ended and what replaced them."""
    scope = await services.rights.read_scope(owner, caller)
    return Page(items=await services.memories.history(scope, memory_id))


@write_router.post(MEMORY_PATH + "/resolve", summary="Resolve a contested memory")
async def resolve(
    owner: OwnerInPath,
    memory_id: str,
    caller: Caller,
    services: ServicesDep,
    body: ResolutionIn,
    request: IdempotentRequestDep,
) -> Memory:
    """Let a contested memory replace what it contradicts, or retire it; a revert undoes both."""
    scope = await _scope_of_change(services, owner, caller, memory_id)
    return await services.memories.resolve(
        scope, memory_id, holds=body.holds, actor=caller.id, kind=caller.changes_as, request=request
    )


@write_router.post(MEMORY_PATH + "/revert", summary="Undo one supersession, or a resolution")
async def revert(
    owner: OwnerInPath, memory_id: str, caller: Caller, services: ServicesDep, request: IdempotentRequestDep
) -> Memory:
    """Reopen a superseded memory and retire its replacement; a resolved memory is contested again."""
    scope = await _scope_of_change(services, owner, caller, memory_id)
    return await services.memories.revert(scope, memory_id, actor=caller.id, kind=caller.changes_as, request=request)


async def _scope_of_change(services: Services, owner: Owner, caller: ApiKey, memory_id: str) -> ReadScope:
    """Return the scope for finding a memory to change.

    Raises Forbidden if a caller other than an admin would change a memory that all users of the tenant read.
    """
    scope = await services.rights.read_scope(owner, caller)
    if not caller.is_admin and (await services.memories.get(scope, memory_id)).is_global:
        require_admin(caller, "Changing what all users of the tenant read")
    return scope


def _parse_if_match(header: str | None) -> int | None:
    if header is None or header.strip() == "*":
        return None
    match = _IF_MATCH.match(header.strip())
    if match is None:
        raise InvalidInput(
            'If-Match takes the version from ETag, for example "3".',
            errors=[{"loc": ["header", "If-Match"], "msg": 'must be a version in quotes, for example "3"'}],
        )
    return int(match[1])


@changes_router.get(
    USER_PATH + "/changes", summary="List what changed between two times", operation_id="memories_list_changes"
)
async def list_changes(
    owner: OwnerInPath, caller: Caller, services: ServicesDep, query: Annotated[ChangesQuery, Query()]
) -> Page[MemoryChange]:
    """List what graphmem learned, corrected, merged, deleted and restored, oldest first."""
    group = await services.rights.find_group(owner, caller, query.space)
    return await services.changes.page(group, query)
