"""Detection of behaviour patterns: counts over a user's messages. Pure."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from statistics import fmean, multimode
from typing import Any

from graphmem.context.mentions import parse_amount
from graphmem.context.models import (
    ConcernData,
    DetectedPattern,
    GoalFocusData,
    QueryFrequencyData,
    TimeOfDayData,
    UserTurn,
)
from graphmem.runtime.field_types import deduplicate
from graphmem.tenants.profiles import ConcernRule, PatternType, ProductRules
from graphmem.tenants.trust import TrustOrder
from graphmem.text.normalising import normalise

QUERY_WINDOW_DAYS = 30
"""Days over which the query frequency is counted; a pattern active on all of them has confidence 1."""

MIN_ACTIVE_DAYS = 7
"""Minimum days with a message for a query frequency."""

MAX_COMMON_INTENTS = 5
"""Maximum intents listed with the query frequency, the most frequent ones."""

GOAL_WINDOW_DAYS = 60
"""Days over which mentions of a goal are counted."""

MIN_GOAL_MESSAGES = 3
"""Minimum messages about a goal for a pattern."""

FULL_CONFIDENCE_GOAL_MESSAGES = 10
"""Number of messages about a goal at which the pattern has confidence 1."""

TIME_OF_DAY_WINDOW_DAYS = 30
"""Days over which times of day are counted."""

MIN_TIME_OF_DAY_MESSAGES = 10
"""Minimum messages for a time of day."""

TIME_OF_DAY_SPAN_MINUTES = 240
"""Length of a time of day in minutes."""

MIN_TIME_OF_DAY_SHARE = 0.5
"""Minimum share of the messages within a time of day."""

MINUTES_PER_DAY = 24 * 60


def max_window_days(profile: ProductRules) -> int:
    """Return the number of days over which the patterns of a profile are counted."""
    concern_days = [rule.window_days for rule in profile.concerns]
    return max(QUERY_WINDOW_DAYS, GOAL_WINDOW_DAYS, TIME_OF_DAY_WINDOW_DAYS, *concern_days)


def find_patterns_by_source(
    turns: Sequence[UserTurn], now: datetime, profile: ProductRules, order: TrustOrder
) -> list[DetectedPattern]:
    """Return the patterns in a user's messages, with the least trusted source that each one needs.

    A pattern found in the messages of more trusted sources alone is counted only over those; others do not change it.
    """
    found: dict[tuple[PatternType, str], DetectedPattern] = {}
    kinds = deduplicate(turn.source_kind for turn in turns)
    while kinds:
        kind = order.most_trusted(kinds)
        kinds = [other for other in kinds if not order.passes(other, kind)]
        trusted = [turn for turn in turns if order.passes(turn.source_kind, kind)]
        for pattern in find_patterns(trusted, now, profile):
            found.setdefault((pattern.type, pattern.key), replace(pattern, source_kind=kind))
    return list(found.values())


def find_patterns(turns: Sequence[UserTurn], now: datetime, profile: ProductRules) -> list[DetectedPattern]:
    """Return every pattern in a user's messages, family by family, the most frequent of a family first.

    Badly answered messages do not count, and their share lowers a pattern's confidence.
    """
    return [
        *find_query_frequency(_turns_since(turns, now, QUERY_WINDOW_DAYS)),
        *(
            pattern
            for rule in profile.concerns
            for pattern in find_concerns(_turns_since(turns, now, rule.window_days), rule)
        ),
        *find_goal_focus(_turns_since(turns, now, GOAL_WINDOW_DAYS)),
        *find_time_of_day(_turns_since(turns, now, TIME_OF_DAY_WINDOW_DAYS)),
    ]


def find_query_frequency(turns: Sequence[UserTurn]) -> list[DetectedPattern]:
    """Return the messages a user sends per day, from 7 active days on; confidence `min(active days / 30, 1)`."""
    messages_by_day = Counter(turn.local.date() for turn in answered_well(turns))
    active_days = len(messages_by_day)
    if active_days < MIN_ACTIVE_DAYS:
        return []
    typical = min(multimode(messages_by_day.values()))
    intents = Counter(turn.intent for turn in answered_well(turns) if turn.intent)
    return [
        DetectedPattern(
            PatternType.QUERY_FREQUENCY,
            "all",
            f"User typically asks {typical} question{'s' if typical != 1 else ''} per day",
            QueryFrequencyData(
                avg_daily=round(fmean(messages_by_day.values()), 4),
                typical_daily=typical,
                active_days=active_days,
                common_intents=sorted(intents, key=lambda intent: (-intents[intent], intent))[:MAX_COMMON_INTENTS],
            ),
            _weakened(min(len({turn.local.date() for turn in turns}) / QUERY_WINDOW_DAYS, 1.0), turns),
            _message_ids(turns),
        )
    ]


def find_concerns(turns: Sequence[UserTurn], rule: ConcernRule) -> list[DetectedPattern]:
    """Return the categories a user keeps asking about by a rule, most frequent first; confidence `min(n / full, 1)`."""
    concerned = [turn for turn in turns if turn.intent and rule.topic in turn.intent.casefold()]
    categories = _group_by_name(concerned, lambda turn: _entity_values(turn, rule.entity))
    return _sort_by_frequency(
        _concern_pattern(key, category, group, rule)
        for key, (category, group) in categories.items()
        if len(answered_well(group)) >= rule.min_messages
    )


def find_goal_focus(turns: Sequence[UserTurn]) -> list[DetectedPattern]:
    """Return the goals named in at least 3 messages, most frequent first; confidence `min(n / 10, 1)`.

    A goal is the entity `goal` of a message, or a memory of a plan that was extracted from the message.
    """
    goals = _group_by_name(turns, lambda turn: [*_entity_values(turn, "goal"), *turn.plans])
    return _sort_by_frequency(
        DetectedPattern(
            PatternType.GOAL_FOCUS,
            key,
            f"Keeps coming back to a goal: {goal}",
            GoalFocusData(goal=goal, frequency=len(answered_well(group)), last_mentioned=group[-1].at),
            _weakened(min(len(group) / FULL_CONFIDENCE_GOAL_MESSAGES, 1.0), group),
            _message_ids(group),
        )
        for key, (goal, group) in goals.items()
        if len(answered_well(group)) >= MIN_GOAL_MESSAGES
    )


def find_time_of_day(turns: Sequence[UserTurn]) -> list[DetectedPattern]:
    """Return the 4 hours of the day with at least half of at least 10 messages; confidence is their share."""
    if len(answered_well(turns)) < MIN_TIME_OF_DAY_MESSAGES:
        return []
    minutes = [turn.local.hour * 60 + turn.local.minute for turn in turns]
    start = max(sorted(set(minutes)), key=lambda begin: sum(_is_within_span(minute, begin) for minute in minutes))
    inside = [turn for turn, minute in zip(turns, minutes, strict=True) if _is_within_span(minute, start)]
    share = len(inside) / len(turns)
    if share < MIN_TIME_OF_DAY_SHARE:
        return []
    data = TimeOfDayData(
        start=_format_clock(start),
        end=_format_clock(start + TIME_OF_DAY_SPAN_MINUTES),
        messages=len(inside),
        share=round(share, 4),
    )
    description = f"User is mostly active between {data.start} and {data.end}"
    confidence = _weakened(share, inside)
    return [DetectedPattern(PatternType.TIME_OF_DAY, "all", description, data, confidence, _message_ids(inside))]


def _concern_pattern(key: str, category: str, turns: Sequence[UserTurn], rule: ConcernRule) -> DetectedPattern:
    amounts = [
        amount
        for turn in turns
        for value in _entity_values(turn, rule.amount_entity)
        if (amount := parse_amount(value)) is not None
    ]
    return DetectedPattern(
        rule.pattern_type,
        key,
        rule.description.format(name=category),
        ConcernData(
            category=category,
            frequency=len(answered_well(turns)),
            avg_amount=round(fmean(amounts), 2) if amounts else None,
            related_intents=list(dict.fromkeys(turn.intent for turn in turns if turn.intent)),
        ),
        _weakened(min(len(turns) / rule.full_confidence_messages, 1.0), turns),
        _message_ids(turns),
    )


def answered_well(turns: Sequence[UserTurn]) -> list[UserTurn]:
    """Return the messages whose answers were not rated badly."""
    return [turn for turn in turns if not turn.answered_badly]


def _weakened(confidence: float, turns: Sequence[UserTurn]) -> float:
    """Return a confidence lowered by the share of badly answered messages."""
    return round(confidence * len(answered_well(turns)) / len(turns), 9)


def _turns_since(turns: Sequence[UserTurn], now: datetime, days: int) -> list[UserTurn]:
    first = now - timedelta(days=days)
    return sorted((turn for turn in turns if first <= turn.at <= now), key=lambda turn: turn.at)


def _entity_values(turn: UserTurn, kind: str) -> list[Any]:
    return [value for value in turn.entities.get(kind, ()) if value not in ("", None)]


def _group_by_name(
    turns: Iterable[UserTurn], names_of: Callable[[UserTurn], Sequence[Any]]
) -> dict[str, tuple[str, list[UserTurn]]]:
    """Return the messages by the normalised names they contain, with each name as first written."""
    groups: dict[str, tuple[str, list[UserTurn]]] = defaultdict(lambda: ("", []))
    for turn in turns:
        for key, name in {normalise(str(name)): str(name) for name in names_of(turn)}.items():
            first, group = groups[key]
            groups[key] = (first or name, [*group, turn])
    return dict(groups)


def _sort_by_frequency(patterns: Iterable[DetectedPattern]) -> list[DetectedPattern]:
    return sorted(patterns, key=lambda pattern: (-len(pattern.evidence), pattern.key))


def _is_within_span(minute: int, begin: int) -> bool:
    return (minute - begin) % MINUTES_PER_DAY <= TIME_OF_DAY_SPAN_MINUTES


def _format_clock(minute: int) -> str:
    return f"{minute // 60 % 24:02}:{minute % 60:02}"


def _message_ids(turns: Sequence[UserTurn]) -> tuple[str, ...]:
    return tuple(turn.message_id for turn in answered_well(turns))
