"""Behaviour patterns: counted over what a user asked, never guessed. Pure (TRUE-13…15)."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from datetime import datetime, timedelta
from statistics import fmean, multimode
from typing import Any

from graphmem.context.mentions import read_amount
from graphmem.domain.context import PatternType
from graphmem.domain.text import normalise
from graphmem.store.context_rows import Asked, FoundPattern

QUERY_DAYS, LEAST_ACTIVE_DAYS, COMMON_INTENTS = 30, 7, 5
SPENDING_DAYS, LEAST_SPENDING_QUERIES, SURE_SPENDING_QUERIES = 60, 3, 10
GOAL_DAYS, LEAST_GOAL_MESSAGES, SURE_GOAL_MESSAGES = 60, 3, 10
CLOCK_DAYS, LEAST_CLOCK_MESSAGES, CLOCK_MINUTES, LEAST_CLOCK_SHARE = 30, 10, 240, 0.5
MINUTES_A_DAY = 24 * 60

LONGEST_DAYS = max(QUERY_DAYS, SPENDING_DAYS, GOAL_DAYS, CLOCK_DAYS)
"""No pattern looks further back."""


def detect(asked: Sequence[Asked], now: datetime) -> list[FoundPattern]:
    """Return every pattern in a user's messages of the last 60 days, the surest of each family first."""
    return [
        *query_frequency(_since(asked, now, QUERY_DAYS)),
        *spending_concerns(_since(asked, now, SPENDING_DAYS)),
        *goal_focus(_since(asked, now, GOAL_DAYS)),
        *time_of_day(_since(asked, now, CLOCK_DAYS)),
    ]


def query_frequency(asked: Sequence[Asked]) -> list[FoundPattern]:
    """Return how much a user asks a day, from 7 active days on; confidence `min(days / 30, 1)` (TRUE-14)."""
    by_day = Counter(each.local.date() for each in asked)
    if len(by_day) < LEAST_ACTIVE_DAYS:
        return []
    typical = min(multimode(by_day.values()))
    intents = Counter(each.intent for each in asked if each.intent)
    return [
        FoundPattern(
            PatternType.QUERY_FREQUENCY,
            "all",
            f"User typically asks {typical} question{'s' if typical != 1 else ''} per day",
            {
                "avg_daily": round(fmean(by_day.values()), 4),
                "typical_daily": typical,
                "active_days": len(by_day),
                "common_intents": sorted(intents, key=lambda intent: (-intents[intent], intent))[:COMMON_INTENTS],
            },
            min(len(by_day) / QUERY_DAYS, 1.0),
            _evidence(asked),
        )
    ]


def spending_concerns(asked: Sequence[Asked]) -> list[FoundPattern]:
    """Return the categories whose spending is asked about 3 times or more; confidence `min(n / 10, 1)` (TRUE-15)."""
    concerned = [each for each in asked if each.intent and "spending" in each.intent.casefold()]
    found = []
    for key, (category, group) in _grouped(concerned, lambda each: _values(each, "category")).items():
        amounts = [
            amount for each in group for value in _values(each, "amount") if (amount := read_amount(value)) is not None
        ]
        found.append(
            FoundPattern(
                PatternType.SPENDING_CONCERN,
                key,
                f"Frequently asks about {category} spending",
                {
                    "category": category,
                    "frequency": len(group),
                    "avg_amount": round(fmean(amounts), 2) if amounts else None,
                    "related_intents": list(dict.fromkeys(each.intent for each in group)),
                },
                min(len(group) / SURE_SPENDING_QUERIES, 1.0),
                _evidence(group),
            )
        )
    return _most_first([each for each in found if each.data["frequency"] >= LEAST_SPENDING_QUERIES])


def goal_focus(asked: Sequence[Asked]) -> list[FoundPattern]:
    """Return the goals spoken of in 3 messages or more, most first; confidence `min(n / 10, 1)`.

    A goal is what a message names as its `goal`, or a remembered plan that rests on the message.
    """
    found = []
    for key, (goal, group) in _grouped(asked, lambda each: [*_values(each, "goal"), *each.plans]).items():
        if len(group) >= LEAST_GOAL_MESSAGES:
            found.append(
                FoundPattern(
                    PatternType.GOAL_FOCUS,
                    key,
                    f"Keeps coming back to a goal: {goal}",
                    {"goal": goal, "frequency": len(group), "last_mentioned": group[-1].at.isoformat()},
                    min(len(group) / SURE_GOAL_MESSAGES, 1.0),
                    _evidence(group),
                )
            )
    return _most_first(found)


def time_of_day(asked: Sequence[Asked]) -> list[FoundPattern]:
    """Return the 4 hours of the day that hold half of at least 10 messages or more; confidence is their share."""
    if len(asked) < LEAST_CLOCK_MESSAGES:
        return []
    minutes = [each.local.hour * 60 + each.local.minute for each in asked]
    start = max(sorted(set(minutes)), key=lambda begin: sum(_within(minute, begin) for minute in minutes))
    inside = [each for each, minute in zip(asked, minutes, strict=True) if _within(minute, start)]
    share = len(inside) / len(asked)
    if share < LEAST_CLOCK_SHARE:
        return []
    begins, ends = _clock(start), _clock(start + CLOCK_MINUTES)
    return [
        FoundPattern(
            PatternType.TIME_OF_DAY,
            "all",
            f"User is mostly active between {begins} and {ends}",
            {"start": begins, "end": ends, "messages": len(inside), "share": round(share, 4)},
            share,
            _evidence(inside),
        )
    ]


def _since(asked: Sequence[Asked], now: datetime, days: int) -> list[Asked]:
    first = now - timedelta(days=days)
    return sorted((each for each in asked if first <= each.at <= now), key=lambda each: each.at)


def _values(asked: Asked, kind: str) -> list[Any]:
    return [value for value in asked.entities.get(kind, ()) if value not in ("", None)]


def _grouped(asked: Iterable[Asked], names: Callable[[Asked], Sequence[Any]]) -> dict[str, tuple[str, list[Asked]]]:
    """Return messages by what they name, compared without case; each counts once a name."""
    groups: dict[str, tuple[str, list[Asked]]] = defaultdict(lambda: ("", []))
    for each in asked:
        for key, name in {normalise(str(name)): str(name) for name in names(each)}.items():
            first, group = groups[key]
            groups[key] = (first or name, [*group, each])
    return dict(groups)


def _most_first(found: list[FoundPattern]) -> list[FoundPattern]:
    return sorted(found, key=lambda each: (-each.data["frequency"], each.key))


def _within(minute: int, begin: int) -> bool:
    return (minute - begin) % MINUTES_A_DAY <= CLOCK_MINUTES


def _clock(minute: int) -> str:
    return f"{minute // 60 % 24:02}:{minute % 60:02}"


def _evidence(asked: Sequence[Asked]) -> tuple[str, ...]:
    return tuple(each.message_id for each in asked)
