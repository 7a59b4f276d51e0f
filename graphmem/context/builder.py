"""Puts a context together: what stands, what the question finds, and the window made of both."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Protocol

from cachetools import TTLCache

from graphmem.context import conversation_summary
from graphmem.context.hints import HintSources, build_hints, collect_goals, format_date, style_instructions
from graphmem.context.preamble import PreambleContent, PreambleLine, ensure_question_fits, pack_preamble
from graphmem.context.relevance import (
    content_word_prefixes,
    is_contradicted,
    is_in_scope,
    match_domains,
    refers_to_past_session,
    semantic_score,
)
from graphmem.domain.context_models import ContextRequest, ContextResponse, PatternType, RelatedSession
from graphmem.domain.identity import Owner
from graphmem.domain.memory import Memory
from graphmem.domain.search_models import SearchQuery, SearchResponse
from graphmem.domain.session import MessageRole
from graphmem.domain.times import Clock
from graphmem.metrics import CACHE_HIT_RATE
from graphmem.store.context import ContextStore
from graphmem.store.context_mapping import ContextSnapshot, without_expired

CACHE_SECONDS, CACHE_ENTRIES = 3600, 1000
"""How long what stands is kept, and for how many sessions; the least recently used leaves a full cache (TRUE-25)."""

MIN_SEARCH_LIMIT = 30
SEARCH_LIMIT_FACTOR = 3
"""At least so many memories are looked at for those that fit, and three for each that may be told."""

MIN_DOMAIN_HITS = 3
"""With fewer memories of the domain asked for among those found, the domain is searched alone."""

MAX_RELATED_SESSIONS = 3
MAX_QUESTION_WORDS = 12
MIN_WORD_LENGTH = 4
MIN_RELATIVE_SCORE = 0.5
"""How many other sessions are answered, found by how many words of at least how many letters, none with less than
such a share of the best one's score."""

MIN_MESSAGES, MAX_MESSAGES, TOKENS_PER_MESSAGE = 60, 1_000, 20
"""The latest messages read: as many as could fit into the budget at so many tokens each, within bounds."""

MAX_UNREAD_MESSAGES = 5
"""So many of the latest messages that extraction has not read yet may speak against a memory."""

SESSION_SUMMARY_CHARACTERS = 2_000


class MemorySearcher(Protocol):
    """What finds memories by meaning and words."""

    async def search(self, owner: Owner, query: SearchQuery) -> SearchResponse:
        """Return the memories that answer a query, best first."""


@dataclass(frozen=True, slots=True)
class BuiltContext:
    """A context, and the memories in it that the question recalled."""

    context: ContextResponse
    recalled: Sequence[Memory]


SnapshotKey = tuple[str, str | None, int]
"""Whose context, in which session, with how many messages."""


def make_snapshot_cache(clock: Clock) -> TTLCache[SnapshotKey, ContextSnapshot]:
    """Return an empty cache of what stands: least recently used first out, nothing older than its time (TRUE-25)."""
    return TTLCache(CACHE_ENTRIES, CACHE_SECONDS, timer=lambda: clock().timestamp())


