"""Operations that find memories, entities and messages, and the context for a prompt."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Unpack

from graphmem.client.inputs import (
    ContextOptions,
    LookupOptions,
    SearchOptions,
    TimeInput,
    parse_context_request,
    parse_search_query,
    without_none,
)
from graphmem.client.operations.request import Request
from graphmem.consolidation.models import UserContradiction
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
from graphmem.memories.entity import Entity
from graphmem.memories.memory import Memory
from graphmem.runtime.paging import Page
from graphmem.runtime.validation import validate_arguments
from graphmem.search.models import (
    EntityGraph,
    EntityGraphQuery,
    EntityListQuery,
    EntityMemoriesQuery,
    LookupQuery,
    LookupResponse,
    MessageHit,
    MessageSearchQuery,
    Persona,
    SearchQuery,
    SearchResponse,
    UserProfile,
)


def search(
    user_id: str, query: str | SearchQuery, **filters: Unpack[SearchOptions]
) -> Request[SearchQuery, SearchResponse]:
    """Return the memories that answer a query, best first."""
    return Request(parse_search_query(query, filters), user_id)


def search_messages(
    user_id: str,
    query: str,
    *,
    limit: int = 5,
    valid_as_of: TimeInput | None = None,
    known_as_of: TimeInput | None = None,
) -> Request[MessageSearchQuery, list[MessageHit]]:
    """Return the messages that answer a query, best first; as of two times: what was said and stored by then."""
    given = without_none(query=query, limit=limit, valid_as_of=valid_as_of, known_as_of=known_as_of)
    return Request(validate_arguments(MessageSearchQuery, given), user_id)


def lookup(user_id: str, text: str, **options: Unpack[LookupOptions]) -> Request[LookupQuery, LookupResponse]:
    """Return the entities that a text names and what is known about them, without language model or embedding."""
    return Request(validate_arguments(LookupQuery, {**options, "q": text}), user_id)


def entities(
    user_id: str, *, query: str | None = None, type: str | None = None, limit: int = 50, cursor: str | None = None
) -> Request[EntityListQuery, Page[Entity]]:
    """List entities by name; `query` is part of a name or alias."""
    given = without_none(query=query, type=type, limit=limit, cursor=cursor)
    return Request(validate_arguments(EntityListQuery, given), user_id)


def entity(user_id: str, entity_id: str) -> Request[None, Entity]:
    """Read an entity with its aliases and attributes."""
    return Request(None, user_id, entity_id)


def entity_memories(
    user_id: str,
    entity_id: str,
    *,
    valid_as_of: TimeInput | None = None,
    known_as_of: TimeInput | None = None,
    include_superseded: bool = False,
    limit: int = 50,
) -> Request[EntityMemoriesQuery, list[Memory]]:
    """Return what is known about an entity, the most important memories first."""
    given = without_none(
        valid_as_of=valid_as_of, known_as_of=known_as_of, include_superseded=include_superseded, limit=limit
    )
    return Request(validate_arguments(EntityMemoriesQuery, given), user_id, entity_id)


def entity_graph(
    user_id: str,
    entity_id: str,
    *,
    depth: int = 1,
    valid_as_of: TimeInput | None = None,
    known_as_of: TimeInput | None = None,
) -> Request[EntityGraphQuery, EntityGraph]:
    """Return the entities within `depth` (1 to 3) steps of one and the memories between them."""
    given = without_none(depth=depth, valid_as_of=valid_as_of, known_as_of=known_as_of)
    return Request(validate_arguments(EntityGraphQuery, given), user_id, entity_id)


def context(
    user_id: str, question: str | ContextRequest | None = None, **options: Unpack[ContextOptions]
) -> Request[ContextRequest, ContextResponse]:
    """Return the context for the model's prompt, within a token budget; without a question, to start a conversation."""
    return Request(parse_context_request(question, options), user_id)


def enhance(
    user_id: str, session_id: str, *, reply: str, question: str | None = None, sources: Sequence[str] = ()
) -> Request[EnhanceIn, EnhancedReply]:
    """Return a draft reply with continuity, style, an example, likely follow-ups and sources; nothing is stored."""
    given = without_none(reply=reply, question=question, sources=list(sources))
    return Request(validate_arguments(EnhanceIn, given), user_id, session_id)


def profile(user_id: str, *, domain: str | None = None) -> Request[ProfileQuery, UserProfile]:
    """Read the memories of the profile by type, and its core, without search; with a domain, also its memories."""
    return Request(validate_arguments(ProfileQuery, without_none(domain=domain)), user_id)


def contradictions(user_id: str) -> Request[None, list[UserContradiction]]:
    """List the memories that cannot all be true, as consolidation runs reported them, the latest first."""
    return Request(None, user_id)


def persona(user_id: str) -> Request[None, Persona]:
    """Read the weights by memory type or tag that the user's searches use when they give none."""
    return Request(None, user_id)


def set_persona(user_id: str, weights: Mapping[str, float] | None = None) -> Request[Persona, Persona]:
    """Set the weights by memory type or tag that the user's searches use when they give none; none remove it."""
    return Request(validate_arguments(Persona, {"weights": dict(weights or {})}), user_id)


def intents(user_id: str) -> Request[None, list[LearnedIntent]]:
    """List the intents learned from feedback, with the database queries that answered each well."""
    return Request(None, user_id)


def rate_context(user_id: str, context_id: str, score: int) -> Request[ContextFeedbackIn, ContextFeedbackResult]:
    """Rate the answer that a context led to, 1 to 5; a positive rating strengthens the memories that it held."""
    return Request(validate_arguments(ContextFeedbackIn, {"score": score}), user_id, context_id)


def memory_uses(user_id: str, memory_id: str, *, limit: int = 50) -> Request[MemoryUsesQuery, list[MemoryUse]]:
    """List the contexts that held a memory and how the answers were rated, the latest first."""
    return Request(validate_arguments(MemoryUsesQuery, {"limit": limit}), user_id, memory_id)


def preferences(user_id: str) -> Request[None, list[LearnedPreference]]:
    """List the preferences learned from messages and feedback."""
    return Request(None, user_id)


def patterns(user_id: str) -> Request[None, list[BehaviorPattern]]:
    """List the behavioural patterns detected in messages."""
    return Request(None, user_id)


def contexts(user_id: str, *, session_id: str | None = None) -> Request[ContextItemsQuery, list[ContextItem]]:
    """List the context items that have not expired, of one session or of all."""
    return Request(validate_arguments(ContextItemsQuery, without_none(session_id=session_id)), user_id)


def add_context(
    user_id: str,
    *,
    type: str,
    key: str,
    value: Any,
    relevance: float = 0.8,
    ttl: int = 7200,
    session_id: str | None = None,
) -> Request[ContextItemIn, ContextItem]:
    """Store a topic, preference or goal that contexts use for `ttl` seconds, of one session or of all."""
    given = without_none(type=type, key=key, relevance=relevance, ttl=ttl, session_id=session_id)
    return Request(validate_arguments(ContextItemIn, {**given, "value": value}), user_id)


def delete_context(user_id: str, item_id: str) -> Request[None, None]:
    """Delete a context item before it expires."""
    return Request(None, user_id, item_id)
