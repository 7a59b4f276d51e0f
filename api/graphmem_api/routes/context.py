"""The context for the model's prompt, and its parts."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query

from graphmem.consolidation.models import UserContradiction, contested_pairs
from graphmem.context.models import (
    BehaviorPattern,
    ContextFeedbackIn,
    ContextFeedbackResult,
    ContextItem,
    ContextItemIn,
    ContextItemsQuery,
    ContextRequest,
    ContextResponse,
    EnhancedReply,
    EnhanceIn,
    LearnedIntent,
    LearnedPreference,
    MemoryUse,
    MemoryUsesQuery,
    ProfileQuery,
)
from graphmem.runtime.field_types import SessionId
from graphmem.runtime.paging import Page
from graphmem.search.models import UserProfile
from graphmem.tenants.spaces import SpaceQuery
from graphmem_api import route_classes
from graphmem_api.dependencies import USER_PATH, Caller, OwnerInPath, ServicesDep, forbid_third_party_text

router = APIRouter(route_class=route_classes.ReadRoute, tags=["context"])
write_router = APIRouter(route_class=route_classes.WriteRoute, tags=["context"])


@router.post(USER_PATH + "/context", summary="Context for the model's prompt")
async def build(owner: OwnerInPath, caller: Caller, services: ServicesDep, body: ContextRequest) -> ContextResponse:
    """Build the context for the model's prompt within a token budget, for a question or the start of a conversation."""
    scope = await services.rights.read_scope(owner, caller, body.spaces)
    response = await services.contexts.build(scope, body, reinforce=caller.can_write)
    if not response.memories and not response.recent_messages:
        await services.users.refuse_swapped(owner, body.question, caller)
    return response


@write_router.post(
    USER_PATH + "/context/{context_id:segment}/feedback",
    summary="Rate the answer of a context",
    operation_id="context_rate",
)
async def rate(
    owner: OwnerInPath, context_id: str, caller: Caller, services: ServicesDep, body: ContextFeedbackIn
) -> ContextFeedbackResult:
    """Rate the answer that a context led to; the first positive rating strengthens the memories in the context."""
    forbid_third_party_text(caller, "A rating")
    scope = await services.rights.read_scope(owner, caller)
    return await services.contexts.rate(scope, context_id, body.score, caller.changes_as)


@router.get(
    USER_PATH + "/memories/{memory_id:segment}/uses",
    summary="List where a memory was used",
    operation_id="memories_list_uses",
)
async def uses(
    owner: OwnerInPath,
    memory_id: str,
    caller: Caller,
    services: ServicesDep,
    query: Annotated[MemoryUsesQuery, Query()],
) -> Page[MemoryUse]:
    """List the contexts that held a memory and how the answers were rated, latest first."""
    return Page(
        items=await services.contexts.list_uses(await services.rights.read_scope(owner, caller), memory_id, query.limit)
    )


@router.post(
    USER_PATH + "/sessions/{session_id:segment}/enhance",
    summary="Adapt a draft reply to the user",
    operation_id="sessions_enhance",
)
async def enhance(owner: OwnerInPath, session_id: SessionId, services: ServicesDep, body: EnhanceIn) -> EnhancedReply:
    """Return a draft reply with continuity, style, an example, likely follow-ups and sources; nothing is stored."""
    return await services.contexts.enhance(owner, session_id, body)


@router.get(USER_PATH + "/profile", summary="Read the profile", operation_id="profile_get")
async def profile(
    owner: OwnerInPath, caller: Caller, services: ServicesDep, query: Annotated[ProfileQuery, Query()]
) -> UserProfile:
    """Read the profile by memory type, and its core."""
    scope = await services.rights.read_scope(owner, caller, query.space_selection)
    return await services.retrieval.load_profile(scope, query.domain)


@router.get(USER_PATH + "/preferences", summary="List learned preferences")
async def preferences(owner: OwnerInPath, services: ServicesDep) -> Page[LearnedPreference]:
    """List the preferences learned from messages and feedback."""
    return Page(items=await services.contexts.list_preferences(owner))


@router.get(USER_PATH + "/patterns", summary="List detected patterns")
async def patterns(owner: OwnerInPath, services: ServicesDep) -> Page[BehaviorPattern]:
    """List the behavioural patterns detected in messages."""
    return Page(items=await services.contexts.list_patterns(owner))


@router.get(USER_PATH + "/contradictions", summary="List reported contradictions", operation_id="contradictions_list")
async def contradictions(
    owner: OwnerInPath, caller: Caller, services: ServicesDep, query: Annotated[SpaceQuery, Query()]
) -> Page[UserContradiction]:
    """List the memories that cannot all be true: contested ones first, then what consolidation runs reported."""
    group = await services.rights.find_group(owner, caller, query.space)
    contested = contested_pairs(await services.memories.list_contested(group))
    return Page(items=[*contested, *await services.consolidations.list_contradictions(group)])


@router.get(USER_PATH + "/intents", summary="List learned intents", operation_id="intents_list")
async def intents(owner: OwnerInPath, services: ServicesDep) -> Page[LearnedIntent]:
    """List the intents learned from feedback, with the database queries that answered them well."""
    return Page(items=await services.contexts.list_intents(owner))


@router.get(USER_PATH + "/contexts", summary="List context items")
async def contexts(
    owner: OwnerInPath, services: ServicesDep, query: Annotated[ContextItemsQuery, Query()]
) -> Page[ContextItem]:
    """List unexpired context items of one session or all, latest first."""
    return Page(items=await services.contexts.list_items(owner, query.session_id))


@write_router.post(USER_PATH + "/contexts", summary="State a context item", status_code=201)
async def add_item(owner: OwnerInPath, caller: Caller, services: ServicesDep, body: ContextItemIn) -> ContextItem:
    """Store a topic, preference or goal that contexts use until it expires, for one session or all."""
    forbid_third_party_text(caller, "How to answer")
    return await services.contexts.add_item(owner, body, caller.changes_as)


@write_router.delete(USER_PATH + "/contexts/{item_id:segment}", summary="Delete a context item", status_code=204)
async def delete_item(owner: OwnerInPath, item_id: str, caller: Caller, services: ServicesDep) -> None:
    """Delete a context item before it expires."""
    forbid_third_party_text(caller, "How to answer")
    await services.contexts.delete_item(owner, item_id, caller.changes_as)
