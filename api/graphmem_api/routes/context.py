"""The context for the model's prompt, and what it is made of."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query

from graphmem.domain.behavior_patterns import BehaviorPattern
from graphmem.domain.context_models import ContextItem, ContextRequest, ContextResponse
from graphmem.domain.learned_preferences import LearnedPreference
from graphmem.domain.listing import Page
from graphmem.domain.requests import ContextItemsQuery
from graphmem_api import route_classes
from graphmem_api.auth import Caller, OwnerInPath
from graphmem_api.dependencies import USER_PATH, ServicesDep

router = APIRouter(route_class=route_classes.ReadRoute, tags=["context"])


@router.post(USER_PATH + "/context", summary="Context for the model's prompt")
async def build(owner: OwnerInPath, caller: Caller, services: ServicesDep, body: ContextRequest) -> ContextResponse:
    """Build the context for the model's prompt, within a token budget."""
    return await services.contexts.build(owner, body, reinforce=caller.can_write)


@router.get(USER_PATH + "/preferences", summary="List learned preferences")
async def preferences(owner: OwnerInPath, services: ServicesDep) -> Page[LearnedPreference]:
    """List the preferences learned from messages and feedback."""
    return Page(items=await services.contexts.list_preferences(owner))


@router.get(USER_PATH + "/patterns", summary="List detected patterns")
async def patterns(owner: OwnerInPath, services: ServicesDep) -> Page[BehaviorPattern]:
    """List the behavioural patterns detected in messages."""
    return Page(items=await services.contexts.list_patterns(owner))


@router.get(USER_PATH + "/contexts", summary="List context items")
async def contexts(
    owner: OwnerInPath, services: ServicesDep, query: Annotated[ContextItemsQuery, Query()]
) -> Page[ContextItem]:
    """List the context items that have not expired, of one session or of all, the latest first."""
    return Page(items=await services.contexts.list_items(owner, query.session_id))
