"""Ranks the facts that the channels found: by fit, moved within bounds by persona, decay, trust and others. Pure.

Reciprocal rank fusion chooses the candidates. Their score is how well they fit, which persona, strength, importance,
time and trust move within narrow bounds, and it is what the results are ordered by.

Each factor multiplies the odds of a fit, which are `fit / (1 - fit)`. All together move a fit by less than 0.05, and so
never overturn a lead of 0.1.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence, Set
from datetime import datetime
from operator import attrgetter
from typing import NamedTuple

from graphmem.memories.decay import INITIAL_STRENGTH, decayed_strength
from graphmem.search.fact_candidate import FactCandidate
from graphmem.search.fit import FitFeatures, FitWeights, WordScores, fit, max_rrf_score, reciprocal_rank_fusion
from graphmem.search.models import FIT_SCORE, ChannelRank, Explanation, SourceName
from graphmem.tenants.trust import SourceKind, TrustOrder
from graphmem.text.time_expressions import TimeRange

MILLISECONDS_PER_DAY = 86_400_000

MAX_SHIFT = 0.049
"""Most by which all factors together raise or lower a fit."""

PERSONA_WEIGHT = 1.0
"""Most by which a persona raises or lowers the logarithm of the odds."""

TIME_WEIGHT = 0.2
"""How much the logarithm of the odds grows for a fact of a time that the question names."""

STRENGTH_WEIGHT = 0.1
"""Share of the strength above that of a new memory by which the logarithm of the odds grows."""

IMPORTANCE_WEIGHT = 0.2
"""Share of the importance above 0.5 by which the logarithm of the odds grows."""

NEUTRAL_IMPORTANCE = 0.5
"""Importance that changes no odds."""

TRUST_WEIGHT = 0.1
"""How much the logarithm of the odds falls from the most to the least trusted source."""


class ScoreFactors(NamedTuple):
    """The multipliers of the odds of one fit; a neutral one is 1."""

    persona: float
    decay: float
    importance: float
    time: float
    trust: float

    def apply(self, fit: float) -> float:
        """Return a fit, from 0 to 1, with its odds multiplied, but moved by no more than `MAX_SHIFT`."""
        product = math.prod(self)
        moved = fit * product / (fit * product + 1 - fit)
        return max(fit - MAX_SHIFT, min(fit + MAX_SHIFT, moved))


def persona_factor(kind: str, tags: Iterable[str], weights: Mapping[str, float]) -> float:
    """Return the multiplier for the product `w` of the weights of a memory's type and tags.

    Its logarithm is `PERSONA_WEIGHT` times `(w² - 1) / (w² + 1)`, which is -1 for a weight of 0, 0 for 1 and nearly 1
    for 100.
    """
    weight = math.prod(weights.get(word, 1.0) for word in (kind, *tags))
    return math.exp(PERSONA_WEIGHT * (1.0 - 2.0 / (min(weight, 1e100) ** 2 + 1.0)))


def decay_factor(strength: float, decay_rate: float, accessed: int, now: int) -> float:
    """Return the multiplier of a memory's strength at `now`; times are in milliseconds since 1970."""
    days = (now - accessed) / MILLISECONDS_PER_DAY
    return math.exp(STRENGTH_WEIGHT * (decayed_strength(strength, decay_rate, days) - INITIAL_STRENGTH))


def importance_factor(importance: float) -> float:
    """Return the multiplier of importance, which is 1 at an importance of 0.5."""
    return math.exp(IMPORTANCE_WEIGHT * (importance - NEUTRAL_IMPORTANCE))


def time_factor(valid_from: int, valid_to: int, time_ranges: Sequence[TimeRange], now: int) -> float:
    """Return the multiplier of a fact that is valid in `[valid_from, valid_to)`, for the times that the question names.

    A fact gains if it starts in such a time, or has ended and held then. One that started earlier and still holds gains
    nothing: most facts do.
    """
    fits_time = any(
        time_range.contains(valid_from)
        or (valid_to <= now and valid_from < time_range.end and valid_to > time_range.start)
        for time_range in time_ranges
    )
    return math.exp(TIME_WEIGHT) if fits_time else 1.0


def trust_factor(kind: SourceKind, order: TrustOrder) -> float:
    """Return the multiplier of a source, which is 1 for the most trusted ones."""
    return math.exp(-TRUST_WEIGHT * order.distance(kind))


def score_factors(
    fact: FactCandidate,
    persona: Mapping[str, float],
    time_ranges: Sequence[TimeRange],
    now: int,
    trust: float,
) -> ScoreFactors:
    """Return the multipliers of the odds of a fact's fit at `now`, in milliseconds since 1970."""
    return ScoreFactors(
        persona=persona_factor(fact.type, fact.tags, persona) if persona else 1.0,
        decay=decay_factor(fact.strength, fact.decay_rate, fact.last_accessed_ms, now),
        importance=importance_factor(fact.importance),
        time=time_factor(fact.valid_from, fact.valid_to, time_ranges, now) if time_ranges else 1.0,
        trust=trust,
    )


FactsByChannel = Mapping[str, Sequence[FactCandidate]]
"""The facts that each channel found, best first."""

RESERVED_PLACE = 3
"""One place of so many is for a fact that leads on from a named entity."""

MIN_SIMILARITY = 0.35
"""Least similarity of a fact that stands out."""

MIN_LEAD = 0.1
"""How much more similar to the question than the next one it is at least."""

_by_score = attrgetter("score")
_by_rrf = attrgetter("rrf")


