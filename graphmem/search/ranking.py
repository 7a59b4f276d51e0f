"""Ranks the facts found by the channels: by fit, adjusted within bounds by persona, decay, trust and others. Pure.

Reciprocal rank fusion chooses the candidates. They are ordered by score: their fit, which persona, strength,
importance, time and trust adjust within narrow bounds.

Each factor multiplies the odds of a fit, which are `fit / (1 - fit)`. Together they change a fit by less than 0.05, and
so never overturn a lead of 0.1.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, NamedTuple

import numpy as np

from graphmem.memories.fact import INITIAL_STRENGTH
from graphmem.search.bm25 import Scores
from graphmem.search.candidates import Candidates, FactNumbers, FactRow, Ranking, Rows, Times
from graphmem.search.fit import FitFeatures, FitWeights, fit, max_rrf_score, reciprocal_rank_fusion
from graphmem.search.models import FIT_SCORE, ChannelRank, Explanation, SourceName
from graphmem.tenants.trust import TrustOrder
from graphmem.text.time_expressions import TimeRange

MILLISECONDS_PER_DAY = 86_400_000

MAX_SHIFT = 0.049
"""Maximum change of a fit by all factors together."""

PERSONA_WEIGHT = 1.0
"""Maximum change of the logarithm of the odds by a persona."""

TIME_WEIGHT = 0.2
"""Increase of the logarithm of the odds for a fact of a time named by the question."""

STRENGTH_WEIGHT = 0.1
"""Increase of the logarithm of the odds per unit of strength above that of a new memory."""

IMPORTANCE_WEIGHT = 0.2
"""Increase of the logarithm of the odds per unit of importance above 0.5."""

NEUTRAL_IMPORTANCE = 0.5
"""Importance that changes no odds."""

TRUST_WEIGHT = 0.1
"""Decrease of the logarithm of the odds from the most to the least trusted source."""


class ScoreFactors(NamedTuple):
    """The multipliers for the odds of fits, one column each; 1 is neutral."""

    persona: Scores
    decay: Scores
    importance: Scores
    time: Scores
    trust: Scores

    def apply(self, fit: Scores) -> Scores:
        """Return fits, from 0 to 1, with their odds multiplied, but changed by no more than `MAX_SHIFT`."""
        product = self.persona * self.decay * self.importance * self.time * self.trust
        moved = fit * product / (fit * product + 1 - fit)
        return np.clip(moved, fit - MAX_SHIFT, fit + MAX_SHIFT)


def persona_factors(facts: Sequence[FactRow], weights: Mapping[str, float]) -> Scores:
    """Return the multiplier for the product `w` of the weights of each memory's type and tags.

    Its logarithm is `PERSONA_WEIGHT` times `(w² - 1) / (w² + 1)`, which is -1 for a weight of 0, 0 for 1 and nearly 1
    for 100.
    """
    if not weights:
        return np.ones(len(facts))
    products = (math.prod(weights.get(word, 1.0) for word in (fact.type, *fact.tags)) for fact in facts)
    weight = np.minimum(np.fromiter(products, np.float64, len(facts)), 1e100)
    return np.exp(PERSONA_WEIGHT * (1.0 - 2.0 / (weight**2 + 1.0)))


def decay_factors(strength: Scores, decay_rate: Scores, last_accessed: Times, now: int) -> Scores:
    """Return the multiplier of each memory's strength at `now`; times are in milliseconds since 1970."""
    days = np.maximum(0.0, (now - last_accessed) / MILLISECONDS_PER_DAY)
    return np.exp(STRENGTH_WEIGHT * (strength * np.exp(-decay_rate * days) - INITIAL_STRENGTH))


def importance_factors(importance: Scores) -> Scores:
    """Return the multiplier of importance, which is 1 at an importance of 0.5."""
    return np.exp(IMPORTANCE_WEIGHT * (importance - NEUTRAL_IMPORTANCE))


