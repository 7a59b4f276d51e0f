"""Search by meaning."""

from __future__ import annotations

from fastapi import APIRouter

from graphmem.domain.recall import MessageAnswer, MessageQuery, SearchAnswer, SearchQuery
from graphmem_api import guard
from graphmem_api.auth import Caller, OwnerInPath
from graphmem_api.facade import Memory as Facade

router = APIRouter(route_class=guard.Reading, tags=["search"])

USER = "/v1/users/{user_id:segment}"


@router.post(
    USER + "/search", summary="Search memories by meaning, words and neighbourhood", response_model=SearchAnswer
)
async def search(owner: OwnerInPath, caller: Caller, memory: Facade, body: SearchQuery) -> SearchAnswer:
    """Search memories; what an analyst reads is not reinforced."""
    query = body.model_copy(update={"reinforce": False}) if not caller.may_write else body
    return await memory.retrieval.search(owner, query)


@router.post(USER + "/messages/search", summary="Search messages", response_model=MessageAnswer)
async def search_messages(owner: OwnerInPath, memory: Facade, body: MessageQuery) -> MessageAnswer:
    """Search the user's messages by words and meaning."""
    return await memory.retrieval.search_messages(owner, body)
