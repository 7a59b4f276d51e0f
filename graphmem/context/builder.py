"""Building of contexts: loads the snapshot, searches memories and related sessions, and composes them."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Protocol

from cachetools import TTLCache

from graphmem.context.composition import BuiltContext, ContextMaterial, compose_context
from graphmem.context.hints import is_quotable
from graphmem.context.models import ContextRequest, ContextSnapshot, RelatedSession
from graphmem.context.preamble import ensure_question_fits
from graphmem.context.relevance import (
    content_word_prefixes,
    find_ticket_ids,
    refers_to_past_session,
    semantic_score,
)
from graphmem.context.store import ContextStore
from graphmem.conversations.session import TICKET_KEY
from graphmem.memories.filters import FactFilters, known_at_or_now
from graphmem.memories.memory import Memory
from graphmem.memories.new_memory import is_temporary_state
from graphmem.neo4j.driver import Graph, Row, to_json
from graphmem.runtime.metrics import SEMANTIC_SEARCH_LATENCY, HitRate
from graphmem.runtime.times import MAX_TIME, Clock
from graphmem.search.models import SearchHit, SearchQuery, SearchResponse
from graphmem.tenants.owners import Owner
from graphmem.tenants.profiles import ProductProfile, TenantProfiles

CACHE_SECONDS = 3600
"""Seconds for which a snapshot is cached."""

CACHE_ENTRIES = 1000
"""Snapshots cached at most; the least recently used one is evicted."""

SnapshotKey = tuple[str, str | None, int]
"""Group id of the user, session id, number of messages."""


class SnapshotCache:
    """Loads snapshots; each load asks the store for a newer version and reuses the cached one when there is none."""

    def __init__(self, store: ContextStore, clock: Clock) -> None:
        self._store = store
        self._clock = clock
        self._entries: TTLCache[SnapshotKey, ContextSnapshot] = TTLCache(
            CACHE_ENTRIES, CACHE_SECONDS, timer=lambda: clock().timestamp()
        )
        self._hit_rate = HitRate("context")

    async def load(self, owner: Owner, session_id: str | None, message_limit: int) -> ContextSnapshot:
        """Return the current snapshot of a user and session, with that many of its latest messages at most."""
        key = (owner.group_id, session_id, message_limit)
        now = self._clock()
        cached = self._entries.get(key)
        reusable = cached if cached is not None and now < cached.valid_until else None
        newer = await self._store.load_snapshot(
            owner,
            session_id,
            message_limit=message_limit,
            valid_until=now + timedelta(seconds=CACHE_SECONDS),
            cached_version=reusable.version if reusable else None,
        )
        if newer is not None:
            self._entries[key] = newer
        self._hit_rate.count(is_hit=newer is None)
        snapshot = newer or reusable
        assert snapshot is not None, "without a cached version the store returns a snapshot"
        return snapshot.as_of(self._clock())

    async def discard_user(self, owner: Owner) -> None:
        """Remove the snapshots of a user."""
        for key in [key for key in self._entries if key[0] == owner.group_id]:
            self._entries.pop(key, None)

    async def count_user(self, owner: Owner) -> int:
        """Return how many snapshots of a user there are."""
        return sum(key[0] == owner.group_id for key in self._entries)


class RelatedSessionStore:
    """Finds sessions by words, weights and tickets."""

    def __init__(self, graph: Graph, clock: Clock) -> None:
        self._graph = graph
        self._clock = clock

    async def find_related_sessions(
        self,
        owner: Owner,
        *,
        excluded_session_id: str | None,
        weights: Mapping[str, float],
        words: Sequence[str],
        limit: int,
        valid_as_of: datetime | None = None,
        known_as_of: datetime | None = None,
        may_quote: Callable[[str], bool] = lambda text: True,
    ) -> list[RelatedSession]:
        """Return other sessions, best first: by the weight of their id plus the share of words in their description.

        Sessions that changed after one of the two times are left out. One without a summary is described by its first
        user messages that `may_quote` permits: none that had a secret, none of which a memory is deleted or superseded.
        """
        filters = FactFilters(valid_at=valid_as_of or self._clock(), known_at=known_at_or_now(known_as_of))
        rows = await self._graph.fetch(
            "context.find_related_sessions",
            group_id=owner.group_id,
            excluded_session_id=excluded_session_id,
            weights=dict(weights),
            words=list(words),
            limit=limit,
            updated_until=min(filter(None, (valid_as_of, known_as_of)), default=MAX_TIME),
            **filters.as_of_params,
        )
        return [_related_session(row, may_quote) for row in rows]

    async def find_ticket_sessions(self, owner: Owner, ticket_ids: Sequence[str], *, limit: int) -> list[str]:
        """Return the ids of sessions about tickets, the latest first; ticket ids are in lower case."""
        values: list[str | int] = [value for ticket_id in ticket_ids for value in (ticket_id, f"#{ticket_id}")]
        values += [int(ticket_id) for ticket_id in ticket_ids if ticket_id.isdecimal()]
        rows = await self._graph.fetch(
            "context.find_ticket_sessions",
            group_id=owner.group_id,
            marked=[f"#{ticket_id}" for ticket_id in ticket_ids],
            fields=[to_json({TICKET_KEY: value})[1:-1] for value in values],
            limit=limit,
        )
        return [row["session_id"] for row in rows]


def _related_session(row: Row, may_quote: Callable[[str], bool]) -> RelatedSession:
    stored = row["session"]
    return RelatedSession(
        session_id=stored["session_id"],
        title=stored["title"],
        summary=stored["summary"] or " / ".join(" ".join(text.split()) for text in row["said"] if may_quote(text)),
        topic_tags=list(stored["topic_tags"]),
        started_at=row["first_at"] or stored["created_at"],
        last_message_at=row["last_at"] or stored["updated_at"],
        message_count=stored["message_count"],
        relevance_score=round(row["score"], 4),
    )


MIN_SEARCH_LIMIT = 30
"""Memories searched at least, since not all of them fit the context."""

SEARCH_LIMIT_FACTOR = 3
"""Memories searched for each that may be chosen by relevance."""

TOKENS_PER_HIT = 40
"""Tokens of the budget for each memory searched; a memory has some 30."""

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

TICKET_WEIGHT = 3.0
"""Weight of a session about a ticket that the question names; more than hits and words together."""

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
        self,
        store: ContextStore,
        sessions: RelatedSessionStore,
        snapshots: SnapshotCache,
        searcher: MemorySearcher,
        profiles: TenantProfiles,
    ) -> None:
        self._store = store
        self._sessions = sessions
        self._snapshots = snapshots
        self._searcher = searcher
        self._profiles = profiles

    async def build(self, owner: Owner, request: ContextRequest) -> BuiltContext:
        """Return the context for a request; raise InvalidInput when the question alone exceeds the budget."""
        ensure_question_fits(request.question_text, request.token_budget)
        ticket_sessions = await self._find_ticket_sessions(owner, request)
        refers_to_past = bool(ticket_sessions) or refers_to_past_session(request.question_text)
        message_limit = max(MIN_MESSAGES, min(MAX_MESSAGES, request.token_budget // TOKENS_PER_MESSAGE))
        product = self._profiles.for_tenant(owner.tenant)
        snapshot, found = await asyncio.gather(
            self._load_snapshot(owner, request, message_limit),
            self._search(owner, request),
        )
        if not request.requested_domains and snapshot.session:
            request = request.model_copy(update={"domain": snapshot.session.domain})
        found = await self._add_hits_of_domains(owner, request, found)
        quotable, related, message_times, profile = await asyncio.gather(
            self._store.load_quotable_messages(
                owner,
                [hit.message.id for hit in found.messages],
                valid_as_of=request.valid_as_of,
                known_as_of=request.known_as_of,
            ),
            self._find_related_sessions(
                owner, request, product, found if refers_to_past else _without_messages(found), ticket_sessions
            ),
            self._load_message_times(owner, request, snapshot, found.results),
            self._load_profile(owner, request, snapshot),
        )
        material = ContextMaterial(
            snapshot=replace(snapshot, profile=profile),
            hits=found.results,
            related=related,
            message_times=message_times,
            refers_to_past=refers_to_past,
            messages=found.messages,
            quotable=quotable,
        )
        return compose_context(request, material, product)

    async def _load_snapshot(self, owner: Owner, request: ContextRequest, message_limit: int) -> ContextSnapshot:
        if not request.is_past:
            return await self._snapshots.load(owner, request.session_id, message_limit)
        return await self._store.load_past_snapshot(
            owner,
            request.session_id,
            message_limit=message_limit,
            valid_as_of=request.valid_as_of,
            known_as_of=request.known_as_of,
        )

    async def _load_profile(self, owner: Owner, request: ContextRequest, snapshot: ContextSnapshot) -> list[Memory]:
        """Return the memories of the profile with the strength and access count of now: the snapshot may be old."""
        if request.is_past:
            return [*snapshot.profile]
        return [*(await self._store.load_retrieval_states(owner, snapshot.profile)).values()]

    async def _search(self, owner: Owner, request: ContextRequest) -> SearchResponse:
        """Search memories and messages for the question; without one nothing is found."""
        if request.question is None:
            return SearchResponse(results=[], took_ms=0.0)
        with SEMANTIC_SEARCH_LATENCY.time():
            return await self._searcher.search(owner, _to_query(request, request.question, include_messages=True))

    async def _add_hits_of_domains(
        self, owner: Owner, request: ContextRequest, found: SearchResponse
    ) -> SearchResponse:
        """Search within the domains of the context as well, where too few hits belong to one.

        Without a question, the hits are the most important memories of each domain.
        """
        if request.question is None:
            return await self._list_domain_memories(owner, request)
        wanted = min(MIN_DOMAIN_HITS, request.top)
        count_by_domain = Counter(hit.memory.domain for hit in found.results)
        scarce = [domain for domain in request.requested_domains if count_by_domain[domain] < wanted]
        if not scarce:
            return found
        query = _to_query(request, request.question)
        with SEMANTIC_SEARCH_LATENCY.time():
            inside = await asyncio.gather(
                *(
                    self._searcher.search(
                        owner, query.model_copy(update={"domain": domain, "limit": max(1, request.top)})
                    )
                    for domain in scarce
                )
            )
        added = [hit for response in inside for hit in response.results]
        hits = {hit.memory.id: hit for hit in [*added, *found.results]}
        return found.model_copy(update={"results": sorted(hits.values(), key=lambda hit: -hit.score)})

    async def _list_domain_memories(self, owner: Owner, request: ContextRequest) -> SearchResponse:
        memories = [
            memory
            for domain in (request.requested_domains if request.top else [])
            for memory in await self._store.list_domain_memories(
                owner, domain, request.top, valid_as_of=request.valid_as_of, known_as_of=request.known_as_of
            )
        ]
        return SearchResponse(results=[SearchHit(memory=memory, score=0.0) for memory in memories], took_ms=0.0)

    async def _find_related_sessions(
        self,
        owner: Owner,
        request: ContextRequest,
        product: ProductProfile,
        found: SearchResponse,
        ticket_sessions: Sequence[str],
    ) -> list[RelatedSession]:
        """Find the sessions of named tickets, those that hits come from, and those whose description shares words.

        Hits weigh by their rank. Of a session without a summary, what held only at its moment is not quoted.
        """
        weights = dict.fromkeys(ticket_sessions, TICKET_WEIGHT)
        memory_sessions = [
            hit.memory.source.session_id for hit in found.results if semantic_score(hit) > MIN_SOURCE_SCORE
        ]
        for ranking in (memory_sessions, [hit.message.session_id for hit in found.messages]):
            for rank, session_id in enumerate(ranking, 1):
                if session_id:
                    weights[session_id] = weights.get(session_id, 0.0) + 1 / rank
        words = [word for word in content_word_prefixes(request.question_text) if len(word) >= MIN_WORD_LENGTH]
        sessions = await self._sessions.find_related_sessions(
            owner,
            excluded_session_id=request.session_id,
            weights=weights,
            words=words[:MAX_QUESTION_WORDS],
            limit=MAX_RELATED_SESSIONS,
            valid_as_of=request.valid_as_of,
            known_as_of=request.known_as_of,
            may_quote=lambda text: not is_temporary_state(text, product.temporary_states),
        )
        return [
            session
            for session in sessions
            if session.relevance_score >= MIN_RELATIVE_SCORE * sessions[0].relevance_score
        ]

    async def _find_ticket_sessions(self, owner: Owner, request: ContextRequest) -> list[str]:
        """Return the ids of other sessions about the tickets that the question names."""
        ticket_ids = find_ticket_ids(request.question_text)
        if not ticket_ids:
            return []
        sessions = await self._sessions.find_ticket_sessions(owner, ticket_ids, limit=MAX_RELATED_SESSIONS)
        return [session_id for session_id in sessions if session_id != request.session_id]

    async def _load_message_times(
        self, owner: Owner, request: ContextRequest, snapshot: ContextSnapshot, hits: Sequence[SearchHit]
    ) -> dict[str, datetime]:
        """Return when the messages of memories were said: of those that hints name, of all if sources are asked for."""
        memories = [hit.memory for hit in hits if request.sources or is_quotable(hit)]
        memories += snapshot.profile if request.sources else []
        message_ids = [message_id for memory in memories for message_id in memory.source.message_ids]
        return await self._store.fetch_message_times(owner, message_ids) if message_ids else {}


def _without_messages(found: SearchResponse) -> SearchResponse:
    return found.model_copy(update={"messages": []})


def _to_query(request: ContextRequest, question: str, *, include_messages: bool = False) -> SearchQuery:
    return SearchQuery(
        query=question,
        valid_as_of=request.valid_as_of,
        known_as_of=request.known_as_of,
        limit=min(
            100, max(MIN_SEARCH_LIMIT, SEARCH_LIMIT_FACTOR * request.top, request.token_budget // TOKENS_PER_HIT)
        ),
        include_messages=include_messages,
        reinforce=False,
        explain=True,
    )
