"""Building of contexts: loads the snapshot, searches memories and related sessions, and composes them."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from datetime import datetime
from typing import Protocol

from graphmem.context.composition import BuiltContext, ContextMaterial, compose_context
from graphmem.context.preamble import ensure_question_fits
from graphmem.context.relevance import content_word_prefixes, refers_to_past_session, semantic_score
from graphmem.context.snapshot_cache import SnapshotCache
from graphmem.domain.context_models import ContextRequest, ContextSnapshot, RelatedSession
from graphmem.domain.identity import Owner
from graphmem.domain.profile import TenantProfiles
from graphmem.domain.search_models import SearchHit, SearchQuery, SearchResponse
from graphmem.store.context import ContextStore

MIN_SEARCH_LIMIT = 30
"""Memories searched at least, since not all of them fit the context."""

SEARCH_LIMIT_FACTOR = 3
"""Memories searched for each that may be chosen by relevance."""

MIN_DOMAIN_HITS = 3
"""Hits of the requested domain below which a second search is limited to that domain."""

MAX_RELATED_SESSIONS = 3
"""Related sessions at most."""

MAX_QUESTION_WORDS = 12
"""Words of the question by which related sessions are found at most; the first are taken."""

MIN_WORD_LENGTH = 4
"""Letters of such a word at least."""

MIN_RELATIVE_SCORE = 0.5
"""Share of the best related session's score that every other one reaches."""

MIN_SOURCE_SCORE = 0.5
"""Similarity above which a memory points to the session it was extracted from."""

MIN_MESSAGES = 60
MAX_MESSAGES = 1_000
"""Bounds of the number of messages that are loaded."""

TOKENS_PER_MESSAGE = 20
"""Tokens of a short message; as many messages are loaded as could fit into the budget."""


class MemorySearcher(Protocol):
    """Searches memories by meaning and words."""

    async def search(self, owner: Owner, query: SearchQuery) -> SearchResponse:
        """Return the memories that answer a query, best first."""


class ContextBuilder:
    """Builds contexts."""

    def __init__(
        self, store: ContextStore, snapshots: SnapshotCache, searcher: MemorySearcher, profiles: TenantProfiles
    ) -> None:
        self._store = store
        self._snapshots = snapshots
        self._searcher = searcher
        self._profiles = profiles

    async def build(self, owner: Owner, request: ContextRequest) -> BuiltContext:
        """Return the context for a request; raise InvalidInput when the question alone exceeds the budget."""
        ensure_question_fits(request.question, request.token_budget)
        refers_to_past = refers_to_past_session(request.question)
        message_limit = max(MIN_MESSAGES, min(MAX_MESSAGES, request.token_budget // TOKENS_PER_MESSAGE))
        snapshot, found = await asyncio.gather(
            self._snapshots.load(owner, request.session_id, message_limit),
            self._search_memories(owner, request, include_messages=refers_to_past),
        )
        material = ContextMaterial(
            snapshot=snapshot,
            hits=found.results,
            related=await self._find_related_sessions(owner, request, found),
            message_times=await self._load_message_times(owner, snapshot, found.results) if request.sources else {},
            refers_to_past=refers_to_past,
        )
        return compose_context(request, material, self._profiles.for_tenant(owner.tenant))

    async def _search_memories(
        self, owner: Owner, request: ContextRequest, *, include_messages: bool
    ) -> SearchResponse:
        """Search for the question, and within the requested domain where too few hits belong to it."""
        query = SearchQuery(
            query=request.question,
            limit=min(100, max(MIN_SEARCH_LIMIT, SEARCH_LIMIT_FACTOR * request.top)),
            include_messages=include_messages,
            reinforce=False,
            explain=True,
        )
        found = await self._searcher.search(owner, query)
        wanted = min(MIN_DOMAIN_HITS, request.top)
        if request.domain is None or sum(hit.memory.domain == request.domain for hit in found.results) >= wanted:
            return found
        within = {"domain": request.domain, "limit": max(1, request.top), "include_messages": False}
        inside = await self._searcher.search(owner, query.model_copy(update=within))
        hits = {hit.memory.id: hit for hit in [*inside.results, *found.results]}
        return found.model_copy(update={"results": sorted(hits.values(), key=lambda hit: -hit.score)})

    async def _find_related_sessions(
        self, owner: Owner, request: ContextRequest, found: SearchResponse
    ) -> list[RelatedSession]:
        """Find the sessions that hits come from, weighted by rank, or whose description shares question words."""
        weights: dict[str, float] = {}
        memory_sessions = [
            hit.memory.source.session_id for hit in found.results if semantic_score(hit) > MIN_SOURCE_SCORE
        ]
        for ranking in (memory_sessions, [hit.message.session_id for hit in found.messages]):
            for rank, session_id in enumerate(ranking, 1):
                if session_id:
                    weights[session_id] = weights.get(session_id, 0.0) + 1 / rank
        words = [word for word in content_word_prefixes(request.question) if len(word) >= MIN_WORD_LENGTH]
        sessions = await self._store.find_related_sessions(
            owner,
            excluded_session_id=request.session_id,
            weights=weights,
            words=words[:MAX_QUESTION_WORDS],
            limit=MAX_RELATED_SESSIONS,
        )
        return [
            session
            for session in sessions
            if session.relevance_score >= MIN_RELATIVE_SCORE * sessions[0].relevance_score
        ]

    async def _load_message_times(
        self, owner: Owner, snapshot: ContextSnapshot, hits: Sequence[SearchHit]
    ) -> dict[str, datetime]:
        memories = [*snapshot.profile, *(hit.memory for hit in hits)]
        return await self._store.fetch_message_times(
            owner, [message_id for memory in memories for message_id in memory.source.message_ids]
        )