def time_factors(valid_from: Times, valid_to: Times, time_ranges: Sequence[TimeRange], now: int) -> Scores:
    """Return the multipliers of facts valid in `[valid_from, valid_to)`, for the times that the question names.

    A fact gains if it starts in such a time, or has ended and held then. A fact that started earlier and still holds
    gains nothing, since most facts do.
    """
    fits_time = np.zeros(len(valid_from), np.bool_)
    for named in time_ranges:
        starts = (named.start <= valid_from) & (valid_from < named.end)
        fits_time |= starts | ((valid_to <= now) & (valid_from < named.end) & (valid_to > named.start))
    return np.where(fits_time, math.exp(TIME_WEIGHT), 1.0)


def trust_factors(facts: Sequence[FactRow], order: TrustOrder) -> Scores:
    """Return the multiplier for each fact's source, which is 1 for the most trusted ones."""
    factors = {kind: math.exp(-TRUST_WEIGHT * order.distance(kind)) for kind in {fact.trust_kind for fact in facts}}
    return np.fromiter((factors[fact.trust_kind] for fact in facts), np.float64, len(facts))


def score_factors(
    facts: Sequence[FactRow],
    numbers: FactNumbers,
    persona: Mapping[str, float],
    time_ranges: Sequence[TimeRange],
    now: int,
    order: TrustOrder,
) -> ScoreFactors:
    """Return the multipliers for the odds of the facts' fits at `now`, in milliseconds since 1970."""
    return ScoreFactors(
        persona=persona_factors(facts, persona),
        decay=decay_factors(numbers.strength, numbers.decay_rate, numbers.last_accessed, now),
        importance=importance_factors(numbers.importance),
        time=time_factors(numbers.valid_from, numbers.valid_to, time_ranges, now),
        trust=trust_factors(facts, order),
    )


RESERVED_PLACE = 3
"""One in this many places is for a fact that leads on from a named entity."""

MIN_SIMILARITY = 0.35
"""Minimum similarity of a fact that stands out."""

MIN_LEAD = 0.1
"""Minimum lead in similarity to the question over the next fact."""


@dataclass(frozen=True, slots=True)
class RankedFacts:
    """The facts found, with a column for everything computed about them; `order` has their rows, best first.

    `rrf` is the fused score of the channels and `fit` how well a fact alone answers the question, both from 0 to 1; a
    cross-encoder's fit replaces it. The score, computed from the fit and the factors, orders the results.
    """

    found: Candidates
    order: Rows
    rrf: Scores
    fit: Scores
    factors: ScoreFactors
    score: Scores
    features: FitFeatures
    rerank: Scores | None = None


def rank_facts(
    found: Candidates,
    persona: Mapping[str, float],
    time_ranges: Sequence[TimeRange],
    now: datetime,
    rrf_k: int,
    channel_weights: Mapping[str, float],
    features: FitFeatures,
    order: TrustOrder,
) -> RankedFacts:
    """Return the facts found by score, computed from their fit, whose features are given, and the factors.

    Facts with equal scores are ordered by their fused scores.
    """
    rankings = {channel: ranking.rows for channel, ranking in found.channels.items()}
    fused = reciprocal_rank_fusion(rankings, channel_weights, len(found), rrf_k)
    fits = fit(features, FitWeights.for_channels(channel_weights))
    now_ms = int(now.timestamp() * 1000)
    factors = score_factors(found.facts, found.numbers, persona, time_ranges, now_ms, order)
    scores = factors.apply(fits)
    rrf = fused / max_rrf_score(rankings, channel_weights, rrf_k) if rankings else fused
    return RankedFacts(found, np.lexsort((-fused, -scores)), rrf, fits, factors, scores, features)


def find_leading_on(found: Candidates, named_ids: Set[str]) -> list[int]:
    """Return the rows of the facts that lead on from the named entities, the nearest to the question first.

    A fact about such an entity is also found by words; facts at the next steps are only found around entities.
    """
    around = found.channels["graph"].rows.tolist() if "graph" in found.channels else []
    return [row for row in around if named_ids.isdisjoint(found.facts[row].entity_ids)]


