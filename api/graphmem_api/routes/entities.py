"""Entities: the fast path by name, and exploring the graph around one."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query

from graphmem.domain.entity import Entity
from graphmem.domain.listing import Page
from graphmem.domain.memory import Memory
from graphmem.domain.search_models import EntityGraph, LookupResponse
from graphmem.domain.times import Instant
from graphmem_api import route_classes
from graphmem_api.auth import Caller, OwnerInPath
from graphmem_api.dependencies import GraphMemoryDep

router = APIRouter(route_class=route_classes.ReadRoute, tags=["entities"])

ENTITIES_PATH = "/v1/users/{user_id:segment}/entities"
ENTITY_PATH = ENTITIES_PATH + "/{entity_id:segment}"

Limit = Annotated[int, Query(ge=1, le=200)]
AsOf = Annotated[Instant | None, Query()]


@router.get(
    ENTITIES_PATH + "/lookup", summary="Memories of the entities named in a text", response_model=LookupResponse
)
async def lookup(
    owner: OwnerInPath,
    caller: Caller,
    memory: GraphMemoryDep,
    q: Annotated[str, Query(description="Any text that names entities.")],
    limit: Annotated[int, Query(ge=1, le=100, description="Most memories of each entity.")] = 20,
) -> LookupResponse:
    """Find the entities named in `q` by name or alias and their current memories; no model, no embedding."""
    return await memory.retrieval.lookup(owner, q, limit, reinforce=caller.can_write)


@router.get(ENTITIES_PATH, summary="List entities", response_model=Page[Entity])
async def page(
    owner: OwnerInPath,
    memory: GraphMemoryDep,
    query: Annotated[str | None, Query(max_length=300, description="Part of a name or alias.")] = None,
    type: Annotated[str | None, Query(max_length=64)] = None,
    limit: Limit = 50,
    cursor: Annotated[str | None, Query(max_length=2000)] = None,
) -> Page[Entity]:
    """List entities by name."""
    return await memory.entities.page(owner, query=query, type=type, limit=limit, cursor=cursor)


@router.get(ENTITY_PATH, summary="Read an entity", response_model=Entity)
async def get(owner: OwnerInPath, entity_id: str, memory: GraphMemoryDep) -> Entity:
    """Read an entity with its aliases and attributes."""
    return await memory.entities.get(owner, entity_id)


@router.get(ENTITY_PATH + "/memories", summary="Memories about an entity", response_model=Page[Memory])
async def memories(
    owner: OwnerInPath,
    entity_id: str,
    memory: GraphMemoryDep,
    limit: Limit = 50,
    include_superseded: bool = False,
    valid_as_of: AsOf = None,
    known_as_of: AsOf = None,
) -> Page[Memory]:
    """List the memories about or mentioning an entity, the most important first."""
    return Page(
        items=await memory.entities.list_memories(
            owner,
            entity_id,
            limit=limit,
            include_superseded=include_superseded,
            valid_as_of=valid_as_of,
            known_as_of=known_as_of,
        )
    )


@router.get(ENTITY_PATH + "/graph", summary="The graph around an entity", response_model=EntityGraph)
async def graph(
    owner: OwnerInPath,
    entity_id: str,
    memory: GraphMemoryDep,
    depth: Annotated[int, Query(ge=1, le=3, description="Steps from the entity.")] = 1,
    valid_as_of: AsOf = None,
    known_as_of: AsOf = None,
) -> EntityGraph:
    """Read the entities around one and the memories between them, as of both times."""
    return await memory.entities.get_graph(
        owner, entity_id, depth=depth, valid_as_of=valid_as_of, known_as_of=known_as_of
    )
