"""Search in memories and in messages."""

from __future__ import annotations

from fastapi import APIRouter

from graphmem.domain.search_models import MessageSearchQuery, MessageSearchResponse, SearchQuery, SearchResponse
from graphmem_api import route_classes
from graphmem_api.auth import Caller, OwnerInPath
from graphmem_api.dependencies import USER_PATH, ServicesDep

router = APIRouter(route_class=route_classes.ReadRoute, tags=["search"])


@router.post(USER_PATH + "/search", summary="Search memories by meaning, keywords and graph", operation_id="search")
async def search(owner: OwnerInPath, caller: Caller, services: ServicesDep, body: SearchQuery) -> SearchResponse:
    """Search memories; analyst reads do not strengthen them."""
    query = body if caller.can_write else body.model_copy(update={"reinforce": False})
    return await services.retrieval.search(owner, query)


@router.post(USER_PATH + "/messages/search", summary="Search messages", operation_id="messages_search")
async def search_messages(owner: OwnerInPath, services: ServicesDep, body: MessageSearchQuery) -> MessageSearchResponse:
    """Search the user's messages by keywords and meaning."""
    return await services.retrieval.search_messages(owner, body)
