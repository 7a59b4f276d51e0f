"""Multipliers of a fused score: persona, decay, importance and time. Pure."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from graphmem.domain.decay import decayed_strength
from graphmem.domain.search_candidates import FactCandidate
from graphmem.text.time_expressions import TimeRange

MILLISECONDS_PER_DAY = 86_400_000

DECAY_WEIGHT = 0.2
"""Share of a score that depends on strength; a memory without any strength keeps the rest."""

IMPORTANCE_WEIGHT = 0.1
"""Share of a score that depends on importance: enough to break ties, too little to move a memory by many ranks."""

TIME_BONUS = 0.25
"""Share of its score that a fact gains if it starts in a time that the question names."""


class ScoreFactors(NamedTuple):
    """The multipliers of one fused score; a neutral one is 1."""

    persona: float
    decay: float
    importance: float
    time: float

    @property
    def product(self) -> float:
        """All multipliers combined."""
        return self.persona * self.decay * self.importance * self.time


def persona_factor(kind: str, tags: Iterable[str], weights: Mapping[str, float]) -> float:
    """Return the product of the weights of a memory's type and tags."""
    if not weights:
        return 1.0
    return math.prod(weights.get(word, 1.0) for word in (kind, *tags))


def decay_factor(strength: float, decay_rate: float, accessed: int, now: int) -> float:
    """Return the multiplier of a memory's strength at `now`; times are in milliseconds since 1970."""
    days = (now - accessed) / MILLISECONDS_PER_DAY
    return 1.0 - DECAY_WEIGHT + DECAY_WEIGHT * decayed_strength(strength, decay_rate, days)


def importance_factor(importance: float) -> float:
    """Return the multiplier of importance, which is 1 at an importance of 0.5."""
    return 1.0 + IMPORTANCE_WEIGHT * (importance - 0.5)


def time_factor(valid_from: int, time_ranges: Sequence[TimeRange]) -> float:
    """Return the multiplier of a fact that starts at `valid_from`, for the times that the question names."""
    return 1.0 + TIME_BONUS if any(time_range.contains(valid_from) for time_range in time_ranges) else 1.0


def score_factors(
    fact: FactCandidate, persona: Mapping[str, float], time_ranges: Sequence[TimeRange], now: int
) -> ScoreFactors:
    """Return the multipliers of a fact's fused score at `now`, in milliseconds since 1970."""
    return ScoreFactors(
        persona=persona_factor(fact.type, fact.tags, persona),
        decay=decay_factor(fact.strength, fact.decay_rate, fact.last_accessed_ms, now),
        importance=importance_factor(fact.importance),
        time=time_factor(fact.valid_from, time_ranges),
    )