class ContextBuilder:
    """Builds contexts; what does not depend on the question comes from a cache that no write leaves stale."""

    def __init__(self, store: ContextStore, searcher: MemorySearcher, clock: Clock) -> None:
        self._store = store
        self._searcher = searcher
        self._clock = clock
        self._cache = make_snapshot_cache(clock)
        self._lookup_count = self._hit_count = 0

    async def build(self, owner: Owner, request: ContextRequest) -> BuiltContext:
        """Return what to put before the model; raise InvalidInput when the question alone is over the budget."""
        ensure_question_fits(request.question, request.token_budget)
        refers_to_past = refers_to_past_session(request.question)
        snapshot, found = await asyncio.gather(
            self._load_snapshot(owner, request), self._search_memories(owner, request, refers_to_past)
        )
        related = await self._find_related_sessions(owner, request, found, refers_to_past)
        dates = await self._load_message_dates(owner, snapshot, found) if request.sources else {}
        return compose_context(request, snapshot, found, related, dates, refers_to_past=refers_to_past)

    async def _load_snapshot(self, owner: Owner, request: ContextRequest) -> ContextSnapshot:
        count = max(MIN_MESSAGES, min(MAX_MESSAGES, request.token_budget // TOKENS_PER_MESSAGE))
        key = (owner.group_id, request.session_id, count)
        cached = self._cache.get(key)
        snapshot = await self._store.load_snapshot(
            owner, request.session_id, cached, timedelta(seconds=CACHE_SECONDS), count
        )
        self._lookup_count += 1
        if snapshot is cached:
            self._hit_count += 1
        else:
            self._cache[key] = snapshot
        CACHE_HIT_RATE.set(self._hit_count / self._lookup_count)
        return without_expired(snapshot, self._clock())

    async def _search_memories(self, owner: Owner, request: ContextRequest, refers_to_past: bool) -> SearchResponse:
        """Ask for what fits the question, and within its domain alone where too little of that is among it."""
        query = SearchQuery(
            query=request.question,
            limit=min(100, max(MIN_SEARCH_LIMIT, SEARCH_LIMIT_FACTOR * request.top)),
            include_messages=refers_to_past,
            reinforce=False,
            explain=True,
        )
        found = await self._searcher.search(owner, query)
        wanted = min(MIN_DOMAIN_HITS, request.top)
        if request.domain is None or sum(each.memory.domain == request.domain for each in found.results) >= wanted:
            return found
        within = {"domain": request.domain, "limit": max(1, request.top), "include_messages": False}
        inside = await self._searcher.search(owner, query.model_copy(update=within))
        best = {each.memory.id: each for each in [*inside.results, *found.results]}
        return found.model_copy(update={"results": sorted(best.values(), key=lambda each: -each.score)})

    async def _find_related_sessions(
        self, owner: Owner, request: ContextRequest, found: SearchResponse, refers_to_past: bool
    ) -> list[RelatedSession]:
        weights: dict[str, float] = {}
        sources = [each.memory.source.session_id for each in found.results if semantic_score(each) > 0.5]
        for ranking in (sources, [each.message.session_id for each in found.messages]):
            for place, session_id in enumerate(ranking):
                if session_id:
                    weights[session_id] = weights.get(session_id, 0.0) + 1 / (1 + place)
        words = [word for word in content_word_prefixes(request.question) if len(word) >= MIN_WORD_LENGTH]
        related = await self._store.find_related_sessions(
            owner,
            excluded_session_id=request.session_id,
            weights=weights,
            words=words[:MAX_QUESTION_WORDS],
            limit=MAX_RELATED_SESSIONS,
        )
        return [each for each in related if each.relevance_score >= MIN_RELATIVE_SCORE * related[0].relevance_score]

    async def _load_message_dates(
        self, owner: Owner, snapshot: ContextSnapshot, found: SearchResponse
    ) -> dict[str, datetime]:
        memories = [*snapshot.profile, *(each.memory for each in found.results)]
        return await self._store.fetch_message_times(
            owner, [key for each in memories for key in each.source.message_ids]
        )


def compose_context(
    request: ContextRequest,
    snapshot: ContextSnapshot,
    found: SearchResponse,
    related: Sequence[RelatedSession],
    dates: Mapping[str, datetime],
    *,
    refers_to_past: bool,
) -> BuiltContext:
    """Return the context made of what stands and what was found; `dates` tell when messages were said. Pure."""
    near = {each.memory.id: semantic_score(each) for each in found.results}
    candidates = {each.id: each for each in [*(hit.memory for hit in found.results), *snapshot.profile]}
    said = [each.content for each in snapshot.messages if each.role is MessageRole.USER and each.extracted_at is None]
    stale = [
        each
        for each in candidates.values()
        if is_contradicted(each, near.get(each.id, 0.0), request.question, said[-MAX_UNREAD_MESSAGES:])
    ]
    left_out = {each.id for each in stale}
    domains = match_domains(request.question, request.domain, found.results)
    fitting = [
        hit
        for hit in found.results
        if hit.memory.id not in left_out
        and is_in_scope(hit.memory, domains, request.session_id, refers_to_past=refers_to_past)
    ]
    content = PreambleContent(
        profile=_memory_bullets([each for each in snapshot.profile if each.id not in left_out], request, dates),
        relevant=_memory_bullets([each.memory for each in fitting], request, dates),
        top=request.top,
        style_instructions=_style_lines(request, snapshot),
        past_sessions=[_past_session_line(each) for each in related] if refers_to_past else [],
        messages=conversation_summary.message_lines(snapshot.messages),
        summarize_omitted=lambda shown: conversation_summary.summarize_omitted_messages(
            snapshot.session, snapshot.statistics, snapshot.messages, shown
        ),
    )
    window = pack_preamble(request.question, content, request.token_budget)
    told = [candidates[key] for key in window.memory_keys]
    recalled = [hit for hit in fitting if hit.memory.id in set(window.memory_keys)]
    context = ContextResponse(
        preamble=window.preamble,
        token_count=window.token_count,
        conversation_summary=conversation_summary.build_conversation_summary(
            snapshot.session, snapshot.statistics, snapshot.messages
        ),
        recent_messages=conversation_summary.build_recent_messages(snapshot.messages),
        active_contexts=list(snapshot.items),
        user_preferences=list(snapshot.preferences),
        behavioral_patterns=list(snapshot.patterns),
        related_sessions=list(related),
        personalization_hints=build_hints(
            request, snapshot, HintSources(told, recalled, related, stale, refers_to_past)
        ),
        memories=told,
    )
    return BuiltContext(context, [each.memory for each in recalled[: request.top]])


def _memory_bullets(
    memories: Sequence[Memory], request: ContextRequest, dates: Mapping[str, datetime]
) -> list[PreambleLine]:
    """Return one `- ` bullet a memory, with its source and date where they were asked for (CASH-17, QUINN-39)."""
    return [
        PreambleLine(
            each.id,
            f"- {conversation_summary.to_single_line(each.content)}{_source_note(each, dates) if request.sources else ''}",
        )
        for each in memories
    ]


def _source_note(memory: Memory, dates: Mapping[str, datetime]) -> str:
    said = [dates[key] for key in memory.source.message_ids if key in dates]
    where = f", session {memory.source.session_id}" if memory.source.session_id else ""
    return (
        f" (said on {format_date(max(said))}{where})"
        if said
        else f" (noted on {format_date(memory.created_at)}{where})"
    )


def _style_lines(request: ContextRequest, snapshot: ContextSnapshot) -> list[PreambleLine]:
    """Return what is critical beside the profile: how to answer, the user's goals, what they keep asking about."""
    aims = collect_goals(request, snapshot)
    told = [
        *style_instructions(snapshot),
        *([f"The user's goals: {'; '.join(aims)}."] if aims else []),
        *(
            f"{each.pattern_description}."
            for each in snapshot.patterns
            if each.pattern_type is PatternType.SPENDING_CONCERN
        ),
    ]
    return [PreambleLine(sentence, conversation_summary.to_single_line(sentence)) for sentence in dict.fromkeys(told)]


def _past_session_line(session: RelatedSession) -> PreambleLine:
    title = f", {session.title}" if session.title else ""
    about = f"{format_date(session.started_at)}{title}: {conversation_summary.truncate_at_word(session.summary, SESSION_SUMMARY_CHARACTERS)}"
    return PreambleLine(session.session_id, conversation_summary.to_single_line(about))
