"""Decay and reinforcement: memories that nobody retrieves fade, memories that are retrieved grow stronger. Pure.

Strength decays continuously and only when it is read; importance is lowered in steps by maintenance.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from datetime import datetime

from graphmem.memories.memory import MemoryType

DECAY_RATES: dict[MemoryType, float] = {
    MemoryType.FACT: 0.01,
    MemoryType.PREFERENCE: 0.01,
    MemoryType.BEHAVIORAL_PATTERN: 0.02,
    MemoryType.PLAN: 0.03,
    MemoryType.RECOMMENDATION: 0.03,
    MemoryType.INFERRED_INTEREST: 0.03,
    MemoryType.OPEN_LOOP: 0.03,
    MemoryType.PROFILE: 0.01,
    MemoryType.CONVERSATION_TOPIC: 0.04,
    MemoryType.CONVERSATION_SUMMARY: 0.04,
    MemoryType.FEELING: 0.05,
}
"""Decay rate of strength by memory type, per day; 0.01 halves strength in 69 days, 0.05 in 14."""

INITIAL_STRENGTH = 0.5
"""Strength of a new memory."""

STRENGTH_STEP = 0.05
"""Strength that one retrieval adds."""

MAX_STRENGTH = 1.0
"""Strength that retrievals do not exceed."""

CONFIDENCE_STEP = 0.02
"""Confidence that one retrieval adds."""

MAX_CONFIDENCE = 0.99
"""Confidence that retrievals do not exceed; a caller may state more."""

IMPORTANCE_PERIOD_DAYS = 30
"""Days without a retrieval after which maintenance lowers importance once."""

IMPORTANCE_FACTOR = 0.9
"""Share of its importance that a memory retains after one period without a retrieval."""

MIN_IMPORTANCE = 0.05
"""Importance below which maintenance does not lower a memory."""


def decayed_strength(strength: float, decay_rate: float, idle_days: float) -> float:
    """Return `strength · exp(−decay_rate · idle_days)`; never more than `strength`."""
    return strength * math.exp(-decay_rate * max(0.0, idle_days))


def decayed_importance(importance: float, periods: int) -> float:
    """Return the importance after a number of periods of 30 days without a retrieval."""
    return min(importance, max(MIN_IMPORTANCE, importance * IMPORTANCE_FACTOR**periods))


def apply_reinforcement(strength: float, confidence: float, times: int = 1) -> tuple[float, float]:
    """Return strength and confidence after `times` retrievals; a confidence above the maximum stays as it is."""
    new_strength = min(MAX_STRENGTH, strength + STRENGTH_STEP * times)
    new_confidence = max(confidence, min(MAX_CONFIDENCE, confidence + CONFIDENCE_STEP * times))
    return new_strength, new_confidence


@dataclass(frozen=True, slots=True)
class RetrievalCount:
    """How often a memory was retrieved, and when last."""

    times: int
    at: datetime

    def plus(self, other: RetrievalCount) -> RetrievalCount:
        """Return both counts together."""
        return RetrievalCount(self.times + other.times, max(self.at, other.at))
