"""How a memory's strength fades when nobody asks for it (UMB-09)."""

from __future__ import annotations

import math
from datetime import datetime

from graphmem.domain.memory import MemoryType

SECONDS_PER_DAY = 86_400

DECAY_RATES: dict[MemoryType, float] = {
    MemoryType.FACT: 0.01,
    MemoryType.PREFERENCE: 0.01,
    MemoryType.BEHAVIORAL_PATTERN: 0.02,
    MemoryType.PLAN: 0.03,
    MemoryType.RECOMMENDATION: 0.03,
    MemoryType.INFERRED_INTEREST: 0.03,
    MemoryType.OPEN_LOOP: 0.03,
    MemoryType.CONVERSATION_TOPIC: 0.04,
    MemoryType.CONVERSATION_SUMMARY: 0.04,
    MemoryType.FEELING: 0.05,
}
"""Default decay rate by type, a day."""

STRENGTH_STEP, STRENGTH_CAP = 0.05, 1.0
CONFIDENCE_STEP, CONFIDENCE_CAP = 0.02, 0.99


def decayed_strength(strength: float, decay_rate: float, last_access: datetime, now: datetime) -> float:
    """Return `strength · exp(−decay_rate · days since last access)`; never above `strength`."""
    days = max(0.0, (now - last_access).total_seconds() / SECONDS_PER_DAY)
    return strength * math.exp(-decay_rate * days)


def apply_reinforcement(strength: float, confidence: float, times: int = 1) -> tuple[float, float]:
    """Return strength and confidence after `times` retrievals: +0.05 up to 1.0 and +0.02 up to 0.99 each (UMB-08)."""
    new_strength = min(STRENGTH_CAP, strength + STRENGTH_STEP * times)
    new_confidence = max(confidence, min(CONFIDENCE_CAP, confidence + CONFIDENCE_STEP * times))
    return new_strength, new_confidence