def select_candidates(ranked: RankedFacts, leading_on: Collection[int], count: int) -> Rows:
    """Return the rows of the `count` facts with the highest fused scores and of all that lead on, in their order."""
    chosen = np.zeros(len(ranked.found), np.bool_)
    chosen[ranked.order[np.argsort(-ranked.rrf[ranked.order], kind="stable")[:count]]] = True
    chosen[[*leading_on]] = True
    return ranked.order[chosen[ranked.order]]


def fill_places(rows: Rows, chain: Sequence[int], leading_on: Sequence[int], places: int) -> list[int]:
    """Return `places` ranked rows in their order: the best, with one place in three for those that lead on, if any.

    Of the latter, the facts of a chain come first, and all get a place if half of the places are enough. The second
    fact of a chain has few words of the question, and would get none by its score.
    """
    ranked = rows.tolist()
    selected = set(ranked)
    reserved = max(places // RESERVED_PLACE, min(len(chain), places // 2))
    best = ranked[: places - reserved]
    wanted = [*best, *(row for row in (*chain, *leading_on) if row in selected), *ranked]
    chosen = set(list(dict.fromkeys(wanted))[:places])
    return [row for row in ranked if row in chosen]


def select_fitting(ranked: RankedFacts, rows: Rows) -> Rows:
    """Return the rows that count as answers, in their order; possibly none.

    If none does by its fit, a fact may count that is clearly more similar to the question than every other: the
    question may use other words than the fact.
    """
    fitting = rows[ranked.fit[rows] >= FIT_SCORE]
    if len(fitting) or not len(rows):
        return fitting
    similarity = ranked.features.similarity[rows]
    order = np.argsort(-similarity, kind="stable")
    nearest, following = rows[order[:1]], similarity[order[1:2]].max(initial=0.0)
    highest = similarity[order[0]]
    stands_out = highest >= MIN_SIMILARITY and highest - following >= MIN_LEAD
    return nearest if stands_out and not ranked.features.names_other[nearest[0]] else nearest[:0]


def apply_rerank_scores(ranked: RankedFacts, rows: Rows, scores: Sequence[float]) -> RankedFacts:
    """Return the rows by score, computed from the cross-encoder's fit and their factors."""
    rerank = np.full(len(ranked.found), np.nan)
    rerank[rows] = scores
    fits = np.where(np.isnan(rerank), ranked.fit, rerank)
    score = ranked.factors.apply(fits)
    order = rows[np.argsort(-score[rows], kind="stable")]
    return replace(ranked, order=order, fit=fits, score=score, rerank=rerank)


def explain(ranked: RankedFacts, best: Sequence[int], source: SourceName) -> list[Explanation]:
    """Return, for each row, the source, its rank in each channel, the features of its fit, and its factors."""
    channels = {channel: _ranks_of(ranking, best) for channel, ranking in ranked.found.channels.items()}
    columns = {**ranked.features._asdict(), **ranked.factors._asdict(), "fit": ranked.fit, "rrf": ranked.rrf}
    if ranked.rerank is not None:
        columns["rerank"] = ranked.rerank
    names, values = list(columns), zip(*(column[best].tolist() for column in columns.values()), strict=True)
    ranks: list[dict[str, Any]] = [
        {channel: found[row] for channel, found in channels.items() if row in found} for row in best
    ]
    return [
        Explanation(source=source, **row_ranks, **dict(zip(names, row_values, strict=True)))
        for row_ranks, row_values in zip(ranks, values, strict=True)
    ]


def _ranks_of(ranking: Ranking, rows: Sequence[int]) -> dict[int, ChannelRank]:
    """Return the ranks of those rows that a channel found."""
    wanted = np.flatnonzero(np.isin(ranking.rows, rows))
    found = zip(wanted.tolist(), ranking.rows[wanted].tolist(), ranking.scores[wanted].tolist(), strict=True)
    return {row: ChannelRank(rank=place + 1, score=score) for place, row, score in found}
