"""Entities: the fast path by name, and exploring the graph around one."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query

from graphmem.domain.entity import Entity
from graphmem.domain.listing import Page
from graphmem.domain.memory import Memory
from graphmem.domain.recall import EntityGraph, LookupAnswer
from graphmem.domain.times import Instant
from graphmem_api import guard
from graphmem_api.auth import Caller, OwnerInPath
from graphmem_api.facade import Memory as Facade

router = APIRouter(route_class=guard.Reading, tags=["entities"])

ENTITIES = "/v1/users/{user_id:segment}/entities"
ONE = ENTITIES + "/{entity_id:segment}"

Limit = Annotated[int, Query(ge=1, le=200)]
AsOf = Annotated[Instant | None, Query()]


@router.get(ENTITIES + "/lookup", summary="Memories of the entities named in a text", response_model=LookupAnswer)
async def lookup(
    owner: OwnerInPath,
    caller: Caller,
    memory: Facade,
    q: Annotated[str, Query(description="Any text that names entities.")],
    limit: Annotated[int, Query(ge=1, le=100, description="Most memories of each entity.")] = 20,
) -> LookupAnswer:
    """Find the entities named in `q` by name or alias and their current memories; no model, no embedding."""
    return await memory.retrieval.lookup(owner, q, limit, reinforce=caller.may_write)


@router.get(ENTITIES, summary="List entities", response_model=Page[Entity])
async def page(
    owner: OwnerInPath,
    memory: Facade,
    query: Annotated[str | None, Query(max_length=300, description="Part of a name or alias.")] = None,
    type: Annotated[str | None, Query(max_length=64)] = None,
    limit: Limit = 50,
    cursor: Annotated[str | None, Query(max_length=2000)] = None,
) -> Page[Entity]:
    """List entities by name."""
    return await memory.entities.page(owner, query=query, type=type, limit=limit, cursor=cursor)


@router.get(ONE, summary="Read an entity", response_model=Entity)
async def get(owner: OwnerInPath, entity_id: str, memory: Facade) -> Entity:
    """Read an entity with its aliases and attributes."""
    return await memory.entities.get(owner, entity_id)


@router.get(ONE + "/memories", summary="Memories about an entity", response_model=Page[Memory])
async def memories(
    owner: OwnerInPath,
    entity_id: str,
    memory: Facade,
    limit: Limit = 50,
    include_superseded: bool = False,
    valid_as_of: AsOf = None,
    known_as_of: AsOf = None,
) -> Page[Memory]:
    """List the memories about or mentioning an entity, the most important first."""
    return Page(
        items=await memory.entities.memories(
            owner,
            entity_id,
            limit=limit,
            include_superseded=include_superseded,
            valid_as_of=valid_as_of,
            known_as_of=known_as_of,
        )
    )


@router.get(ONE + "/graph", summary="The graph around an entity", response_model=EntityGraph)
async def graph(
    owner: OwnerInPath,
    entity_id: str,
    memory: Facade,
    depth: Annotated[int, Query(ge=1, le=3, description="Steps from the entity.")] = 1,
    valid_as_of: AsOf = None,
    known_as_of: AsOf = None,
) -> EntityGraph:
    """Read the entities around one and the memories between them, as of both times."""
    return await memory.entities.graph(owner, entity_id, depth=depth, valid_as_of=valid_as_of, known_as_of=known_as_of)
