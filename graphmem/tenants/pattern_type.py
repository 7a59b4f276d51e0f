"""Split of domain/behavior_patterns."""

from __future__ import annotations

from enum import StrEnum


class PatternType(StrEnum):
    """Families of behaviour patterns."""

    QUERY_FREQUENCY = "query_frequency"
    SPENDING_CONCERN = "spending_concern"
    GOAL_FOCUS = "goal_focus"
    TIME_OF_DAY = "time_of_day"
