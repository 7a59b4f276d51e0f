"""The semantic path: channels side by side, fused, ranked, cut; reinforcement is written behind."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping, Sequence
from datetime import datetime
from operator import attrgetter
from typing import NamedTuple

from graphmem.domain.identity import Owner
from graphmem.domain.search_candidates import FactCandidate, MessageCandidate
from graphmem.domain.search_models import (
    ChannelRank,
    Explanation,
    MessageSearchQuery,
    MessageSearchResponse,
    SearchHit,
    SearchQuery,
    SearchResponse,
)
from graphmem.domain.times import Clock
from graphmem.embedding import Embedder
from graphmem.errors import InvalidInput
from graphmem.retrieval.bm25 import bm25_scores
from graphmem.retrieval.channels import ChannelQuery, SearchChannels
from graphmem.retrieval.entity_name_cache import EntityNameCache
from graphmem.retrieval.message_search import EvidenceCandidates, MessageRanker
from graphmem.retrieval.rank_fusion import max_rrf_score, reciprocal_rank_fusion
from graphmem.retrieval.reinforcement import ReinforcementBuffer
from graphmem.retrieval.rerank import CrossEncoderReranker
from graphmem.retrieval.score_factors import ScoreFactors, score_factors
from graphmem.retrieval.search_preparer import SearchPreparer
from graphmem.store.entities import EntityStore
from graphmem.store.episodes import EpisodeStore
from graphmem.store.search import SearchStore
from graphmem.text.time_expressions import TimeRange, find_time_ranges
from graphmem.text.tokenising import tokenize

CHANNEL_WEIGHTS = {"semantic": 0.5, "keyword": 1.0, "graph": 0.1}
EVIDENCE_PER_RESULT = 5
MIN_RERANKED = 30

HitsByChannel = Mapping[str, Sequence[FactCandidate]]

_by_score = attrgetter("score")


class ScoredFact(NamedTuple):
    """A fact with its fused score and what multiplies it to its final score.

    What a cross-encoder says stands for the fused score where there is one.
    """

    fact: FactCandidate
    score: float
    rrf: float
    factors: ScoreFactors
    rerank: float | None = None


class HybridSearch:
    """Search by meaning, words and neighbourhood, over facts and messages."""

    def __init__(
        self,
        store: SearchStore,
        entities: EntityStore,
        episodes: EpisodeStore,
        name_cache: EntityNameCache,
        reinforcement: ReinforcementBuffer,
        embedder: Embedder,
        clock: Clock,
        rrf_k: int = 60,
        reranker: CrossEncoderReranker | None = None,
        languages: Sequence[str] = ("en",),
    ) -> None:
        self._store = store
        self._channels = SearchChannels(store)
        self._preparer = SearchPreparer(entities, name_cache, embedder, clock, tuple(languages))
        self._messages = MessageRanker(store, episodes, tuple(languages))
        self._reinforcement = reinforcement
        self._k = rrf_k
        self._reranker = reranker
        self._languages = tuple(languages)

    async def search(self, owner: Owner, query: SearchQuery) -> SearchResponse:
        """Return what answers the query, best first; raise InvalidInput for one that cannot be asked."""
        started = time.perf_counter()
        if not (query.semantic or query.keyword or query.graph):
            raise InvalidInput("Every channel is switched off: leave semantic, keyword or graph on.")
        if query.rerank and self._reranker is None:
            raise InvalidInput("No cross-encoder is configured: set GRAPHMEM_RERANK_MODEL, or leave rerank off.")
        prepared = await self._preparer.prepare(owner, query)
        hits_by_channel, messages, time_ranges = await asyncio.gather(
            self._facts(prepared.channel_query),
            self._channels.messages(prepared.channel_query) if query.include_messages else _no_messages(),
            asyncio.to_thread(find_time_ranges, prepared.text, prepared.now, self._languages),
        )
        ranked = self._rank(hits_by_channel, query, time_ranges, prepared.now)
        if query.rerank:
            ranked = await self._rerank(prepared.text, ranked, query.limit)
        chosen = [each for each in ranked if each.score >= (query.min_score or 0.0)][: query.limit]
        memories, (hits, evidence) = await asyncio.gather(
            self._store.load_memories([each.fact.uuid for each in chosen], prepared.now),
            self._messages.rank(prepared, [each.fact for each in ranked], messages, query.limit),
        )
        if query.reinforce:
            self._reinforcement.record(owner, memories)
        return SearchResponse(
            results=[
                SearchHit(
                    memory=memory, score=each.score, explain=_explain(each, hits_by_channel) if query.explain else None
                )
                for each, memory in zip(chosen, memories, strict=True)
            ],
            messages=hits,
            evidence=evidence[: EVIDENCE_PER_RESULT * query.limit],
            took_ms=round((time.perf_counter() - started) * 1000, 3),
        )

    async def messages(self, owner: Owner, query: MessageSearchQuery) -> MessageSearchResponse:
        """Return the messages that answer a query, best first."""
        prepared = await self._preparer.prepare(owner, SearchQuery(query=query.query, limit=query.limit, graph=False))
        hits_by_channel = await self._channels.messages(prepared.channel_query)
        hits, _ = await self._messages.rank(prepared, [], hits_by_channel, query.limit)
        return MessageSearchResponse(results=hits)

    async def evidence_candidates(self, owner: Owner, query: SearchQuery) -> EvidenceCandidates:
        """Return what the order of evidence is made from, for those who measure it."""
        prepared = await self._preparer.prepare(owner, query)
        hits_by_channel, messages = await asyncio.gather(
            self._facts(prepared.channel_query), self._channels.messages(prepared.channel_query)
        )
        pool = {fact.uuid: fact for facts in hits_by_channel.values() for fact in facts}
        return await self._messages.evidence_candidates(prepared, list(pool.values()), messages)

    async def _facts(self, channel_query: ChannelQuery) -> dict[str, list[FactCandidate]]:
        """Return what the channels find; the order by words is that of the candidates' own statistics."""
        found = await self._channels.facts(channel_query)
        if "keyword" not in found:
            return found
        pool = {fact.uuid: fact for facts in found.values() for fact in facts}
        by_words = bm25_scores(
            tokenize(channel_query.keyword_text, self._languages),
            [tokenize(fact.text, self._languages) for fact in pool.values()],
        )
        scores = dict(zip(pool, by_words, strict=True))
        scored = [fact._replace(score=scores[fact.uuid]) for fact in found["keyword"]]
        return {**found, "keyword": sorted(scored, key=_by_score, reverse=True)}

    def _rank(
        self, hits_by_channel: HitsByChannel, query: SearchQuery, time_ranges: Sequence[TimeRange], now: datetime
    ) -> list[ScoredFact]:
        """Return the facts found, by fused score times their factors."""
        found = {fact.uuid: fact for facts in hits_by_channel.values() for fact in facts}
        rankings = {name: [fact.uuid for fact in facts] for name, facts in hits_by_channel.items()}
        max_score = max_rrf_score(rankings, CHANNEL_WEIGHTS, self._k)
        now_ms = int(now.timestamp() * 1000)
        scored = []
        for uuid, fused in reciprocal_rank_fusion(rankings, CHANNEL_WEIGHTS, self._k).items():
            multipliers = score_factors(found[uuid], query.persona, time_ranges, now_ms)
            scored.append(
                ScoredFact(found[uuid], fused / max_score * multipliers.product, fused / max_score, multipliers)
            )
        return sorted(scored, key=_by_score, reverse=True)

    async def _rerank(self, text: str, ranked: list[ScoredFact], limit: int) -> list[ScoredFact]:
        """Return the best by a cross-encoder; it reads three times as many as are wanted, and no others are left."""
        assert self._reranker
        read = ranked[: max(MIN_RERANKED, 3 * limit)]
        scores = await self._reranker.score(text, [each.fact.content for each in read])
        scored = [
            each._replace(score=score * each.factors.product, rerank=score)
            for each, score in zip(read, scores, strict=True)
        ]
        return sorted(scored, key=_by_score, reverse=True)


async def _no_messages() -> dict[str, list[MessageCandidate]]:
    return {}


def _explain(scored: ScoredFact, hits_by_channel: HitsByChannel) -> Explanation:
    places = {
        name: ChannelRank(rank=rank, score=fact.score)
        for name, facts in hits_by_channel.items()
        for rank, fact in enumerate(facts, start=1)
        if fact.uuid == scored.fact.uuid
    }
    return Explanation(
        **places,
        rrf=scored.rrf,
        persona=scored.factors.persona,
        decay=scored.factors.decay,
        importance=scored.factors.importance,
        time=scored.factors.time,
        rerank=scored.rerank,
    )
