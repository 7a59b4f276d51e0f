"""Building of contexts: loads the snapshot, searches memories and related sessions, and composes them."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta

from cachetools import TTLCache

from graphmem.context.composition import (
    BuiltContext,
    ContextMaterial,
    PackedContext,
    complete_context,
    pack_context,
    select_quotes,
    unread_statements,
)
from graphmem.context.hints import is_personal
from graphmem.context.models import ContextRequest, ContextSnapshot
from graphmem.context.preamble import ensure_question_fits
from graphmem.context.relevance import (
    OTHER_KINDS,
    PLACE,
    content_word_prefixes,
    find_homes,
    find_ticket_ids,
    find_wish,
    is_changeable,
    is_of_domain,
    may_be_no_place,
    other_domains,
    refers_to_past_session,
    semantic_score,
)
from graphmem.context.store import NO_VERSION, ContextStore
from graphmem.context.surroundings import SessionSearch, SurroundingsStore
from graphmem.memories.entity import EntityProfile
from graphmem.memories.filters import FactFilters, known_at_or_now
from graphmem.runtime.metrics import SEMANTIC_SEARCH_LATENCY, HitRate
from graphmem.runtime.times import Clock
from graphmem.search.hybrid_search import HybridSearch
from graphmem.search.models import MessageHit, SearchHit, SearchQuery, SearchResponse
from graphmem.search.source import CandidateSource
from graphmem.tenants.owners import Owner
from graphmem.tenants.profiles import ProductRules, TenantProfiles
from graphmem.tenants.spaces import Reader, ReadScope, scope_of

CACHE_SECONDS = 3600
"""Seconds for which a snapshot is cached."""

CACHE_ENTRIES = 1000
"""Maximum cached snapshots; the least recently used one is evicted."""

SnapshotKey = tuple[str, str, str | None, int]
"""Group ids of the user and of the session, session id, number of messages."""


class SnapshotCache:
    """Loads snapshots; each load asks the store for a newer version and otherwise reuses the cached one."""

    def __init__(self, store: ContextStore, clock: Clock) -> None:
        self._store = store
        self._clock = clock
        self._entries: TTLCache[SnapshotKey, ContextSnapshot] = TTLCache(
            CACHE_ENTRIES, CACHE_SECONDS, timer=lambda: clock().timestamp()
        )
        self._hit_rate = HitRate("context")

    async def load(
        self,
        reader: Reader,
        session_id: str | None,
        message_limit: int,
        *,
        place: Owner | None = None,
        current_version: str | None = None,
    ) -> ContextSnapshot:
        """Return the current snapshot of a user and session, with at most `message_limit` latest messages.

        `place` is the space that shares the session, None for the user's own. `current_version` is the reader's write
        version, if the caller has read it; only a snapshot of that version is cached.
        """
        owner = scope_of(reader).owner
        key = (owner.group_id, (place or owner).group_id, session_id, message_limit)
        now = self._clock()
        cached = self._entries.get(key)
        reusable = cached if cached is not None and now < cached.valid_until else None
        newer = None
        if reusable is None or reusable.version != current_version:
            newer = await self._store.load_snapshot(
                reader,
                session_id,
                place=place,
                message_limit=message_limit,
                valid_until=now + timedelta(seconds=CACHE_SECONDS),
                cached_version=reusable.version if reusable else NO_VERSION,
            )
        if newer is not None and newer.version == current_version:
            self._entries[key] = newer
        self._hit_rate.count(is_hit=newer is None)
        snapshot = newer or reusable
        assert snapshot is not None, "without a cached version the store returns a snapshot"
        return snapshot.as_of(self._clock())

    async def discard_user(self, owner: Owner) -> None:
        """Remove the snapshots of a user; for a space, those of all users who may read it."""
        prefix = f"{owner.tenant}:" if owner.is_space else f"{owner.group_id}\n"
        for key in [key for key in self._entries if f"{key[0]}\n".startswith(prefix)]:
            self._entries.pop(key, None)

    async def count_user(self, owner: Owner) -> int:
        """Return the number of cached snapshots of a user."""
        return sum(key[0] == owner.group_id for key in self._entries)


MIN_SEARCH_LIMIT = 60
"""Minimum memories searched, since not all of them fit the context."""

SEARCH_LIMIT_FACTOR = 3
"""Number of memories searched per memory that may be chosen by relevance."""

TOKENS_PER_HIT = 40
"""Tokens of the budget per memory searched; a memory has some 30."""

MIN_DOMAIN_HITS = 3
"""Number of hits in the requested domain below which a second search is limited to that domain."""

MAX_RELATED_SESSIONS = 3
"""Maximum related sessions."""

MAX_QUESTION_WORDS = 12
"""Maximum question words used to find related sessions; the first ones are taken."""

MIN_WORD_LENGTH = 4
"""Minimum letters of such a word."""

TICKET_WEIGHT = 3.0
"""Weight of a session about a ticket that the question names; more than hits and words together."""

MIN_SOURCE_SCORE = 0.5
"""Similarity above which a memory points to the session it was extracted from."""

MAX_PROFILES = 2
"""Maximum entity profiles in a context."""

MAX_PROFILED_ENTITIES = 10
"""Maximum number of named entities whose profiles are looked up, the most certain ones."""

MAX_REPLACEABLE = 5
"""Maximum memories compared with a wish for something else, the best hits."""

MIN_LEISURE_SIMILARITY = 0.3
"""Minimum cosine similarity to a description of leisure for a text to count as being about it."""

MIN_MESSAGES = 60
MAX_MESSAGES = 1_000
"""Bounds of the number of messages to load."""

TOKENS_PER_MESSAGE = 20
"""Tokens of a short message; as many messages are loaded as could fit into the budget."""


class ContextBuilder:
    """Builds contexts."""

    def __init__(
        self,
        store: ContextStore,
        surroundings: SurroundingsStore,
        snapshots: SnapshotCache,
        searcher: HybridSearch,
        profiles: TenantProfiles,
        clock: Clock,
    ) -> None:
        self._store = store
        self._surroundings = surroundings
        self._snapshots = snapshots
        self._searcher = searcher
        self._profiles = profiles
        self._clock = clock

    async def build(self, reader: Reader, request: ContextRequest) -> BuiltContext:
        """Return the context for a request; raise InvalidInput if the question alone exceeds the budget."""
        ensure_question_fits(request.question_text, request.token_budget)
        message_limit = max(MIN_MESSAGES, min(MAX_MESSAGES, request.token_budget // TOKENS_PER_MESSAGE))
        scope = scope_of(reader)
        product = self._profiles.for_tenant(scope.owner.tenant)
        source = await self._searcher.open(reader)
        snapshot, found, ticket_sessions, profiles = await asyncio.gather(
            self._load_snapshot(source.state, request, message_limit),
            self._search(source, request),
            self._find_ticket_sessions(scope.owner, request),
            self._load_profiles(source, request),
        )
        order = source.state.trust_order
        snapshot = snapshot.trusted_as_much_as(request.min_trust, order).tagged(request.tags)
        messages = [
            hit for hit in found.messages if order.passes(order.least_trusted(hit.message.stated_by), request.min_trust)
        ]
        if not request.requested_domains and snapshot.session:
            request = request.model_copy(update={"domain": snapshot.session.own_domain})
        is_bare = not (snapshot.profile or snapshot.messages)
        hits = await self._add_hits_of_domains(source, request, found.results, is_bare=is_bare)
        refers_to_past = bool(ticket_sessions) or refers_to_past_session(request.question_text)
        if request.question is None and is_bare and not hits:
            messages = await self._load_latest_messages(source.state, request, message_limit)
        has_memories = bool(hits or snapshot.profile)
        quotes = select_quotes(request, snapshot, messages, product, has_memories=has_memories)
        dated = [*(hit.memory for hit in hits), *snapshot.profile] if request.sources else []
        surroundings = await self._surroundings.load(
            reader,
            _relate_sessions(request, product, hits, messages if refers_to_past else [], ticket_sessions),
            message_ids=[hit.message.id for hit in quotes],
            dated_ids=[message_id for memory in dated for message_id in memory.source.message_ids],
            valid_as_of=request.valid_as_of,
            known_as_of=request.known_as_of,
            tags=request.tags,
        )
        if request.min_trust is not None:
            surroundings = replace(surroundings, sessions=[])
        material = ContextMaterial(
            snapshot,
            hits,
            quotes,
            surroundings,
            refers_to_past,
            request.valid_as_of or self._clock(),
            scope.titles,
            profiles,
            order,
            await self._find_other_domains(request, product, hits),
            await self._speaks_of_leisure(request, product, hits),
            await self._find_unclear_homes([request.question_text, *unread_statements(snapshot)]),
            await self._score_replaceable(request, hits),
        )
        packed = pack_context(request, material, product)
        return await self._complete(source, request, material, packed)

    async def _complete(
        self, source: CandidateSource, request: ContextRequest, material: ContextMaterial, packed: PackedContext
    ) -> BuiltContext:
        """Return the context with the current state of its memories and hints: strength, access count, time said.

        Hits already have their current strength; the profile comes from the snapshot, which may be old.
        """
        hit_ids = {hit.memory.id for hit in material.hits}
        of_profile = [memory for memory in packed.memories if memory.id not in hit_ids]
        current, said_at = await source.load_shown(
            [] if request.is_past else of_profile,
            [] if request.sources else packed.named.message_ids,
            self._clock(),
        )
        packed = replace(packed, memories=[current.get(memory.id, memory) for memory in packed.memories])
        return complete_context(
            request, material, packed, material.surroundings.said_at if request.sources else said_at
        )

    async def _load_snapshot(self, state: ReadScope, request: ContextRequest, message_limit: int) -> ContextSnapshot:
        place = _place_of(state, request)
        if not request.is_past:
            return await self._snapshots.load(
                state, request.session_id, message_limit, place=place, current_version=state.write_version
            )
        return await self._store.load_past_snapshot(
            state,
            request.session_id,
            place=place,
            message_limit=message_limit,
            valid_as_of=request.valid_as_of,
            known_as_of=request.known_as_of,
        )

    async def _load_latest_messages(
        self, state: ReadScope, request: ContextRequest, message_limit: int
    ) -> list[MessageHit]:
        """Return the messages of the latest sessions, as a context without memories and without a question."""
        until = min(filter(None, (request.valid_as_of, request.known_as_of)), default=self._clock())
        found = []
        for space, session_id in await self._store.list_latest_sessions(state, until, MAX_RELATED_SESSIONS):
            there = request.model_copy(update={"session_id": session_id, "space": space})
            earlier = await self._load_snapshot(state, there, message_limit)
            said = earlier.trusted_as_much_as(request.min_trust, state.trust_order).messages
            found += [MessageHit(message=message, score=0.0, similarity_score=0.0) for message in said]
        return found

    async def _search(self, source: CandidateSource, request: ContextRequest) -> SearchResponse:
        """Search memories and messages for the question; without one, nothing is found."""
        if request.question is None:
            return SearchResponse(results=[], took_ms=0.0)
        with SEMANTIC_SEARCH_LATENCY.time():
            query = _to_query(request, request.question, include_messages=True)
            return await self._searcher.search(source.state, query, source=source, with_evidence=False)

    async def _load_profiles(self, source: CandidateSource, request: ContextRequest) -> list[EntityProfile]:
        """Return the profiles of the entities that the question names, the most certain first.

        With a minimum trust or tags there are none, since a profile combines several memories.
        """
        if request.question is None or not request.profiles or request.min_trust is not None or request.tags:
            return []
        named = [mention.id for mention in await self._searcher.find_named(source, request.question)]
        times = FactFilters(
            valid_at=request.valid_as_of or self._clock(), known_at=known_at_or_now(request.known_as_of)
        )
        found = await source.load_profiles(named[:MAX_PROFILED_ENTITIES], times) if named else {}
        return [found[entity_id] for entity_id in named if entity_id in found][:MAX_PROFILES]

    async def _add_hits_of_domains(
        self, source: CandidateSource, request: ContextRequest, found: Sequence[SearchHit], *, is_bare: bool
    ) -> Sequence[SearchHit]:
        """Also search within the context's domains that have too few hits.

        Without a question, the hits are the most important memories of each domain; if the context names no domain and
        `is_bare` otherwise, those of all domains.
        """
        if request.question is None:
            listed = await self._list_domain_memories(source.state, request, is_bare=is_bare)
            order = source.state.trust_order
            return [
                hit
                for hit in listed
                if order.passes(hit.memory.source.trust_kind, request.min_trust)
                and (request.tags is None or request.tags.passes(hit.memory.tags))
            ]
        wanted = min(MIN_DOMAIN_HITS, request.top)
        count_by_domain = Counter(hit.memory.domain for hit in found)
        scarce = [domain for domain in request.requested_domains if count_by_domain[domain] < wanted]
        if not scarce:
            return found
        query = _to_query(request, request.question)
        with SEMANTIC_SEARCH_LATENCY.time():
            inside = await asyncio.gather(
                *(
                    self._searcher.search(
                        source.state,
                        query.model_copy(update={"domain": domain, "limit": max(1, request.top)}),
                        source=source,
                    )
                    for domain in scarce
                )
            )
        added = [hit for response in inside for hit in response.results]
        hits = {hit.memory.id: hit for hit in [*added, *found]}
        return sorted(hits.values(), key=lambda hit: -hit.score)

    async def _find_other_domains(
        self, request: ContextRequest, product: ProductRules, hits: Sequence[SearchHit]
    ) -> frozenset[str]:
        """Return the domains of hits that the question clearly does not belong to; all if it names its own."""
        domains = {hit.memory.domain for hit in hits if hit.memory.domain and is_of_domain(hit.memory)}
        if not domains or request.requested_domains:
            return frozenset(domains)
        if request.question is None:
            return frozenset()
        names = list(dict.fromkeys([*domains, *product.known_domains]))
        return other_domains(await self._searcher.text_similarities(request.question, names), domains)

    async def _speaks_of_leisure(
        self, request: ContextRequest, product: ProductRules, hits: Sequence[SearchHit]
    ) -> bool:
        """Return whether the user speaks of free time; only asked where a personal remark is possible."""
        said = request.question_text
        if not said or "?" in said or not any(is_personal(hit.memory) for hit in hits):
            return False
        similarities = await self._searcher.text_similarities(said, product.leisure)
        return max(similarities.values(), default=0.0) >= MIN_LEISURE_SIMILARITY

    async def _score_replaceable(self, request: ContextRequest, hits: Sequence[SearchHit]) -> dict[str, float]:
        """Return the similarity of memories to the question's wish for something else, by id; empty without a wish."""
        wish = find_wish(request.question_text)
        memories = [hit.memory for hit in hits if is_changeable(hit.memory)][:MAX_REPLACEABLE]
        if wish is None or not memories:
            return {}
        cosines = await self._searcher.text_similarities(wish, [memory.content for memory in memories])
        return {memory.id: (1 + cosines[memory.content]) / 2 for memory in memories}

    async def _find_unclear_homes(self, texts: Sequence[str]) -> frozenset[str]:
        """Return the names that the texts give to the user's home and that may be no place."""
        kinds = [PLACE, *OTHER_KINDS]
        similarities = {home: await self._searcher.text_similarities(home, kinds) for home in find_homes(texts)}
        return frozenset(home for home, cosines in similarities.items() if may_be_no_place(cosines))

    async def _list_domain_memories(self, reader: Reader, request: ContextRequest, *, is_bare: bool) -> list[SearchHit]:
        domains: Sequence[str | None] = request.requested_domains or ([None] if is_bare else [])
        memories = [
            memory
            for domain in (domains if request.top else [])
            for memory in await self._store.list_domain_memories(
                reader, domain, request.top, valid_as_of=request.valid_as_of, known_as_of=request.known_as_of
            )
        ]
        return [SearchHit(memory=memory, score=0.0) for memory in memories]

    async def _find_ticket_sessions(self, owner: Owner, request: ContextRequest) -> list[str]:
        """Return the ids of other sessions about the tickets that the question names."""
        ticket_ids = find_ticket_ids(request.question_text)
        if not ticket_ids:
            return []
        sessions = await self._surroundings.find_ticket_sessions(owner, ticket_ids, limit=MAX_RELATED_SESSIONS)
        return [session_id for session_id in sessions if session_id != request.session_id]


