"""Behaviour patterns: counted over what a user asked, never guessed. Pure (TRUE-13…15)."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from datetime import datetime, timedelta
from statistics import fmean, multimode
from typing import Any

from graphmem.context.mentions import parse_amount
from graphmem.domain.context_models import PatternType
from graphmem.store.context_mapping import DetectedPattern, UserTurn
from graphmem.text.normalising import normalise

QUERY_WINDOW_DAYS, MIN_ACTIVE_DAYS, MAX_COMMON_INTENTS = 30, 7, 5
SPENDING_WINDOW_DAYS, MIN_SPENDING_QUERIES, FULL_CONFIDENCE_SPENDING_QUERIES = 60, 3, 10
GOAL_WINDOW_DAYS, MIN_GOAL_MESSAGES, FULL_CONFIDENCE_GOAL_MESSAGES = 60, 3, 10
TIME_OF_DAY_WINDOW_DAYS, MIN_TIME_OF_DAY_MESSAGES, TIME_OF_DAY_SPAN_MINUTES, MIN_TIME_OF_DAY_SHARE = 30, 10, 240, 0.5
MINUTES_PER_DAY = 24 * 60

MAX_WINDOW_DAYS = max(QUERY_WINDOW_DAYS, SPENDING_WINDOW_DAYS, GOAL_WINDOW_DAYS, TIME_OF_DAY_WINDOW_DAYS)
"""No pattern looks further back."""


def find_patterns(turns: Sequence[UserTurn], now: datetime) -> list[DetectedPattern]:
    """Return every pattern in a user's messages of the last 60 days, the surest of each family first."""
    return [
        *find_query_frequency(_messages_since(turns, now, QUERY_WINDOW_DAYS)),
        *find_spending_concerns(_messages_since(turns, now, SPENDING_WINDOW_DAYS)),
        *find_goal_focus(_messages_since(turns, now, GOAL_WINDOW_DAYS)),
        *find_time_of_day(_messages_since(turns, now, TIME_OF_DAY_WINDOW_DAYS)),
    ]


def find_query_frequency(turns: Sequence[UserTurn]) -> list[DetectedPattern]:
    """Return how much a user asks a day, from 7 active days on; confidence `min(days / 30, 1)` (TRUE-14)."""
    by_day = Counter(each.local.date() for each in turns)
    if len(by_day) < MIN_ACTIVE_DAYS:
        return []
    typical = min(multimode(by_day.values()))
    intents = Counter(each.intent for each in turns if each.intent)
    return [
        DetectedPattern(
            PatternType.QUERY_FREQUENCY,
            "all",
            f"User typically asks {typical} question{'s' if typical != 1 else ''} per day",
            {
                "avg_daily": round(fmean(by_day.values()), 4),
                "typical_daily": typical,
                "active_days": len(by_day),
                "common_intents": sorted(intents, key=lambda intent: (-intents[intent], intent))[:MAX_COMMON_INTENTS],
            },
            min(len(by_day) / QUERY_WINDOW_DAYS, 1.0),
            _message_ids(turns),
        )
    ]


def find_spending_concerns(turns: Sequence[UserTurn]) -> list[DetectedPattern]:
    """Return the categories whose spending is asked about 3 times or more; confidence `min(n / 10, 1)` (TRUE-15)."""
    concerned = [each for each in turns if each.intent and "spending" in each.intent.casefold()]
    found = []
    for key, (category, group) in _group_by_name(concerned, lambda each: _entity_values(each, "category")).items():
        amounts = [
            amount
            for each in group
            for value in _entity_values(each, "amount")
            if (amount := parse_amount(value)) is not None
        ]
        found.append(
            DetectedPattern(
                PatternType.SPENDING_CONCERN,
                key,
                f"Frequently asks about {category} spending",
                {
                    "category": category,
                    "frequency": len(group),
                    "avg_amount": round(fmean(amounts), 2) if amounts else None,
                    "related_intents": list(dict.fromkeys(each.intent for each in group)),
                },
                min(len(group) / FULL_CONFIDENCE_SPENDING_QUERIES, 1.0),
                _message_ids(group),
            )
        )
    return _sort_by_frequency([each for each in found if each.data["frequency"] >= MIN_SPENDING_QUERIES])


