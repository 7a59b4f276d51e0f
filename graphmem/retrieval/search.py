"""The semantic path: channels side by side, fused, ranked, cut; reinforcement is written behind."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping, Sequence
from datetime import datetime
from operator import attrgetter
from typing import NamedTuple

from graphmem.domain.identity import Owner
from graphmem.domain.recall import (
    ChannelRank,
    Explanation,
    MessageAnswer,
    MessageQuery,
    SearchAnswer,
    SearchHit,
    SearchQuery,
)
from graphmem.domain.times import Clock
from graphmem.embedding import Embedder
from graphmem.errors import InvalidInput
from graphmem.retrieval.channels import Channels, Question
from graphmem.retrieval.entities import NamesAtHand
from graphmem.retrieval.fuse import ceiling, fuse
from graphmem.retrieval.inquiry import Inquiries
from graphmem.retrieval.lexical import bm25, tokens
from graphmem.retrieval.messages import Material, Messages
from graphmem.retrieval.moments import Span, spans
from graphmem.retrieval.rank import Factors, factors
from graphmem.retrieval.reinforce import Reinforcement
from graphmem.retrieval.rerank import CrossEncoderReranker
from graphmem.store.entities import EntityStore
from graphmem.store.episodes import EpisodeStore
from graphmem.store.search import FoundFact, FoundMessage, SearchStore

WEIGHTS = {"semantic": 0.5, "keyword": 1.0, "graph": 0.1}
EVIDENCE_PER_RESULT = 5
LEAST_RERANKED = 30

Heard = Mapping[str, Sequence[FoundFact]]

_by_score = attrgetter("score")


class Scored(NamedTuple):
    """A fact with its fused score and what multiplies it to its final score.

    What a cross-encoder says stands for the fused score where there is one.
    """

    fact: FoundFact
    score: float
    rrf: float
    factors: Factors
    rerank: float | None = None


class Search:
    """Search by meaning, words and neighbourhood, over facts and messages."""

    def __init__(
        self,
        store: SearchStore,
        entities: EntityStore,
        episodes: EpisodeStore,
        names: NamesAtHand,
        reinforcement: Reinforcement,
        embedder: Embedder,
        clock: Clock,
        rrf_k: int = 60,
        reranker: CrossEncoderReranker | None = None,
        languages: Sequence[str] = ("en",),
    ) -> None:
        self._store = store
        self._channels = Channels(store)
        self._inquiries = Inquiries(entities, names, embedder, clock)
        self._messages = Messages(store, episodes)
        self._reinforcement = reinforcement
        self._k = rrf_k
        self._reranker = reranker
        self._languages = languages

    async def search(self, owner: Owner, query: SearchQuery) -> SearchAnswer:
        """Return what answers the query, best first; raise InvalidInput for one that cannot be asked."""
        started = time.perf_counter()
        if not (query.semantic or query.keyword or query.graph):
            raise InvalidInput("Every channel is switched off: leave semantic, keyword or graph on.")
        if query.rerank and self._reranker is None:
            raise InvalidInput("No cross-encoder is configured: set GRAPHMEM_RERANK_MODEL, or leave rerank off.")
        inquiry = await self._inquiries.open(owner, query)
        heard, messages, times = await asyncio.gather(
            self._facts(inquiry.question),
            self._channels.messages(inquiry.question) if query.include_messages else _nothing(),
            asyncio.to_thread(spans, inquiry.text, inquiry.now, self._languages),
        )
        ranked = self._rank(heard, query, times, inquiry.now)
        if query.rerank:
            ranked = await self._reranked(inquiry.text, ranked, query.limit)
        chosen = [each for each in ranked if each.score >= (query.min_score or 0.0)][: query.limit]
        memories, (hits, evidence) = await asyncio.gather(
            self._store.whole([each.fact.uuid for each in chosen], inquiry.now),
            self._messages.recall(inquiry, [each.fact for each in ranked], messages, query.limit),
        )
        if query.reinforce:
            self._reinforcement.note(owner, memories)
        return SearchAnswer(
            results=[
                SearchHit(memory=memory, score=each.score, explain=_explanation(each, heard) if query.explain else None)
                for each, memory in zip(chosen, memories, strict=True)
            ],
            messages=hits,
            evidence=evidence[: EVIDENCE_PER_RESULT * query.limit],
            took_ms=round((time.perf_counter() - started) * 1000, 3),
        )

    async def messages(self, owner: Owner, query: MessageQuery) -> MessageAnswer:
        """Return the messages that answer a query, best first."""
        inquiry = await self._inquiries.open(owner, SearchQuery(query=query.query, limit=query.limit, graph=False))
        heard = await self._channels.messages(inquiry.question)
        hits, _ = await self._messages.recall(inquiry, [], heard, query.limit)
        return MessageAnswer(results=hits)

    async def material(self, owner: Owner, query: SearchQuery) -> Material:
        """Return what the order of evidence is made from, for those who measure it."""
        inquiry = await self._inquiries.open(owner, query)
        heard, messages = await asyncio.gather(self._facts(inquiry.question), self._channels.messages(inquiry.question))
        pool = {fact.uuid: fact for facts in heard.values() for fact in facts}
        return await self._messages.material(inquiry, list(pool.values()), messages)

    async def _facts(self, question: Question) -> dict[str, list[FoundFact]]:
        """Return what the channels find; the order by words is that of the candidates' own statistics."""
        found = await self._channels.facts(question)
        if "keyword" not in found:
            return found
        pool = {fact.uuid: fact for facts in found.values() for fact in facts}
        by_words = bm25(tokens(question.words), [tokens(fact.text) for fact in pool.values()])
        scores = dict(zip(pool, by_words, strict=True))
        scored = [fact._replace(score=scores[fact.uuid]) for fact in found["keyword"]]
        return {**found, "keyword": sorted(scored, key=_by_score, reverse=True)}

    def _rank(self, heard: Heard, query: SearchQuery, times: Sequence[Span], now: datetime) -> list[Scored]:
        """Return the facts found, by fused score times their factors."""
        found = {fact.uuid: fact for facts in heard.values() for fact in facts}
        rankings = {name: [fact.uuid for fact in facts] for name, facts in heard.items()}
        most = ceiling(rankings, WEIGHTS, self._k)
        milliseconds = int(now.timestamp() * 1000)
        scored = []
        for uuid, fused in fuse(rankings, WEIGHTS, self._k).items():
            weighed = factors(found[uuid], query.persona, times, milliseconds)
            scored.append(Scored(found[uuid], fused / most * weighed.product, fused / most, weighed))
        return sorted(scored, key=_by_score, reverse=True)

    async def _reranked(self, text: str, ranked: list[Scored], limit: int) -> list[Scored]:
        """Return the best by a cross-encoder; it reads three times as many as are wanted, and no others are left."""
        assert self._reranker
        read = ranked[: max(LEAST_RERANKED, 3 * limit)]
        scores = await self._reranker.score(text, [each.fact.content for each in read])
        scored = [
            each._replace(score=score * each.factors.product, rerank=score)
            for each, score in zip(read, scores, strict=True)
        ]
        return sorted(scored, key=_by_score, reverse=True)


async def _nothing() -> dict[str, list[FoundMessage]]:
    return {}


def _explanation(scored: Scored, heard: Heard) -> Explanation:
    places = {
        name: ChannelRank(rank=rank, score=fact.score)
        for name, facts in heard.items()
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
