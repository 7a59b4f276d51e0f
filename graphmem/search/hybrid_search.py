"""Search by meaning, by keywords and around named entities, over facts and messages."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import chain, islice

from graphmem.memories.entity_store import EntityStore
from graphmem.memories.fact_store import ReinforcementBuffer
from graphmem.memories.names import EntityMention, MentionKind, question_focus
from graphmem.models.embedder import Embedder
from graphmem.models.sentence_transformers import CrossEncoderReranker
from graphmem.runtime.field_types import Vector
from graphmem.runtime.times import Clock
from graphmem.search.bm25 import StemTable, WordScores
from graphmem.search.candidates import Candidates, Ranking, Rows, unit_vector
from graphmem.search.chains import find_chain
from graphmem.search.evidence import (
    EVIDENCE_PER_RESULT,
    NO_SUPPORT,
    FactSupport,
    overview_topic,
    rank_messages,
)
from graphmem.search.fit import CHANNEL_WEIGHTS, fit_features, told_words
from graphmem.search.lookup import EntityNameCache
from graphmem.search.models import (
    Evidence,
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
    RankedFacts,
    apply_rerank_scores,
    explain,
    fill_places,
    find_leading_on,
    rank_facts,
    select_candidates,
    select_fitting,
)
from graphmem.search.resident.copies import ResidentCopies
from graphmem.search.source import CandidateSource, Question
from graphmem.tenants.owners import Owner, split_message_key
from graphmem.tenants.spaces import Reader
from graphmem.tenants.trust import TrustOrder
from graphmem.text.time_expressions import find_time_ranges
from graphmem.text.tokenising import query_terms, tokenize

MIN_CANDIDATES_PER_CHANNEL = 60
"""Minimum candidates requested per channel; a search with a high limit requests three times its limit."""

MAX_EMBEDDED_CHARACTERS = 2_000
"""Maximum part of a question that is embedded, in characters; embedders read no more."""

MIN_RERANKED = 30
"""Minimum facts read by a cross-encoder; for a search with a high limit, three times its limit."""


class HybridSearch:
    """Searches facts and messages through several channels at once."""

    def __init__(
        self,
        sources: ResidentCopies,
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
        """Return the entities that a question names, the most certain first, without those it only refers to."""
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

        At least one channel must be on, and `rerank` needs `can_rerank`. The search opens its own `source` if none is
        given. With `with_persona`, the user's persona replaces the query's. Without `with_evidence`, the messages are
        those that answer the query themselves.
        """
        started = time.perf_counter()
        question = normalise_query(query.query)
        source = source or await self._sources.open(reader)
        if not source.state.groups:
            took_ms = round((time.perf_counter() - started) * 1000, 3)
            return SearchResponse(results=[], reranked=query.rerank, took_ms=took_ms)
        async with await self._prepare(source, question, query) as asked:
            found, messages = await self._find(source, asked, query)
            persona = source.state.persona if with_persona else query.persona
            ranked = await self._rank_facts(asked, query, found, persona, source.state.trust_order)
            leading_on = find_leading_on(ranked.found, {mention.id for mention in asked.named})
            chain = await self._find_chain(source, asked, ranked) if leading_on else []
            candidates = select_candidates(ranked, [*chain, *leading_on], asked.limit)
            if query.rerank:
                ranked = await self._rerank(asked.asked, ranked, candidates, query.limit)
                candidates, chain, leading_on = ranked.order, [], []
            fitting = select_fitting(ranked, candidates)
            selected = fitting if query.cut == "auto" else candidates
            selected = selected[ranked.score[selected] >= (query.min_score or 0.0)]
            best = fill_places(selected, chain, leading_on, query.limit)
            uuids = [ranked.found.facts[row].uuid for row in best]
            if query.include_messages and (query.semantic or query.keyword):
                loaded, (message_hits, evidence) = await asyncio.gather(
                    source.load_memories(uuids, asked.now),
                    self._rank_messages(source, asked, ranked if with_evidence else None, messages, query.limit),
                )
            else:
                loaded, message_hits, evidence = await source.load_memories(uuids, asked.now), [], []
        best = [row for row, uuid in zip(best, uuids, strict=True) if uuid in loaded]
        if query.reinforce:
            answers = {ranked.found.facts[row].memory_id for row in fitting.tolist()}
            self._reinforcement.record(source.state, [memory for memory in loaded.values() if memory.id in answers])
        explanations = explain(ranked, best, source.name) if query.explain else [None] * len(best)
        return SearchResponse(
            results=[
                SearchHit(
                    memory=loaded[ranked.found.facts[row].uuid], score=ranked.score[row].item(), explain=explanation
                )
                for row, explanation in zip(best, explanations, strict=True)
            ],
            messages=message_hits,
            evidence=evidence,
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
        async with await self._prepare(source, question, searched) as asked:
            messages = await source.find_messages(asked)
            hits, _ = await self._rank_messages(source, asked, None, messages, query.limit)
        return MessageSearchResponse(results=hits)

    # Preparation

    async def _prepare(self, source: CandidateSource, question: str, query: SearchQuery) -> Question:
        """Resolve the filters, find the named entities and times, and start to embed the question."""
        now, topic = self._clock(), overview_topic(question, self._languages)
        text = question if topic is None else topic
        entity_ids = await self._entities.resolve_entity_ids(source.state, query.entity) if query.entity else None
        needs_focus = query.semantic and query.include_messages
        mentions = await self._name_cache.find(source, text) if query.graph or needs_focus else []
        time_ranges = await asyncio.to_thread(find_time_ranges, question, now, self._languages)
        texts = [text, question_focus(text, mentions, self._languages) or text] if needs_focus else [text]
        return Question(
            asked=question,
            text=text,
            is_overview=topic is not None,
            now=now,
            filters=query.resolve(entity_ids, now, source.state.trust_order),
            limit=max(MIN_CANDIDATES_PER_CHANNEL, 3 * query.limit),
            words=query_terms(text) if query.keyword else [],
            searches_graph=query.graph,
            named=mentions if query.graph else [],
            time_ranges=time_ranges,
            vectors=asyncio.create_task(self._embed(texts)) if query.semantic else None,
            reads_past=query.valid_as_of is None,
        )

    async def _embed(self, texts: Sequence[str]) -> list[Vector]:
        return await self._embedder.embed([text[:MAX_EMBEDDED_CHARACTERS] for text in texts], query=True)

    async def _find(self, source: CandidateSource, asked: Question, query: SearchQuery) -> tuple[Candidates, list[str]]:
        """Return the facts found by the channels, and the keys of the messages if these are requested."""
        if not query.include_messages:
            return await source.find_facts(asked), []
        return await asyncio.gather(source.find_facts(asked), source.find_messages(asked))

    # Ranking

    async def _rank_facts(
        self,
        asked: Question,
        query: SearchQuery,
        found: Candidates,
        persona: Mapping[str, float],
        order: TrustOrder,
    ) -> RankedFacts:
        """Return the facts found, ranked, with keyword matches in BM25 order by the statistics of all of them."""
        stems = StemTable([fact.stems(self._languages).all for fact in found.facts])
        scores = WordScores.of(tokenize(asked.text, self._languages), stems)
        features = fit_features(asked.text, found, asked.named, self._languages, scores, asked.past)
        weights = self._channel_weights if query.keyword else {**self._channel_weights, "keyword": 0.0}
        if "keyword" in found.channels:
            rows = found.channels["keyword"].rows
            found = replace(found, channels={**found.channels, "keyword": Ranking(rows, scores.scores[rows]).sorted()})
        return rank_facts(found, persona, asked.time_ranges, asked.now, self._rrf_k, weights, features, order)

    async def _find_chain(self, source: CandidateSource, asked: Question, ranked: RankedFacts) -> list[int]:
        """Return the rows of the facts that lead, in order, from a named entity or the user to the answer."""
        named = asked.named
        user = await self._name_cache.find_user(source)
        starts = {mention.id for mention in named} | ({user} if user else set())
        facts, likeness = ranked.found.facts, ranked.features.similarity.tolist()
        told, all_words = told_words(asked.text, facts, named, self._languages)
        return find_chain([fact.entity_ids for fact in facts], told, likeness, starts, all_words)

    async def _rerank(self, text: str, ranked: RankedFacts, rows: Rows, limit: int) -> RankedFacts:
        """Return the best facts in the cross-encoder's order, without the facts that it does not read."""
        assert self._reranker
        read = rows[: max(MIN_RERANKED, 3 * limit)]
        scores = await self._reranker.score(text, [ranked.found.facts[row].content for row in read.tolist()])
        return apply_rerank_scores(ranked, read, scores)

    async def _rank_messages(
        self, source: CandidateSource, asked: Question, answers: RankedFacts | None, found: Sequence[str], limit: int
    ) -> tuple[list[MessageHit], list[Evidence]]:
        """Return up to `limit` of the messages found, and those that support an answer, each best first.

        A message also supports an answer through the `answers` taken from it; without `answers`, no support is
        returned.
        """
        support = NO_SUPPORT if answers is None else FactSupport.of(answers.found, answers.order, asked.past)
        keys = dict.fromkeys(chain(found, *(fact.message_ids for fact in support.facts)))
        texts = await source.load_message_texts(list(keys), await asked.vector(), asked.filters)
        near = texts.take(frozenset(found))
        rank = partial(rank_messages, asked.text, languages=self._languages, is_overview=asked.is_overview)
        best = near.keys_with_scores(rank(NO_SUPPORT, near))
        supporting = texts.keys_with_scores(rank(support, texts)) if answers is not None else {}
        trusted = asked.filters.trust_kinds
        if trusted is None:
            loaded = await source.load_messages([*best][:limit])
        else:
            by_key = await source.load_messages([message.message_id for message in texts.messages])
            loaded = {key: message for key, message in by_key.items() if {*message.stated_by} <= {*trusted}}
            supporting = {key: score for key, score in supporting.items() if key in loaded}
        similarities = {text.message_id: cosine for text, cosine in zip(*near, strict=True)}
        hits = [
            MessageHit(message=loaded[key], score=score, similarity_score=similarity_score(similarities[key]))
            for key, score in best.items()
            if key in loaded
        ]
        return hits[:limit], _describe_evidence(support, islice(supporting.items(), EVIDENCE_PER_RESULT * limit))


def _describe_evidence(support: FactSupport, messages: Iterable[tuple[str, float]]) -> list[Evidence]:
    """Return messages, given by key with scores, as evidence with the memories taken from each."""
    via: dict[str, list[str]] = {}
    for fact in support.facts:
        for key in fact.message_ids:
            via.setdefault(key, []).append(fact.memory_id)
    named = ((key, score, *split_message_key(key)) for key, score in messages)
    return [
        Evidence(
            message_id=message_id,
            score=score,
            via=via.get(key, []),
            space=Owner.from_group_id(group_id).space if group_id else None,
        )
        for key, score, group_id, message_id in named
    ]