class ScoredFact(NamedTuple):
    """A fact with its fused score `rrf` and its fit, both from 0 to 1, and the factors that make its score of the fit.

    The fit says how well the fact alone answers the question; that of a cross-encoder replaces it. The results are
    ordered by the score.
    """

    fact: FactCandidate
    rrf: float
    fit: float
    factors: ScoreFactors
    score: float
    features: FitFeatures
    rerank: float | None = None


def distinct_facts(facts: FactsByChannel) -> dict[str, FactCandidate]:
    """Return the facts that any channel found, by uuid."""
    return {fact.uuid: fact for found in facts.values() for fact in found}


def rescore_keyword_channel(facts: FactsByChannel, scores: WordScores) -> FactsByChannel:
    """Return the facts with those found by keywords in the order of BM25, with statistics of all facts found."""
    if "keyword" not in facts:
        return facts
    rescored = [fact._replace(score=scores.by_uuid[fact.uuid]) for fact in facts["keyword"]]
    return {**facts, "keyword": sorted(rescored, key=_by_score, reverse=True)}


def merge_channels(first: FactsByChannel, second: FactsByChannel) -> FactsByChannel:
    """Return the facts of two searches of the same channels, those of each channel once and by their score."""
    merged = {}
    for channel in first:
        by_uuid = {fact.uuid: fact for fact in [*first[channel], *second.get(channel, ())]}
        merged[channel] = sorted(by_uuid.values(), key=_by_score, reverse=True)
    return merged


def rank_facts(
    facts: FactsByChannel,
    persona: Mapping[str, float],
    time_ranges: Sequence[TimeRange],
    now: datetime,
    rrf_k: int,
    channel_weights: Mapping[str, float],
    features: Mapping[str, FitFeatures],
    order: TrustOrder,
) -> list[ScoredFact]:
    """Return the facts found, best first, by the score that the factors make of their fit.

    `features` are those of the fit of each fact, by uuid. Facts of equal score are in the order of their fused scores.
    """
    pool = distinct_facts(facts)
    rankings = {channel: [fact.uuid for fact in found] for channel, found in facts.items()}
    max_score = max_rrf_score(rankings, channel_weights, rrf_k)
    weights = FitWeights.for_channels(channel_weights)
    now_ms = int(now.timestamp() * 1000)
    trust = {kind: trust_factor(kind, order) for kind in {fact.trust_kind for fact in pool.values()}}
    scored = []
    for uuid, fused in reciprocal_rank_fusion(rankings, channel_weights, rrf_k).items():
        fact, found_fit = pool[uuid], fit(features[uuid], weights)
        factors = score_factors(fact, persona, time_ranges, now_ms, trust[fact.trust_kind])
        score = factors.apply(found_fit)
        scored.append(ScoredFact(fact, fused / max_score, found_fit, factors, score, features[uuid]))
    return sorted(scored, key=_by_score, reverse=True)


def find_leading_on(facts: FactsByChannel, named_ids: Set[str]) -> list[str]:
    """Return the uuids of the facts that lead on from the entities named, the nearest to the question first.

    A fact about such an entity is found by words too; those at the next steps are found around entities alone.
    """
    return [fact.uuid for fact in facts.get("graph", ()) if named_ids.isdisjoint(fact.entity_ids)]


def select_candidates(ranked: Sequence[ScoredFact], leading_on: Sequence[str], count: int) -> list[ScoredFact]:
    """Return the `count` facts with the highest fused scores and all that lead on, in their order."""
    chosen = {scored.fact.uuid for scored in sorted(ranked, key=_by_rrf, reverse=True)[:count]}.union(leading_on)
    return [scored for scored in ranked if scored.fact.uuid in chosen]


def fill_places(ranked: Sequence[ScoredFact], leading_on: Sequence[str], places: int) -> list[ScoredFact]:
    """Return so many ranked facts in their order: the best, but for one of three those that lead on, if there are any.

    The second fact of a chain has few words of the question, and would have no place by its score.
    """
    by_uuid = {scored.fact.uuid: scored for scored in ranked}
    best = list(by_uuid)[: places - places // RESERVED_PLACE]
    chosen = set(list(dict.fromkeys([*best, *(uuid for uuid in leading_on if uuid in by_uuid), *by_uuid]))[:places])
    return [scored for scored in ranked if scored.fact.uuid in chosen]


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
    return [nearest] if stands_out and not nearest.features.names_other else []


def apply_rerank_scores(facts: Sequence[ScoredFact], scores: Sequence[float]) -> list[ScoredFact]:
    """Return facts by the score that their factors make of what the cross-encoder says of their fit."""
    rescored = [
        scored._replace(fit=score, score=scored.factors.apply(score), rerank=score)
        for scored, score in zip(facts, scores, strict=True)
    ]
    return sorted(rescored, key=_by_score, reverse=True)


def explain(ranked: Sequence[ScoredFact], facts: FactsByChannel, source: SourceName) -> list[Explanation]:
    """Return for each fact the source, its rank in each channel, what its fit comes from, and its factors."""
    ranks: dict[str, dict[str, ChannelRank]] = {scored.fact.uuid: {} for scored in ranked}
    for channel, found in facts.items():
        for rank, fact in enumerate(found, start=1):
            if fact.uuid in ranks:
                ranks[fact.uuid][channel] = ChannelRank(rank=rank, score=fact.score)
    return [
        Explanation(
            source=source,
            **ranks[scored.fact.uuid],
            **scored.features._asdict(),
            fit=scored.fit,
            rrf=scored.rrf,
            persona=scored.factors.persona,
            decay=scored.factors.decay,
            importance=scored.factors.importance,
            time=scored.factors.time,
            trust=scored.factors.trust,
            rerank=scored.rerank,
        )
        for scored in ranked
    ]
