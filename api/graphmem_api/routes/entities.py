"""Entities: lookup by name, and the graph around an entity."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query

from graphmem.memories.entity import Entity
from graphmem.memories.memory import Memory
from graphmem.runtime.paging import Page
from graphmem.search.models import (
    EntityGraph,
    EntityGraphQuery,
    EntityListQuery,
    EntityMemoriesQuery,
    LookupQuery,
    LookupResponse,
    ProfiledEntity,
)
from graphmem_api import route_classes
from graphmem_api.auth import Caller, OwnerInPath
from graphmem_api.dependencies import USER_PATH, ServicesDep

router = APIRouter(route_class=route_classes.ReadRoute, tags=["entities"])

ENTITIES_PATH = USER_PATH + "/entities"
ENTITY_PATH = ENTITIES_PATH + "/{entity_id:segment}"


@router.get(ENTITIES_PATH + "/lookup", summary="Look up the entities named in a text")
async def lookup(
    owner: OwnerInPath, caller: Caller, services: ServicesDep, query: Annotated[LookupQuery, Query()]
) -> LookupResponse:
    """Find the entities that `q` names, by name or alias, with the profile of each and the memories about it.

    No model, no embedding.
    """
    return await services.retrieval.lookup(
        await services.rights.read_scope(owner, caller, query.space_selection),
        query.q,
        query.limit,
        filters=query.to_memory_filters(),
        reinforce=query.reinforce and caller.can_write,
    )


@router.get(ENTITIES_PATH, summary="List entities")
async def page(
    owner: OwnerInPath, caller: Caller, services: ServicesDep, query: Annotated[EntityListQuery, Query()]
) -> Page[Entity]:
    """List entities by name."""
    scope = await services.rights.read_scope(owner, caller, query.space_selection)
    return await services.entities.page(scope, query)


@router.get(ENTITY_PATH, summary="Read an entity")
async def get(owner: OwnerInPath, entity_id: str, caller: Caller, services: ServicesDep) -> ProfiledEntity:
    """Read an entity with its aliases, its attributes and its profile: what is known of it in a few sentences."""
    return await services.entities.get(await services.rights.read_scope(owner, caller), entity_id)


@router.get(ENTITY_PATH + "/memories", summary="List the memories about an entity")
async def memories(
    owner: OwnerInPath,
    entity_id: str,
    caller: Caller,
    services: ServicesDep,
    query: Annotated[EntityMemoriesQuery, Query()],
) -> Page[Memory]:
    """List the memories that are about an entity or mention it, the most important first."""
    scope = await services.rights.read_scope(owner, caller, query.space_selection)
    return Page(items=await services.entities.list_memories(scope, entity_id, query))


@router.get(ENTITY_PATH + "/graph", summary="Read the graph around an entity")
async def graph(
    owner: OwnerInPath,
    entity_id: str,
    caller: Caller,
    services: ServicesDep,
    query: Annotated[EntityGraphQuery, Query()],
) -> EntityGraph:
    """Read the entities around one and the memories between them, as of both times."""
    scope = await services.rights.read_scope(owner, caller, query.space_selection)
    return await services.entities.get_graph(scope, entity_id, query)
