"""Search in memories and messages, entities and the graph around them, and questions to memory."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query

from graphmem.ask.models import AskRequest, AskResponse
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
    MessageSearchQuery,
    MessageSearchResponse,
    Persona,
    ProfiledEntity,
    SearchQuery,
    SearchResponse,
)
from graphmem_api import route_classes
from graphmem_api.dependencies import USER_PATH, Caller, OwnerInPath, ServicesDep, forbid_third_party_text
from graphmem_api.openapi import openapi_problem

search_router = APIRouter(route_class=route_classes.ReadRoute, tags=["search"])
persona_router = APIRouter(route_class=route_classes.WriteRoute, tags=["search"])


@search_router.post(
    USER_PATH + "/search", summary="Search memories by meaning, keywords and graph", operation_id="search"
)
async def search(owner: OwnerInPath, caller: Caller, services: ServicesDep, body: SearchQuery) -> SearchResponse:
    """Search memories; reads by analysts do not strengthen them."""
    query = body if caller.can_write else body.model_copy(update={"reinforce": False})
    scope = await services.rights.read_scope(owner, caller, query.spaces)
    response = await services.retrieval.search(scope, query)
    if not response.results and not response.messages:
        await services.users.refuse_swapped(owner, query.query, caller)
    return response


@search_router.post(USER_PATH + "/messages/search", summary="Search messages", operation_id="messages_search")
async def search_messages(
    owner: OwnerInPath, caller: Caller, services: ServicesDep, body: MessageSearchQuery
) -> MessageSearchResponse:
    """Search the messages of the user and of spaces by keywords and meaning."""
    scope = await services.rights.read_scope(owner, caller, body.spaces)
    response = await services.retrieval.search_messages(scope, body)
    if not response.results:
        await services.users.refuse_swapped(owner, body.query, caller)
    return response


@search_router.get(USER_PATH + "/persona", summary="Read the persona", operation_id="persona_get")
async def persona(owner: OwnerInPath, services: ServicesDep) -> Persona:
    """Read the user's default search weights by memory type or tag."""
    return await services.retrieval.get_persona(owner)


@persona_router.post(USER_PATH + "/persona", summary="Set the persona", operation_id="persona_set")
async def set_persona(owner: OwnerInPath, caller: Caller, services: ServicesDep, body: Persona) -> Persona:
    """Set the user's default search weights by memory type or tag; empty weights remove them."""
    forbid_third_party_text(caller, "What counts more")
    return await services.retrieval.set_persona(owner, body, caller.changes_as)


entity_router = APIRouter(route_class=route_classes.ReadRoute, tags=["entities"])

ENTITIES_PATH = USER_PATH + "/entities"
ENTITY_PATH = ENTITIES_PATH + "/{entity_id:segment}"


@entity_router.get(ENTITIES_PATH + "/lookup", summary="Look up the entities named in a text")
async def lookup(
    owner: OwnerInPath, caller: Caller, services: ServicesDep, query: Annotated[LookupQuery, Query()]
) -> LookupResponse:
    """Find the entities that `q` names, by name or alias, with their profiles and memories.

    No model, no embedding.
    """
    response = await services.retrieval.lookup(
        await services.rights.read_scope(owner, caller, query.space_selection),
        query.q,
        query.limit,
        filters=query.to_memory_filters(),
        reinforce=query.reinforce and caller.can_write,
    )
    if not response.entities:
        await services.users.refuse_swapped(owner, query.q, caller)
    return response


@entity_router.get(ENTITIES_PATH, summary="List entities")
async def page(
    owner: OwnerInPath, caller: Caller, services: ServicesDep, query: Annotated[EntityListQuery, Query()]
) -> Page[Entity]:
    """List entities by name."""
    scope = await services.rights.read_scope(owner, caller, query.space_selection)
    return await services.entities.page(scope, query)


@entity_router.get(ENTITY_PATH, summary="Read an entity")
async def get(owner: OwnerInPath, entity_id: str, caller: Caller, services: ServicesDep) -> ProfiledEntity:
    """Read an entity with its aliases, attributes and profile."""
    return await services.entities.get(await services.rights.read_scope(owner, caller), entity_id)


@entity_router.get(ENTITY_PATH + "/memories", summary="List the memories about an entity")
async def memories(
    owner: OwnerInPath,
    entity_id: str,
    caller: Caller,
    services: ServicesDep,
    query: Annotated[EntityMemoriesQuery, Query()],
) -> Page[Memory]:
    """List the memories that are about an entity or mention it, most important first."""
    scope = await services.rights.read_scope(owner, caller, query.space_selection)
    return Page(items=await services.entities.list_memories(scope, entity_id, query))


@entity_router.get(ENTITY_PATH + "/graph", summary="Read the graph around an entity")
async def graph(
    owner: OwnerInPath,
    entity_id: str,
    caller: Caller,
    services: ServicesDep,
    query: Annotated[EntityGraphQuery, Query()],
) -> EntityGraph:
    """Read the entities around an entity and the memories between them, as of both times."""
    scope = await services.rights.read_scope(owner, caller, query.space_selection)
    return await services.entities.get_graph(scope, entity_id, query)


@search_router.post(
    USER_PATH + "/ask",
    summary="Ask memory a question",
    operation_id="ask",
    responses={501: openapi_problem(501, "No language model is configured.")},
)
async def ask(owner: OwnerInPath, caller: Caller, services: ServicesDep, body: AskRequest) -> AskResponse:
    """Answer a question from memory with citations, using one or two language model calls."""
    request = body if caller.can_write else body.model_copy(update={"reinforce": False})
    scope = await services.rights.read_scope(owner, caller, body.spaces)
    response = await services.answers.ask(scope, request)
    if not response.answered:
        await services.users.refuse_swapped(owner, request.question, caller)
    return response
