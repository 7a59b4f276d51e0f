"""Search by meaning."""

from __future__ import annotations

from fastapi import APIRouter

from graphmem.domain.search_models import MessageSearchQuery, MessageSearchResponse, SearchQuery, SearchResponse
from graphmem_api import route_classes
from graphmem_api.auth import Caller, OwnerInPath
from graphmem_api.dependencies import GraphMemoryDep

router = APIRouter(route_class=route_classes.ReadRoute, tags=["search"])

USER_PATH = "/v1/users/{user_id:segment}"


@router.post(
    USER_PATH + "/search", summary="Search memories by meaning, words and neighbourhood", response_model=SearchResponse
)
async def search(owner: OwnerInPath, caller: Caller, memory: GraphMemoryDep, body: SearchQuery) -> SearchResponse:
    """Search memories; what an analyst reads is not reinforced."""
    query = body.model_copy(update={"reinforce": False}) if not caller.can_write else body
    return await memory.retrieval.search(owner, query)


@router.post(USER_PATH + "/messages/search", summary="Search messages", response_model=MessageSearchResponse)
async def search_messages(
    owner: OwnerInPath, memory: GraphMemoryDep, body: MessageSearchQuery
) -> MessageSearchResponse:
    """Search the user's messages by words and meaning."""
    return await memory.retrieval.search_messages(owner, body)