def _place_of(reader: Reader, request: ContextRequest) -> Owner | None:
    """Return the space that shares a request's session; raise NotFound if the reader cannot read it."""
    return None if request.space is None else scope_of(reader).find_space(request.space)


def _relate_sessions(
    request: ContextRequest,
    product: ProductRules,
    hits: Sequence[SearchHit],
    messages: Sequence[MessageHit],
    ticket_sessions: Sequence[str],
) -> SessionSearch:
    """Return the related sessions: those of named tickets, those that hits come from, and those that share words.

    Hits weigh by their rank. Temporary states are not quoted from a session without a summary.
    """
    weights = dict.fromkeys(ticket_sessions, TICKET_WEIGHT)
    own_hits = [hit for hit in hits if hit.memory.space is None]
    memory_sessions = [hit.memory.source.session_id for hit in own_hits if semantic_score(hit) > MIN_SOURCE_SCORE]
    message_sessions = [hit.message.session_id for hit in messages if hit.message.space is None]
    for ranking in (memory_sessions, message_sessions):
        for rank, session_id in enumerate(ranking, 1):
            if session_id:
                weights[session_id] = weights.get(session_id, 0.0) + 1 / rank
    words = [word for word in content_word_prefixes(request.question_text) if len(word) >= MIN_WORD_LENGTH]
    return SessionSearch(
        excluded_id=request.session_id,
        weights=weights,
        words=words[:MAX_QUESTION_WORDS],
        limit=MAX_RELATED_SESSIONS,
        may_quote=lambda text: not product.temporary_states.are_met_by(text),
    )


def _to_query(request: ContextRequest, question: str, *, include_messages: bool = False) -> SearchQuery:
    return SearchQuery(
        query=question,
        valid_as_of=request.valid_as_of,
        known_as_of=request.known_as_of,
        min_trust=request.min_trust,
        tags=request.tags,
        limit=min(
            100, max(MIN_SEARCH_LIMIT, SEARCH_LIMIT_FACTOR * request.top, request.token_budget // TOKENS_PER_HIT)
        ),
        include_messages=include_messages,
        reinforce=False,
        explain=True,
    )
