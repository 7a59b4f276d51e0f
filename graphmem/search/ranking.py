"""Ranks the facts that the channels found: by fit, moved within bounds by persona, decay, trust and others. Pure.

Reciprocal rank fusion chooses the candidates. Their score is how well they fit, which persona, strength, importance,
time and trust move within narrow bounds, and it is what the results are ordered by.

Each factor multiplies the odds of a fit, which are `fit / (1 - fit)`. All together move a fit by less than 0.05, and so
never overturn a lead of 0.1.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from datetime import datetime
from typing import NamedTuple

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
    """The multipliers of the odds of fits, a column each; a neutral one is 1."""

    persona: Scores
    decay: Scores
    importance: Scores
    time: Scores
    trust: Scores

    def apply(self, fit: Scores) -> Scores:
        """Return fits, from 0 to 1, with their odds multiplied, but moved by no more than `MAX_SHIFT`."""
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

    A fact gains if it starts in such a time, or has ended and held then. One that started earlier and still holds gains
    nothing: most facts do.
    """
    fits_time = np.zeros(len(valid_from), np.bool_)
    for named in time_ranges:
        starts = (named.start <= valid_from) & (valid_from < named.end)
        fits_time |= starts | ((valid_to <= now) & (valid_from < named.end) & (valid_to > named.start))
    return np.where(fits_time, math.exp(TIME_WEIGHT), 1.0)


def trust_factors(facts: Sequence[FactRow], order: TrustOrder) -> Scores:
    """Return the multiplier of the source of each fact, which is 1 for the most trusted ones."""
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
    """Return the multipliers of the odds of the fits of facts at `now`, in milliseconds since 1970."""
    return ScoreFactors(
        persona=persona_factors(facts, persona),
        decay=decay_factors(numbers.strength, numbers.decay_rate, numbers.last_accessed, now),
        importance=importance_factors(numbers.importance),
        time=time_factors(numbers.valid_from, numbers.valid_to, time_ranges, now),
        trust=trust_factors(facts, order),
    )


RESERVED_PLACE = 3
"""One place of so many is for a fact that leads on from a named entity."""

MIN_SIMILARITY = 0.35
"""Least similarity of a fact that stands out."""

MIN_LEAD = 0.1
"""How much more similar to the question than the next one it is at least."""


@dataclass(frozen=True, slots=True)
class RankedFacts:
    """The facts found, with a column for all that is computed of them; `order` has their rows, best first.

    `rrf` is the fused score of the channels and `fit` how well a fact alone answers the question, both from 0 to 1;
    that of a cross-encoder replaces it. The factors make the score of the fit, and the results are ordered by it.
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
    """Return the facts found by the score that the factors make of their fit, whose features are given.

    Facts of equal score are in the order of their fused scores.
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
    """Return the rows of the facts that lead on from the entities named, the nearest to the question first.

    A fact about such an entity is found by words too; those at the next steps are found around entities alone.
    """
    around = found.channels["graph"].rows.tolist() if "graph" in found.channels else []
    return [row for row in around if named_ids.isdisjoint(found.facts[row].entity_ids)]


def select_candidates(ranked: RankedFacts, leading_on: Collection[int], count: int) -> Rows:
    """Return the rows of the `count` facts with the highest fused scores and all that lead on, in their order."""
    chosen = np.zeros(len(ranked.found), np.bool_)
    chosen[ranked.order[np.argsort(-ranked.rrf[ranked.order], kind="stable")[:count]]] = True
    chosen[[*leading_on]] = True
    return ranked.order[chosen[ranked.order]]


def fill_places(rows: Rows, chain: Sequence[int], leading_on: Sequence[int], places: int) -> list[int]:
    """Return so many of the ranked rows in their order: the best, but for one of three those that lead on, if any do.

    Of these, the facts of a chain come first, and all have a place where half of the places are enough. The second fact
    of a chain has few words of the question, and would have none by its score.
    """
    ranked = rows.tolist()
    selected = set(ranked)
    reserved = max(places // RESERVED_PLACE, min(len(chain), places // 2))
    best = ranked[: places - reserved]
    wanted = [*best, *(row for row in (*chain, *leading_on) if row in selected), *ranked]
    chosen = set(list(dict.fromkeys(wanted))[:places])
    return [row for row in ranked if row in chosen]


def select_fitting(ranked: RankedFacts, rows: Rows) -> Rows:
    """Return those of the rows that are taken for answers, in their order; possibly none.

    Where none is by its fit, the one that is clearly more similar to the question than every other may be: a question
    in other words than the fact.
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
    """Return the rows by the score that their factors make of what the cross-encoder says of their fit."""
    rerank = np.full(len(ranked.found), np.nan)
    rerank[rows] = scores
    fits = np.where(np.isnan(rerank), ranked.fit, rerank)
    score = ranked.factors.apply(fits)
    order = rows[np.argsort(-score[rows], kind="stable")]
    return replace(ranked, order=order, fit=fits, score=score, rerank=rerank)


def explain(ranked: RankedFacts, best: Sequence[int], source: SourceName) -> list[Explanation]:
    """Return for each row the source, its rank in each channel, what its fit comes from, and its factors."""
    channels = {channel: _ranks_of(ranking, best) for channel, ranking in ranked.found.channels.items()}
    columns = {**ranked.features._asdict(), **ranked.factors._asdict(), "fit": ranked.fit, "rrf": ranked.rrf}
    if ranked.rerank is not None:
        columns["rerank"] = ranked.rerank
    names, values = list(columns), zip(*(column[best].tolist() for column in columns.values()), strict=True)
    return [
        Explanation(
            source=source,
            **{channel: found[row] for channel, found in channels.items() if row in found},
            **dict(zip(names, row_values, strict=True)),
        )
        for row, row_values in zip(best, values, strict=True)
    ]


def _ranks_of(ranking: Ranking, rows: Sequence[int]) -> dict[int, ChannelRank]:
    """Return the ranks of some rows that a channel found."""
    wanted = np.flatnonzero(np.isin(ranking.rows, rows))
    found = zip(wanted.tolist(), ranking.rows[wanted].tolist(), ranking.scores[wanted].tolist(), strict=True)
    return {row: ChannelRank(rank=place + 1, score=score) for place, row, score in found}
