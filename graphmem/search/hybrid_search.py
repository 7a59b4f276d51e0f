"""Search by meaning, by keywords and around named entities, over facts and messages."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import partial

from graphmem.memories.entity_names import EntityMention, MentionKind, question_focus
from graphmem.memories.entity_store import EntityStore
from graphmem.memories.filters import FactFilters
from graphmem.memories.reinforcement import ReinforcementBuffer
from graphmem.models.embedder import Embedder
from graphmem.models.sentence_transformers import CrossEncoderReranker
from graphmem.runtime.field_types import Vector
from graphmem.runtime.times import EPOCH, MICROSECOND, Clock
from graphmem.search.evidence import (
    EVIDENCE_PER_RESULT,
    describe_facts,
    describe_messages,
    overview_topic,
    rank_messages,
)
from graphmem.search.fit import CHANNEL_WEIGHTS, WordScores, fit_features
from graphmem.search.lookup import EntityNameCache
from graphmem.search.models import (
    Evidence,
    MessageCandidate,
    MessageHit,
    MessageSearchQuery,
    MessageSearchResponse,
    SearchHit,
    SearchQuery,
    SearchResponse,
    normalise_query,
    similarity_score,
)
from graphmem.search.ranking import (
    FactsByChannel,
    ScoredFact,
    apply_rerank_scores,
    distinct_facts,
    explain,
    fill_places,
    find_leading_on,
    merge_channels,
    rank_facts,
    rescore_keyword_channel,
    select_candidates,
    select_fitting,
)
from graphmem.search.resident.columns import unit_vector
from graphmem.search.source import CandidateSource, CandidateSources
from graphmem.tenants.owners import Owner, split_message_key
from graphmem.tenants.scopes import Reader
from graphmem.text.lucene import query_terms
from graphmem.text.time_expressions import TimeRange, find_time_ranges

MIN_CANDIDATES_PER_CHANNEL = 60
"""Least number of candidates that a channel is asked for; a search with a high limit asks for three times its limit."""

MAX_GRAPH_ENTITIES = 20
"""Most named entities around which the graph channel searches; the most certain ones are chosen."""

MAX_EMBEDDED_CHARACTERS = 2_000
"""Longest part of a question that is embedded, in characters; embedders read no more."""

MIN_RERANKED = 30
"""Least number of facts that a cross-encoder reads; a search with a high limit has three times its limit read."""

MessagesByChannel = Mapping[str, Sequence[MessageCandidate]]
"""The messages that each channel found, best first."""


@dataclass(frozen=True, slots=True)
class PreparedSearch:
    """What the steps of one search share; `candidates` is the number of rows that a channel is asked for.

    `text` is what is searched for: the question or, if it asks for an overview, its topic. `mentions`, `vectors` and
    `time_ranges` are tasks that several steps await; the first two are None where no step needs them. The vectors are
    those of the text and, for a search with messages, of its focus. `reads_past` says whether a past time that the
    question names is searched, because the caller names no valid time.
    """

    source: CandidateSource
    question: str
    text: str
    is_overview: bool
    now: datetime
    filters: FactFilters
    candidates: int
    words: list[str]
    searches_graph: bool
    mentions: asyncio.Task[list[EntityMention]] | None
    vectors: asyncio.Task[list[Vector]] | None
    time_ranges: asyncio.Task[list[TimeRange]]
    reads_past: bool

    async def question_vector(self) -> Vector | None:
        """Return the vector of the question; None where no channel searches by meaning."""
        return (await self.vectors)[0] if self.vectors else None

    async def past(self) -> TimeRange | None:
        """Return the past time that is asked about, from the start of the first one named to the end of the last."""
        now = int(self.now.timestamp() * 1000)
        past = [named for named in await self.time_ranges if named.end <= now] if self.reads_past else []
        if not past:
            return None
        return TimeRange(min(named.start for named in past), max(named.end for named in past))


class HybridSearch:
    """Searches facts and messages through several channels at once."""

    def __init__(
        self,
        sources: CandidateSources,
        entities: EntityStore,
        name_cache: EntityNameCache,
        reinforcement: ReinforcementBuffer,
        embedder: Embedder,
        clock: Clock,
        rrf_k: int = 60,
        channel_weights: Mapping[str, float] = CHANNEL_WEIGHTS,
        reranker: CrossEncoderReranker | None = None,
        languages: Sequence[str] = ("en",),
    ) -> None:
        self._sources = sources
        self._entities = entities
        self._name_cache = name_cache
        self._reinforcement = reinforcement
        self._embedder = embedder
        self._clock = clock
        self._rrf_k = rrf_k
        self._channel_weights = channel_weights
        self._reranker = reranker
        self._languages = tuple(languages)

    @property
    def can_rerank(self) -> bool:
        """Whether a cross-encoder is configured."""
        return self._reranker is not None

    async def open(self, reader: Reader) -> CandidateSource:
        """Return the source of candidates for the searches of one request."""
        return await self._sources.open(reader)

    async def find_named(self, source: CandidateSource, question: str) -> list[EntityMention]:
        """Return the entities that a question names, the surest first, without those that it only refers to."""
        text = overview_topic(question, self._languages) or question
        mentions = await self._name_cache.find(source, text)
        return [mention for mention in mentions if mention.kind is not MentionKind.SELF_REFERENCE]

    async def text_similarities(self, question: str, texts: Sequence[str]) -> dict[str, float]:
        """Return the cosines of a question with texts, such as names of domains."""
        (asked,) = await self._embedder.embed([question[:MAX_EMBEDDED_CHARACTERS]], query=True)
        vectors = await self._embedder.embed(texts)
        question_vector, *units = (unit_vector(vector, len(vector)) for vector in (asked, *vectors))
        return {text: float(question_vector @ unit) for text, unit in zip(texts, units, strict=True)}

    async def search(
        self,
        reader: Reader,
        query: SearchQuery,
        *,
        source: CandidateSource | None = None,
        with_persona: bool = False,
        with_evidence: bool = True,
    ) -> SearchResponse:
        """Return the memories that answer a query, best first; raise InvalidInput for an empty query.

        At least one channel must be on, and `rerank` needs `can_rerank`. The search opens its `source` if the request
        has none. With `with_persona` the persona of the user replaces that of the query. Without `with_evidence` the
        messages are those that answer the query themselves.
        """
        started = time.perf_counter()
        question = normalise_query(query.query)
        source = source or await self._sources.open(reader)
        if not source.state.groups:
            took_ms = round((time.perf_counter() - started) * 1000, 3)
            return SearchResponse(results=[], reranked=query.rerank, took_ms=took_ms)
        async with self._prepare(source, question, query) as search:
            (facts, mentions), messages = await asyncio.gather(
                self._find_facts(search),
                self._find_messages(search) if query.include_messages else _find_nothing(),
            )
            facts, ranked = await self._rank_facts(
                search, query, facts, mentions, search.source.state.persona if with_persona else query.persona
            )
            leading_on = find_leading_on(facts, {mention.id for mention in mentions})
            candidates = select_candidates(ranked, leading_on, search.candidates)
            if query.rerank:
                ranked = candidates = await self._rerank(search.question, candidates, query.limit)
                leading_on = []
            fitting = select_fitting(candidates)
            selected = [
                scored
                for scored in (fitting if query.cut == "auto" else candidates)
                if scored.score >= (query.min_score or 0.0)
            ]
            best = fill_places(selected, leading_on, query.limit)
            loaded, (message_hits, evidence) = await asyncio.gather(
                search.source.load_memories([scored.fact.uuid for scored in best], search.now),
                self._rank_messages(search, ranked if with_evidence else None, messages, query.limit),
            )
        best = [scored for scored in best if scored.fact.uuid in loaded]
        if query.reinforce:
            answers = {scored.fact.memory_id for scored in fitting}
            self._reinforcement.record(source.state, [memory for memory in loaded.values() if memory.id in answers])
        explanations = explain(best, facts, search.source.name) if query.explain else [None] * len(best)
        return SearchResponse(
            results=[
                SearchHit(memory=loaded[scored.fact.uuid], score=scored.score, explain=explanation)
                for scored, explanation in zip(best, explanations, strict=True)
            ],
            messages=message_hits,
            evidence=[_by_message_id(found) for found in evidence[: EVIDENCE_PER_RESULT * query.limit]],
            reranked=query.rerank,
            took_ms=round((time.perf_counter() - started) * 1000, 3),
        )

    async def search_messages(self, reader: Reader, query: MessageSearchQuery) -> MessageSearchResponse:
        """Return the messages that answer a query, best first; raise InvalidInput for an empty query."""
        searched = SearchQuery(
            query=query.query,
            limit=query.limit,
            valid_as_of=query.valid_as_of,
            known_as_of=query.known_as_of,
            graph=False,
        )
        question = normalise_query(query.query)
        source = await self._sources.open(reader)
        if not source.state.groups:
            return MessageSearchResponse(results=[])
        async with self._prepare(source, question, searched) as search:
            messages = await self._find_messages(search)
            hits, _ = await self._rank_messages(search, None, messages, query.limit)
        return MessageSearchResponse(results=hits)

    # Preparing

    @asynccontextmanager
    async def _prepare(
        self, source: CandidateSource, question: str, query: SearchQuery
    ) -> AsyncIterator[PreparedSearch]:
        """Resolve the filters, and start to find named entities and times and to embed the question.

        Tasks that still run at the end, because another step failed, are cancelled.
        """
        now = self._clock()
        topic = overview_topic(question, self._languages)
        text = question if topic is None else topic
        scope = source.state
        entity_ids = await self._entities.resolve_entity_ids(scope, query.entity) if query.entity else None
        needs_focus = query.semantic and query.include_messages
        finds_names = query.graph or needs_focus
        mentions = asyncio.create_task(self._name_cache.find(source, text)) if finds_names else None
        vectors = asyncio.create_task(self._embed(text, mentions if needs_focus else None)) if query.semantic else None
        time_ranges = asyncio.create_task(asyncio.to_thread(find_time_ranges, question, now, self._languages))
        search = PreparedSearch(
            source=source,
            question=question,
            text=text,
            is_overview=topic is not None,
            now=now,
            filters=query.resolve(entity_ids, now, source.state.trust_order),
            candidates=max(MIN_CANDIDATES_PER_CHANNEL, 3 * query.limit),
            words=query_terms(text) if query.keyword else [],
            searches_graph=query.graph,
            mentions=mentions,
            vectors=vectors,
            time_ranges=time_ranges,
            reads_past=query.valid_as_of is None,
        )
        tasks = [task for task in (mentions, vectors, time_ranges) if task]
        try:
            yield search
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def _embed(self, text: str, mentions: asyncio.Task[list[EntityMention]] | None) -> list[Vector]:
        """Return the vector of a question and, with its named entities, that of its focus."""
        texts = [text]
        if mentions is not None:
            texts.append(question_focus(text, await mentions, self._languages) or text)
        return await self._embedder.embed([text[:MAX_EMBEDDED_CHARACTERS] for text in texts], query=True)

    # Channels

    async def _find_facts(self, search: PreparedSearch) -> tuple[FactsByChannel, list[EntityMention]]:
        """Return the facts that each channel finds, and the entities that the question names.

        If the question names a past time, they include the facts that held at some time in it.
        """
        (current, mentions), past = await asyncio.gather(
            self._ask_channels(search), self._ask_channels_for_past(search)
        )
        return merge_channels(current, past), mentions

    async def _ask_channels_for_past(self, search: PreparedSearch) -> FactsByChannel:
        """Return what each channel finds of what held in the past time that the question names, if it names one."""
        past = await search.past()
        if past is None or search.filters.any_validity:
            return {}
        start, end = (EPOCH + timedelta(milliseconds=time) for time in (past.start, past.end))
        filters = replace(search.filters, valid_since=start, valid_at=end - MICROSECOND)
        found, _ = await self._ask_channels(replace(search, filters=filters))
        return found

    async def _ask_channels(self, search: PreparedSearch) -> tuple[FactsByChannel, list[EntityMention]]:
        """Return the facts that each channel finds with the filters, and the entities that the question names."""
        by_vector, by_words, (near_entities, mentions), vector = await asyncio.gather(
            self._find_facts_by_vector(search),
            self._find_facts_by_words(search),
            self._find_facts_around_named(search),
            search.question_vector(),
        )
        return await self._add_similarities(search, {**by_vector, **by_words, **near_entities}, vector), mentions

    async def _find_facts_by_vector(self, search: PreparedSearch) -> FactsByChannel:
        vector = await search.question_vector()
        if vector is None:
            return {}
        found = await search.source.find_facts_by_vector(vector, search.filters, search.candidates)
        return {"semantic": found}

    async def _find_facts_by_words(self, search: PreparedSearch) -> FactsByChannel:
        if not search.words:
            return {}
        found = await search.source.find_facts_by_text(search.words, search.filters, search.candidates)
        return {"keyword": found}

    async def _find_facts_around_named(self, search: PreparedSearch) -> tuple[FactsByChannel, list[EntityMention]]:
        """Search around the named entities, and return these too."""
        if search.mentions is None or not search.searches_graph:
            return {}, []
        mentions, vector = await search.mentions, await search.question_vector()
        named = [mention.id for mention in mentions if mention.kind is not MentionKind.SELF_REFERENCE]
        found = await search.source.find_facts_around_entities(
            named[:MAX_GRAPH_ENTITIES], vector, search.filters, search.candidates
        )
        return {"graph": found}, mentions

    async def _add_similarities(
        self, search: PreparedSearch, found: FactsByChannel, vector: Vector | None
    ) -> FactsByChannel:
        """Return the facts found with their similarity to the question, where a channel did not compute it."""
        if vector is None:
            return found
        pool = [fact for facts in found.values() for fact in facts]
        known = {fact.uuid: fact.similarity for fact in pool if fact.similarity is not None}
        others = {fact.uuid for fact in pool} - known.keys()
        computed = await search.source.fact_similarities(others, [vector])
        known |= {uuid: similarity for uuid, (similarity,) in computed.items()}
        return {
            channel: [
                fact if fact.similarity is not None else fact._replace(similarity=known.get(fact.uuid))
                for fact in facts
            ]
            for channel, facts in found.items()
        }

    async def _find_messages(self, search: PreparedSearch) -> MessagesByChannel:
        by_vector, by_words = await asyncio.gather(
            self._find_messages_by_vector(search), self._find_messages_by_words(search)
        )
        return {**by_vector, **by_words}

    async def _find_messages_by_vector(self, search: PreparedSearch) -> MessagesByChannel:
        if search.vectors is None:
            return {}
        vector, *_ = await search.vectors
        found = await search.source.find_messages_by_vector(vector, search.filters, search.candidates)
        return {"semantic": found}

    async def _find_messages_by_words(self, search: PreparedSearch) -> MessagesByChannel:
        if not search.words:
            return {}
        found = await search.source.find_messages_by_words(search.words, search.filters, search.candidates)
        return {"keyword": found}

    # Ranking

    async def _rank_facts(
        self,
        search: PreparedSearch,
        query: SearchQuery,
        found: FactsByChannel,
        mentions: Sequence[EntityMention],
        persona: Mapping[str, float],
    ) -> tuple[FactsByChannel, list[ScoredFact]]:
        """Return the facts found, those by keywords in the order of BM25, and all of them ranked."""
        time_ranges, past = await search.time_ranges, await search.past()
        pool = distinct_facts(found)
        scores = WordScores.of(search.text, pool, self._languages)
        features = fit_features(search.text, pool, mentions, self._languages, scores, past)
        weights = self._channel_weights if query.keyword else {**self._channel_weights, "keyword": 0.0}
        facts = rescore_keyword_channel(found, scores)
        order = search.source.state.trust_order
        return facts, rank_facts(facts, persona, time_ranges, search.now, self._rrf_k, weights, features, order)

    async def _rerank(self, text: str, ranked: Sequence[ScoredFact], limit: int) -> list[ScoredFact]:
        """Return the best facts in the order of the cross-encoder; the facts that it does not read are dropped."""
        assert self._reranker
        read = ranked[: max(MIN_RERANKED, 3 * limit)]
        scores = await self._reranker.score(text, [scored.fact.text.content for scored in read])
        return apply_rerank_scores(read, scores)

    async def _rank_messages(
        self,
        search: PreparedSearch,
        answers: Sequence[ScoredFact] | None,
        found: MessagesByChannel,
        limit: int,
    ) -> tuple[list[MessageHit], list[Evidence]]:
        """Return up to `limit` of the messages found, and all messages that support an answer, each best first.

        A message also supports an answer through the `answers` that were taken from it; no support is returned without
        them. The ids of evidence are keys.
        """
        if not found:
            return [], []
        ranked = answers or []
        found_ids = dict.fromkeys(message.message_id for messages in found.values() for message in messages)
        source_ids = dict.fromkeys(message_id for scored in ranked for message_id in scored.fact.message_ids)
        vectors = await search.vectors if search.vectors else []
        fact_similarities, message_similarities, contents = await asyncio.gather(
            search.source.fact_similarities(
                [scored.fact.uuid for scored in ranked], vectors if len(vectors) > 1 else []
            ),
            search.source.message_similarities(found_ids | source_ids, vectors[:1]),
            search.source.load_message_contents(list(found_ids | source_ids), search.filters),
        )
        cosines = {message_id: cosine for message_id, (cosine,) in message_similarities.items()}
        past = await search.past()
        facts = describe_facts([scored.fact for scored in ranked], fact_similarities, past)
        messages = describe_messages(search.text, contents, cosines)
        rank = partial(rank_messages, search.text, languages=self._languages, is_overview=search.is_overview)
        found_messages = [message for message in messages if message.message_id in found_ids]
        best, supporting = rank([], found_messages), rank(facts, messages) if answers is not None else []
        trusted = search.filters.trust_kinds
        if trusted is None:
            best = best[:limit]
        by_id = await search.source.load_messages([hit.message_id for hit in (best if trusted is None else messages)])
        if trusted is not None:
            passing = {key for key, message in by_id.items() if {*message.stated_by} <= {*trusted}}
            best = [hit for hit in best if hit.message_id in passing][:limit]
            supporting = [hit for hit in supporting if hit.message_id in passing]
        hits = [
            MessageHit(
                message=by_id[hit.message_id],
                score=hit.score,
                similarity_score=similarity_score(cosines.get(hit.message_id, 0.0)),
            )
            for hit in best
            if hit.message_id in by_id
        ]
        return hits, supporting


def _by_message_id(evidence: Evidence) -> Evidence:
    """Return evidence with the id of its message for its key."""
    group_id, message_id = split_message_key(evidence.message_id)
    if not group_id:
        return evidence
    return evidence.model_copy(update={"message_id": message_id, "space": Owner.from_group_id(group_id).space})


async def _find_nothing() -> MessagesByChannel:
    return {}
