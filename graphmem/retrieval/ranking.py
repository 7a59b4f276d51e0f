"""Ranks the facts that the channels found: fuses their orders and multiplies the scores by factors. Pure."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence, Set
from datetime import datetime
from operator import attrgetter
from typing import NamedTuple

from graphmem.domain.search_candidates import FactCandidate
from graphmem.domain.search_models import FIT_SCORE, ChannelRank, Explanation
from graphmem.retrieval.bm25 import bm25_scores
from graphmem.retrieval.fit import FitFeatures, fit
from graphmem.retrieval.rank_fusion import max_rrf_score, reciprocal_rank_fusion
from graphmem.retrieval.score_factors import ScoreFactors, score_factors
from graphmem.text.time_expressions import TimeRange
from graphmem.text.tokenising import tokenize

FactsByChannel = Mapping[str, Sequence[FactCandidate]]
"""The facts that each channel found, best first."""

RESERVED_PLACE = 3
"""Every place of this number is for a fact that leads on from a named entity."""

MIN_SIMILARITY = 0.35
"""Least similarity of a fact that stands out."""

MIN_LEAD = 0.1
"""How much more similar to the question than the next one it is at least."""

_by_score = attrgetter("score")


class ScoredFact(NamedTuple):
    """A fact with what it is ordered by, which is its fused score or its cross-encoder score times the factors."""

    fact: FactCandidate
    score: float
    rrf: float
    factors: ScoreFactors
    features: FitFeatures
    rerank: float | None = None

    @property
    def fit(self) -> float:
        """How well the fact alone answers the question, from 0 to 1."""
        return fit(self.features) if self.rerank is None else self.rerank


def distinct_facts(facts: FactsByChannel) -> dict[str, FactCandidate]:
    """Return the facts that any channel found, by uuid."""
    return {fact.uuid: fact for found in facts.values() for fact in found}


def rescore_keyword_channel(facts: FactsByChannel, question: str, languages: tuple[str, ...]) -> FactsByChannel:
    """Return the facts with those found by keywords in the order of BM25, with statistics of all facts found."""
    if "keyword" not in facts:
        return facts
    pool = distinct_facts(facts)
    scores = bm25_scores(tokenize(question, languages), [tokenize(fact.text, languages) for fact in pool.values()])
    score_by_uuid = dict(zip(pool, scores, strict=True))
    rescored = [fact._replace(score=score_by_uuid[fact.uuid]) for fact in facts["keyword"]]
    return {**facts, "keyword": sorted(rescored, key=_by_score, reverse=True)}


def rank_facts(
    facts: FactsByChannel,
    persona: Mapping[str, float],
    time_ranges: Sequence[TimeRange],
    now: datetime,
    rrf_k: int,
    channel_weights: Mapping[str, float],
    features: Mapping[str, FitFeatures],
) -> list[ScoredFact]:
    """Return the facts found, best first, by their fused score (from 0 to 1) times their factors.

    `features` are those of the fit of each fact, by uuid.
    """
    pool = distinct_facts(facts)
    rankings = {channel: [fact.uuid for fact in found] for channel, found in facts.items()}
    max_score = max_rrf_score(rankings, channel_weights, rrf_k)
    now_ms = int(now.timestamp() * 1000)
    scored = []
    for uuid, fused in reciprocal_rank_fusion(rankings, channel_weights, rrf_k).items():
        rrf, factors = fused / max_score, score_factors(pool[uuid], persona, time_ranges, now_ms)
        scored.append(ScoredFact(pool[uuid], rrf * factors.product, rrf, factors, features[uuid]))
    return sorted(scored, key=_by_score, reverse=True)


def reserve_places(
    ranked: Sequence[ScoredFact], near_entities: Sequence[FactCandidate], named_ids: Set[str]
) -> list[ScoredFact]:
    """Return ranked facts with every third place given to a fact that leads on from the entities named.

    A fact about such an entity is found by words too; those at the next steps are found around entities alone, where
    `near_entities` has them in order.
    """
    by_uuid = {scored.fact.uuid: scored for scored in ranked}
    leading_on = deque(by_uuid[fact.uuid] for fact in near_entities if named_ids.isdisjoint(fact.entity_ids))
    order: dict[str, ScoredFact] = {}
    for scored in ranked:
        if scored.fact.uuid in order:
            continue
        order[scored.fact.uuid] = scored
        while leading_on and len(order) % RESERVED_PLACE == RESERVED_PLACE - 1:
            reserved = leading_on.popleft()
            order.setdefault(reserved.fact.uuid, reserved)
    return list(order.values())


def select_fitting(ranked: Sequence[ScoredFact]) -> list[ScoredFact]:
    """Return the facts that are taken for answers, in their order; possibly none.

    Where none is by its fit, the one that is clearly more similar to the question than every other may be: a question
    in other words than the fact.
    """
    fitting = [scored for scored in ranked if scored.fit >= FIT_SCORE]
    if fitting or not ranked:
        return fitting
    nearest, *others = sorted(ranked, key=lambda scored: -scored.features.similarity)
    next_similarity = others[0].features.similarity if others else 0.0
    similarity = nearest.features.similarity
    stands_out = similarity >= MIN_SIMILARITY and similarity - next_similarity >= MIN_LEAD
    return [nearest] if stands_out else []


def apply_rerank_scores(facts: Sequence[ScoredFact], scores: Sequence[float]) -> list[ScoredFact]:
    """Return facts in the order of their cross-encoder scores times their factors."""
    rescored = [
        scored._replace(score=score * scored.factors.product, rerank=score)
        for scored, score in zip(facts, scores, strict=True)
    ]
    return sorted(rescored, key=_by_score, reverse=True)


def explain(ranked: Sequence[ScoredFact], facts: FactsByChannel) -> list[Explanation]:
    """Return for each fact its rank in each channel and the factors of its score."""
    ranks: dict[str, dict[str, ChannelRank]] = {scored.fact.uuid: {} for scored in ranked}
    for channel, found in facts.items():
        for rank, fact in enumerate(found, start=1):
            if fact.uuid in ranks:
                ranks[fact.uuid][channel] = ChannelRank(rank=rank, score=fact.score)
    return [
        Explanation(
            **ranks[scored.fact.uuid],
            **scored.features._asdict(),
            rrf=scored.rrf,
            persona=scored.factors.persona,
            decay=scored.factors.decay,
            importance=scored.factors.importance,
            time=scored.factors.time,
            rerank=scored.rerank,
        )
        for scored in ranked
    ]
