"""What to put before the model, and what it is made of."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query

from graphmem.domain.context_models import (
    BehaviorPattern,
    ContextItem,
    ContextRequest,
    ContextResponse,
    LearnedPreference,
)
from graphmem.domain.listing import Page
from graphmem_api import route_classes
from graphmem_api.auth import Caller, OwnerInPath
from graphmem_api.dependencies import GraphMemoryDep

router = APIRouter(route_class=route_classes.ReadRoute, tags=["context"])

USER_PATH = "/v1/users/{user_id:segment}"


@router.post(USER_PATH + "/context", summary="What to put before the model", response_model=ContextResponse)
async def build(owner: OwnerInPath, caller: Caller, memory: GraphMemoryDep, body: ContextRequest) -> ContextResponse:
    """Build the text to put before the model for a question, within a token budget."""
    built: ContextResponse = await memory.contexts.build(owner, body, reinforce=caller.can_write)
    return built


@router.get(USER_PATH + "/preferences", summary="Learned preferences", response_model=Page[LearnedPreference])
async def preferences(owner: OwnerInPath, memory: GraphMemoryDep) -> Page[LearnedPreference]:
    """List the preferences learned from messages and feedback."""
    return Page(items=await memory.contexts.list_preferences(owner))


@router.get(USER_PATH + "/patterns", summary="Detected patterns", response_model=Page[BehaviorPattern])
async def patterns(owner: OwnerInPath, memory: GraphMemoryDep) -> Page[BehaviorPattern]:
    """List the behavioural patterns detected in messages."""
    return Page(items=await memory.contexts.list_patterns(owner))


@router.get(USER_PATH + "/contexts", summary="Live context items", response_model=Page[ContextItem])
async def contexts(
    owner: OwnerInPath, memory: GraphMemoryDep, session_id: Annotated[str | None, Query(max_length=255)] = None
) -> Page[ContextItem]:
    """List the context items that have not expired, of one session or of all, the latest first."""
    return Page(items=await memory.contexts.list_items(owner, session_id))
