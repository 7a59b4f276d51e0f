"""Contexts for a model's prompt, and what they are made of."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query

from graphmem.domain.behavior_patterns import BehaviorPattern
from graphmem.domain.context_models import ContextItem, ContextRequest, ContextResponse
from graphmem.domain.learned_preferences import LearnedPreference
from graphmem.domain.listing import Page
from graphmem_api import route_classes
from graphmem_api.auth import Caller, OwnerInPath
from graphmem_api.dependencies import GraphMemoryDep

router = APIRouter(route_class=route_classes.ReadRoute, tags=["context"])

USER_PATH = "/v1/users/{user_id:segment}"


@router.post(USER_PATH + "/context", summary="Build context for the model's prompt", response_model=ContextResponse)
async def build(owner: OwnerInPath, caller: Caller, memory: GraphMemoryDep, body: ContextRequest) -> ContextResponse:
    """Build the text to send to a model with a question, within a token budget, and say what it was made from."""
    built: ContextResponse = await memory.contexts.build(owner, body, reinforce=caller.can_write)
    return built


@router.get(USER_PATH + "/preferences", summary="List learned preferences", response_model=Page[LearnedPreference])
async def preferences(owner: OwnerInPath, memory: GraphMemoryDep) -> Page[LearnedPreference]:
    """List how the user likes to be answered, learned from messages and feedback, most confident first."""
    return Page(items=await memory.contexts.list_preferences(owner))


@router.get(USER_PATH + "/patterns", summary="List behaviour patterns", response_model=Page[BehaviorPattern])
async def patterns(owner: OwnerInPath, memory: GraphMemoryDep) -> Page[BehaviorPattern]:
    """List the patterns that the user's messages show now, most confident first."""
    return Page(items=await memory.contexts.list_patterns(owner))


@router.get(USER_PATH + "/contexts", summary="List context items", response_model=Page[ContextItem])
async def contexts(
    owner: OwnerInPath, memory: GraphMemoryDep, session_id: Annotated[str | None, Query(max_length=255)] = None
) -> Page[ContextItem]:
    """List what recent messages mention and has not expired, of one session or of all, latest first."""
    return Page(items=await memory.contexts.list_items(owner, session_id))
