"""Search in memories and in messages."""

from __future__ import annotations

from fastapi import APIRouter

from graphmem.search.models import (
    MessageSearchQuery,
    MessageSearchResponse,
    Persona,
    SearchQuery,
    SearchResponse,
)
from graphmem_api import route_classes
from graphmem_api.auth import Caller, OwnerInPath
from graphmem_api.dependencies import USER_PATH, ServicesDep

router = APIRouter(route_class=route_classes.ReadRoute, tags=["search"])
write_router = APIRouter(route_class=route_classes.WriteRoute, tags=["search"])


@router.post(USER_PATH + "/search", summary="Search memories by meaning, keywords and graph", operation_id="search")
async def search(owner: OwnerInPath, caller: Caller, services: ServicesDep, body: SearchQuery) -> SearchResponse:
    """Search memories; analyst reads do not strengthen them."""
    query = body if caller.can_write else body.model_copy(update={"reinforce": False})
    scope = await services.rights.read_scope(owner, caller, query.spaces)
    return await services.retrieval.search(scope, query)


@router.post(USER_PATH + "/messages/search", summary="Search messages", operation_id="messages_search")
async def search_messages(
    owner: OwnerInPath, caller: Caller, services: ServicesDep, body: MessageSearchQuery
) -> MessageSearchResponse:
    """Search the user's messages, and those of spaces, by keywords and meaning."""
    scope = await services.rights.read_scope(owner, caller, body.spaces)
    return await services.retrieval.search_messages(scope, body)


@router.get(USER_PATH + "/persona", summary="Read the persona", operation_id="persona_get")
async def persona(owner: OwnerInPath, services: ServicesDep) -> Persona:
    """Read the weights by memory type or tag that the user's searches use when they give none."""
    return await services.retrieval.get_persona(owner)


@write_router.post(USER_PATH + "/persona", summary="Set the persona", operation_id="persona_set")
async def set_persona(owner: OwnerInPath, services: ServicesDep, body: Persona) -> Persona:
    """Set the weights by memory type or tag that the user's searches use when they give none; empty ones remove it."""
    return await services.retrieval.set_persona(owner, body)