def find_goal_focus(turns: Sequence[UserTurn]) -> list[DetectedPattern]:
    """Return the goals spoken of in 3 messages or more, most first; confidence `min(n / 10, 1)`.

    A goal is what a message names as its `goal`, or a remembered plan that rests on the message.
    """
    found = []
    for key, (goal, group) in _group_by_name(turns, lambda each: [*_entity_values(each, "goal"), *each.plans]).items():
        if len(group) >= MIN_GOAL_MESSAGES:
            found.append(
                DetectedPattern(
                    PatternType.GOAL_FOCUS,
                    key,
                    f"Keeps coming back to a goal: {goal}",
                    {"goal": goal, "frequency": len(group), "last_mentioned": group[-1].at.isoformat()},
                    min(len(group) / FULL_CONFIDENCE_GOAL_MESSAGES, 1.0),
                    _message_ids(group),
                )
            )
    return _sort_by_frequency(found)


def find_time_of_day(turns: Sequence[UserTurn]) -> list[DetectedPattern]:
    """Return the 4 hours of the day that hold half of at least 10 messages or more; confidence is their share."""
    if len(turns) < MIN_TIME_OF_DAY_MESSAGES:
        return []
    minutes = [each.local.hour * 60 + each.local.minute for each in turns]
    start = max(sorted(set(minutes)), key=lambda begin: sum(_is_within_span(minute, begin) for minute in minutes))
    inside = [each for each, minute in zip(turns, minutes, strict=True) if _is_within_span(minute, start)]
    share = len(inside) / len(turns)
    if share < MIN_TIME_OF_DAY_SHARE:
        return []
    begins, ends = _format_clock(start), _format_clock(start + TIME_OF_DAY_SPAN_MINUTES)
    return [
        DetectedPattern(
            PatternType.TIME_OF_DAY,
            "all",
            f"User is mostly active between {begins} and {ends}",
            {"start": begins, "end": ends, "messages": len(inside), "share": round(share, 4)},
            share,
            _message_ids(inside),
        )
    ]


def _messages_since(turns: Sequence[UserTurn], now: datetime, days: int) -> list[UserTurn]:
    first = now - timedelta(days=days)
    return sorted((each for each in turns if first <= each.at <= now), key=lambda each: each.at)


def _entity_values(turn: UserTurn, kind: str) -> list[Any]:
    return [value for value in turn.entities.get(kind, ()) if value not in ("", None)]


def _group_by_name(
    turns: Iterable[UserTurn], names: Callable[[UserTurn], Sequence[Any]]
) -> dict[str, tuple[str, list[UserTurn]]]:
    """Return messages by what they name, compared without case; each counts once a name."""
    groups: dict[str, tuple[str, list[UserTurn]]] = defaultdict(lambda: ("", []))
    for each in turns:
        for key, name in {normalise(str(name)): str(name) for name in names(each)}.items():
            first, group = groups[key]
            groups[key] = (first or name, [*group, each])
    return dict(groups)


def _sort_by_frequency(found: list[DetectedPattern]) -> list[DetectedPattern]:
    return sorted(found, key=lambda each: (-each.data["frequency"], each.key))


def _is_within_span(minute: int, begin: int) -> bool:
    return (minute - begin) % MINUTES_PER_DAY <= TIME_OF_DAY_SPAN_MINUTES


def _format_clock(minute: int) -> str:
    return f"{minute // 60 % 24:02}:{minute % 60:02}"


def _message_ids(turns: Sequence[UserTurn]) -> tuple[str, ...]:
    return tuple(each.message_id for each in turns)
