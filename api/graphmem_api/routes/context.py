"""What to put before the model, and what it is made of."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query

from graphmem.domain.context import BehaviorPattern, Context, ContextItem, ContextRequest, LearnedPreference
from graphmem.domain.listing import Page
from graphmem_api import guard
from graphmem_api.auth import Caller, OwnerInPath
from graphmem_api.facade import Memory as Facade

router = APIRouter(route_class=guard.Reading, tags=["context"])

USER = "/v1/users/{user_id:segment}"


@router.post(USER + "/context", summary="What to put before the model", response_model=Context)
async def build(owner: OwnerInPath, caller: Caller, memory: Facade, body: ContextRequest) -> Context:
    """Build the text to put before the model for a question, within a token budget."""
    built: Context = await memory.contexts.build(owner, body, reinforce=caller.may_write)
    return built


@router.get(USER + "/preferences", summary="Learned preferences", response_model=Page[LearnedPreference])
async def preferences(owner: OwnerInPath, memory: Facade) -> Page[LearnedPreference]:
    """List the preferences learned from messages and feedback."""
    return Page(items=await memory.contexts.preferences(owner))


@router.get(USER + "/patterns", summary="Detected patterns", response_model=Page[BehaviorPattern])
async def patterns(owner: OwnerInPath, memory: Facade) -> Page[BehaviorPattern]:
    """List the behavioural patterns detected in messages."""
    return Page(items=await memory.contexts.patterns(owner))


@router.get(USER + "/contexts", summary="Live context items", response_model=Page[ContextItem])
async def contexts(
    owner: OwnerInPath, memory: Facade, session_id: Annotated[str | None, Query(max_length=255)] = None
) -> Page[ContextItem]:
    """List the context items that have not expired, of one session or of all, the latest first."""
    return Page(items=await memory.contexts.contexts(owner, session_id))
