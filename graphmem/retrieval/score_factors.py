"""From fused order to final score: whose words count, what has faded, what matters, what is of the time asked for."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from graphmem.domain.decay import decayed_strength
from graphmem.domain.search_candidates import FactCandidate
from graphmem.text.time_expressions import TimeRange

MILLISECONDS_PER_DAY = 86_400_000

DECAY_WEIGHT = 0.2
"""How much of a score hangs on strength: what has faded altogether keeps the rest."""

IMPORTANCE_WEIGHT = 0.1
"""How much of a score hangs on importance."""

TIME_BONUS = 0.25
"""How much a fact gains that begins in the time a question names."""


class ScoreFactors(NamedTuple):
    """What a fused score is multiplied by; each is 1 where it says nothing."""

    persona: float
    decay: float
    importance: float
    time: float

    @property
    def product(self) -> float:
        """All factors together."""
        return self.persona * self.decay * self.importance * self.time


def persona_factor(kind: str, tags: Iterable[str], weights: Mapping[str, float]) -> float:
    """Return the product of the weights that fit a memory by its type and tags."""
    if not weights:
        return 1.0
    return math.prod(weights.get(word, 1.0) for word in (kind, *tags))


def decay_factor(strength: float, decay_rate: float, accessed: int, now: int) -> float:
    """Return the factor of a memory's strength now: `1 − share + share · strength · exp(−rate · days)` (UMB-09)."""
    days = (now - accessed) / MILLISECONDS_PER_DAY
    return 1.0 - DECAY_WEIGHT + DECAY_WEIGHT * decayed_strength(strength, decay_rate, days)


def importance_factor(importance: float) -> float:
    """Return the factor of importance, 1 at 0.5: a tie breaker of some ranks, never of many (QUINN-19)."""
    return 1.0 + IMPORTANCE_WEIGHT * (importance - 0.5)


def time_factor(valid_from: int, time_ranges: Sequence[TimeRange]) -> float:
    """Return what a fact gains when it began to hold in a time the question names."""
    return 1.0 + TIME_BONUS if any(time_range.contains(valid_from) for time_range in time_ranges) else 1.0


def score_factors(
    fact: FactCandidate, persona: Mapping[str, float], time_ranges: Sequence[TimeRange], now: int
) -> ScoreFactors:
    """Return what multiplies a fact's fused score at `now` (milliseconds since 1970)."""
    return ScoreFactors(
        persona=persona_factor(fact.type, fact.tags, persona),
        decay=decay_factor(fact.strength, fact.decay_rate, fact.last_accessed_ms, now),
        importance=importance_factor(fact.importance),
        time=time_factor(fact.valid_from, time_ranges),
    )
