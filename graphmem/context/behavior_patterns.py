"""Behaviour patterns: what a user keeps doing, counted over their messages."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from pydantic import BaseModel, ConfigDict

from graphmem.tenants.pattern_type import PatternType


class _PatternData(BaseModel):
    model_config = ConfigDict(frozen=True)


class QueryFrequencyData(_PatternData):
    """How many messages a user sends on a day with any: the mean and the most frequent number."""

    avg_daily: float
    typical_daily: int
    active_days: int
    common_intents: list[str]


class ConcernData(_PatternData):
    """A category that a user keeps asking about; `frequency` counts messages."""

    category: str
    frequency: int
    avg_amount: float | None
    related_intents: list[str]


class GoalFocusData(_PatternData):
    """A goal that a user keeps coming back to; `frequency` counts messages."""

    goal: str
    frequency: int
    last_mentioned: datetime


class TimeOfDayData(_PatternData):
    """The hours, `HH:MM` on the user's clock, that hold a share of the messages."""

    start: str
    end: str
    messages: int
    share: float


PatternData = QueryFrequencyData | ConcernData | GoalFocusData | TimeOfDayData


@dataclass(frozen=True, slots=True)
class UserTurn:
    """One message of the user; `local` is its time on the user's clock, `plans` the memories of plans it led to."""

    message_id: str
    at: datetime
    local: datetime
    intent: str | None = None
    entities: Mapping[str, Sequence[Any]] = field(default_factory=dict)
    plans: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class DetectedPattern:
    """A pattern as counted now; `key` is unique within its type, `evidence` are message ids, oldest first."""

    type: PatternType
    key: str
    description: str
    data: PatternData
    confidence: float
    evidence: Sequence[str]


class BehaviorPattern(BaseModel):
    """A stored pattern; `pattern_data` has the fields of the data model of its type.

    `occurrence_count` counts the messages that show it, within the days over which its type is counted.
    """

    id: str
    user_id: str
    pattern_type: PatternType
    pattern_description: str
    pattern_data: dict[str, Any]
    confidence_score: float
    occurrence_count: int
    first_detected: datetime
    last_detected: datetime
    is_active: bool
