"""Puts a context together: what stands, what the question finds, and the window made of both."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Protocol

from cachetools import TTLCache

from graphmem.context import summary
from graphmem.context.hints import Told, dated, goals, hints, instructions
from graphmem.context.relevance import content_words, fits, fitting_domains, likeness, mentions_earlier_talk, outdated
from graphmem.context.window import Line, Material, pack, require_room
from graphmem.domain.context import Context, ContextRequest, PatternType, RelatedSession
from graphmem.domain.identity import Owner
from graphmem.domain.memory import Memory
from graphmem.domain.recall import SearchAnswer, SearchQuery
from graphmem.domain.session import Role
from graphmem.domain.times import Clock
from graphmem.metrics import CACHE_HIT_RATE
from graphmem.store.context import ContextStore
from graphmem.store.context_rows import Standing, held_until

CACHE_SECONDS, CACHE_ENTRIES = 3600, 1000
"""How long what stands is kept, and for how many sessions; the least recently used leaves a full cache (TRUE-25)."""

LEAST_FOUND = 30
FOUND_PER_TOLD = 3
"""At least so many memories are looked at for those that fit, and three for each that may be told."""

ENOUGH_WITHIN = 3
"""With fewer memories of the domain asked for among those found, the domain is searched alone."""

MOST_RELATED = 3
MOST_WORDS = 12
LEAST_WORD = 4
RELATED_SHARE = 0.5
"""How many other sessions are answered, found by how many words of at least how many letters, none with less than
such a share of the best one's score."""

LEAST_MESSAGES, MOST_MESSAGES, TOKENS_A_MESSAGE = 60, 1_000, 20
"""The latest messages read: as many as could fit into the budget at so many tokens each, within bounds."""

UNREAD = 5
"""So many of the latest messages that extraction has not read yet may speak against a memory."""

TALK_CHARACTERS = 2_000


class Recall(Protocol):
    """What finds memories by meaning and words."""

    async def search(self, owner: Owner, query: SearchQuery) -> SearchAnswer:
        """Return the memories that answer a query, best first."""


@dataclass(frozen=True, slots=True)
class Built:
    """A context, and the memories in it that the question recalled."""

    context: Context
    recalled: Sequence[Memory]


StandingKey = tuple[str, str | None, int]
"""Whose context, in which session, with how many messages."""


def standing_cache(clock: Clock) -> TTLCache[StandingKey, Standing]:
    """Return an empty cache of what stands: least recently used first out, nothing older than its time (TRUE-25)."""
    return TTLCache(CACHE_ENTRIES, CACHE_SECONDS, timer=lambda: clock().timestamp())


