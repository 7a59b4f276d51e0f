"""What moves a memory among those that fit about equally well: persona, decay, importance and time. Pure.

Each factor multiplies the odds of a fit, which are `fit / (1 - fit)`. All together move a fit by less than 0.05, and so
never overturn a lead of 0.1.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from graphmem.memories.decay import INITIAL_STRENGTH, decayed_strength
from graphmem.search.search_candidates import FactCandidate
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


class ScoreFactors(NamedTuple):
    """The multipliers of the odds of one fit; a neutral one is 1."""

    persona: float
    decay: float
    importance: float
    time: float

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


def score_factors(
    fact: FactCandidate, persona: Mapping[str, float], time_ranges: Sequence[TimeRange], now: int
) -> ScoreFactors:
    """Return the multipliers of the odds of a fact's fit at `now`, in milliseconds since 1970."""
    return ScoreFactors(
        persona=persona_factor(fact.type, fact.tags, persona),
        decay=decay_factor(fact.strength, fact.decay_rate, fact.last_accessed_ms, now),
        importance=importance_factor(fact.importance),
        time=time_factor(fact.valid_from, fact.valid_to, time_ranges, now),
    )