class ContextBuilder:
    """Builds contexts; what does not depend on the question comes from a cache that no write leaves stale."""

    def __init__(self, store: ContextStore, recall: Recall, clock: Clock) -> None:
        self._store = store
        self._recall = recall
        self._clock = clock
        self._cache = standing_cache(clock)
        self._asked = self._held = 0

    async def build(self, owner: Owner, request: ContextRequest) -> Built:
        """Return what to put before the model; raise InvalidInput when the question alone is over the budget."""
        require_room(request.question, request.token_budget)
        earlier = mentions_earlier_talk(request.question)
        standing, found = await asyncio.gather(self._standing(owner, request), self._search(owner, request, earlier))
        related = await self._related(owner, request, found, earlier)
        dates = await self._dates(owner, standing, found) if request.sources else {}
        return compose(request, standing, found, related, dates, earlier=earlier)

    async def _standing(self, owner: Owner, request: ContextRequest) -> Standing:
        count = max(LEAST_MESSAGES, min(MOST_MESSAGES, request.token_budget // TOKENS_A_MESSAGE))
        key = (owner.group_id, request.session_id, count)
        held = self._cache.get(key)
        standing = await self._store.standing(owner, request.session_id, held, timedelta(seconds=CACHE_SECONDS), count)
        self._asked += 1
        if standing is held:
            self._held += 1
        else:
            self._cache[key] = standing
        CACHE_HIT_RATE.set(self._held / self._asked)
        return held_until(standing, self._clock())

    async def _search(self, owner: Owner, request: ContextRequest, earlier: bool) -> SearchAnswer:
        """Ask for what fits the question, and within its domain alone where too little of that is among it."""
        query = SearchQuery(
            query=request.question,
            limit=min(100, max(LEAST_FOUND, FOUND_PER_TOLD * request.top)),
            include_messages=earlier,
            reinforce=False,
            explain=True,
        )
        found = await self._recall.search(owner, query)
        wanted = min(ENOUGH_WITHIN, request.top)
        if request.domain is None or sum(each.memory.domain == request.domain for each in found.results) >= wanted:
            return found
        within = {"domain": request.domain, "limit": max(1, request.top), "include_messages": False}
        inside = await self._recall.search(owner, query.model_copy(update=within))
        best = {each.memory.id: each for each in [*inside.results, *found.results]}
        return found.model_copy(update={"results": sorted(best.values(), key=lambda each: -each.score)})

    async def _related(
        self, owner: Owner, request: ContextRequest, found: SearchAnswer, earlier: bool
    ) -> list[RelatedSession]:
        weights: dict[str, float] = {}
        sources = [each.memory.source.session_id for each in found.results if likeness(each) > 0.5]
        for ranking in (sources, [each.message.session_id for each in found.messages]):
            for place, session_id in enumerate(ranking):
                if session_id:
                    weights[session_id] = weights.get(session_id, 0.0) + 1 / (1 + place)
        words = [word for word in content_words(request.question) if len(word) >= LEAST_WORD]
        related = await self._store.related_sessions(
            owner, besides=request.session_id, weights=weights, words=words[:MOST_WORDS], limit=MOST_RELATED
        )
        return [each for each in related if each.relevance_score >= RELATED_SHARE * related[0].relevance_score]

    async def _dates(self, owner: Owner, standing: Standing, found: SearchAnswer) -> dict[str, datetime]:
        memories = [*standing.profile, *(each.memory for each in found.results)]
        return await self._store.said_at(owner, [key for each in memories for key in each.source.message_ids])


def compose(
    request: ContextRequest,
    standing: Standing,
    found: SearchAnswer,
    related: Sequence[RelatedSession],
    dates: Mapping[str, datetime],
    *,
    earlier: bool,
) -> Built:
    """Return the context made of what stands and what was found; `dates` tell when messages were said. Pure."""
    near = {each.memory.id: likeness(each) for each in found.results}
    candidates = {each.id: each for each in [*(hit.memory for hit in found.results), *standing.profile]}
    said = [each.content for each in standing.messages if each.role is Role.USER and each.extracted_at is None]
    stale = [
        each for each in candidates.values() if outdated(each, near.get(each.id, 0.0), request.question, said[-UNREAD:])
    ]
    left_out = {each.id for each in stale}
    domains = fitting_domains(request.question, request.domain, found.results)
    fitting = [
        hit
        for hit in found.results
        if hit.memory.id not in left_out and fits(hit.memory, domains, request.session_id, earlier=earlier)
    ]
    material = Material(
        profile=_bullets([each for each in standing.profile if each.id not in left_out], request, dates),
        relevant=_bullets([each.memory for each in fitting], request, dates),
        top=request.top,
        manner=_manner(request, standing),
        talks=[_talk(each) for each in related] if earlier else [],
        messages=summary.lines(standing.messages),
        rest=lambda shown: summary.rest(standing.session, standing.figures, standing.messages, shown),
    )
    window = pack(request.question, material, request.token_budget)
    told = [candidates[key] for key in window.memory_keys]
    recalled = [hit for hit in fitting if hit.memory.id in set(window.memory_keys)]
    context = Context(
        preamble=window.preamble,
        token_count=window.token_count,
        conversation_summary=summary.conversation_summary(standing.session, standing.figures, standing.messages),
        recent_messages=summary.recent_messages(standing.messages),
        active_contexts=list(standing.items),
        user_preferences=list(standing.preferences),
        behavioral_patterns=list(standing.patterns),
        related_sessions=list(related),
        personalization_hints=hints(request, standing, Told(told, recalled, related, stale, earlier)),
        memories=told,
    )
    return Built(context, [each.memory for each in recalled[: request.top]])


def _bullets(memories: Sequence[Memory], request: ContextRequest, dates: Mapping[str, datetime]) -> list[Line]:
    """Return one `- ` bullet a memory, with its source and date where they were asked for (CASH-17, QUINN-39)."""
    return [
        Line(each.id, f"- {summary.one_line(each.content)}{_source(each, dates) if request.sources else ''}")
        for each in memories
    ]


def _source(memory: Memory, dates: Mapping[str, datetime]) -> str:
    said = [dates[key] for key in memory.source.message_ids if key in dates]
    where = f", session {memory.source.session_id}" if memory.source.session_id else ""
    return f" (said on {dated(max(said))}{where})" if said else f" (noted on {dated(memory.created_at)}{where})"


def _manner(request: ContextRequest, standing: Standing) -> list[Line]:
    """Return what is critical beside the profile: how to answer, the user's goals, what they keep asking about."""
    aims = goals(request, standing)
    told = [
        *instructions(standing),
        *([f"The user's goals: {'; '.join(aims)}."] if aims else []),
        *(
            f"{each.pattern_description}."
            for each in standing.patterns
            if each.pattern_type is PatternType.SPENDING_CONCERN
        ),
    ]
    return [Line(sentence, summary.one_line(sentence)) for sentence in dict.fromkeys(told)]


def _talk(session: RelatedSession) -> Line:
    title = f", {session.title}" if session.title else ""
    about = f"{dated(session.started_at)}{title}: {summary.clipped(session.summary, TALK_CHARACTERS)}"
    return Line(session.session_id, summary.one_line(about))
