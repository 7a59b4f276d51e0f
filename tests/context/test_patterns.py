"""Behaviour patterns at the edges of what is counted."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any, TypeVar

import pytest
from pydantic import BaseModel

from graphmem.context.models import (
    ConcernData,
    DetectedPattern,
    GoalFocusData,
    QueryFrequencyData,
    TimeOfDayData,
    UserTurn,
)
from graphmem.context.patterns import (
    find_concerns,
    find_goal_focus,
    find_patterns,
    find_patterns_by_source,
    find_query_frequency,
    find_time_of_day,
)
from graphmem.conversations.session import MessageIn
from graphmem.tenants.profiles import load_profile
from graphmem.tenants.trust import DEFAULT_ORDER
from tests.context.conftest import ContextHarness

DataT = TypeVar("DataT", bound=BaseModel)

NOW = datetime(2026, 6, 1, 12, tzinfo=UTC)
GENERAL, FINANCE = load_profile("general"), load_profile("finance")
(SPENDING,) = FINANCE.concerns


def user_turn(at: datetime = NOW, number: int = 0, **fields: Any) -> UserTurn:
    return UserTurn(f"m{number}", at, at, **fields)


def daily_turns(days: int, per_day: int = 1, **fields: Any) -> list[UserTurn]:
    return [
        user_turn(NOW - timedelta(days=day, minutes=n), day * 100 + n, **fields)
        for day in range(days)
        for n in range(per_day)
    ]


def data_of(pattern: DetectedPattern, model: type[DataT]) -> DataT:
    assert isinstance(pattern.data, model)
    return pattern.data


@pytest.mark.req("TRUE-14")
def test_six_active_days_show_no_query_frequency_and_seven_do() -> None:
    assert find_query_frequency(daily_turns(6, 5)) == []
    (found,) = find_query_frequency(daily_turns(7))
    assert found.confidence == pytest.approx(7 / 30)
    assert found.description == "User typically asks 1 question per day"
    assert data_of(found, QueryFrequencyData).active_days == 7


@pytest.mark.req("TRUE-14")
def test_query_frequency_reports_typical_day_and_common_intents() -> None:
    busy = [
        *daily_turns(6, 3, intent="spending_analysis"),
        *daily_turns(7, 1, intent="planning")[6:],
        *daily_turns(1, 2, intent="weather"),
    ]
    (found,) = find_query_frequency(busy)
    usual = data_of(found, QueryFrequencyData)
    assert usual.typical_daily == 3
    assert usual.avg_daily == pytest.approx(21 / 7)
    assert usual.common_intents == ["spending_analysis", "weather", "planning"]
    assert "3 questions per day" in found.description
    many = [turn for number in range(6) for turn in daily_turns(7, 6 - number, intent=f"intent{number}")]
    usual = data_of(find_query_frequency(many)[0], QueryFrequencyData)
    assert usual.common_intents == [f"intent{number}" for number in range(5)]


@pytest.mark.req("TRUE-14")
def test_query_frequency_confidence_is_capped_at_one() -> None:
    assert find_query_frequency(daily_turns(31))[0].confidence == 1.0


@pytest.mark.req("TRUE-14")
def test_messages_older_than_thirty_days_are_not_counted() -> None:
    old = [user_turn(NOW - timedelta(days=30, seconds=1), 900)]
    assert find_patterns([*daily_turns(6), *old], NOW, GENERAL) == []
    edge = [user_turn(NOW - timedelta(days=30), 900)]
    assert [pattern.type for pattern in find_patterns([*daily_turns(6), *edge], NOW, GENERAL)] == ["query_frequency"]


def spending_turns(count: int, category: str = "food", **fields: Any) -> list[UserTurn]:
    given = {"intent": "spending_analysis", **fields}
    return [user_turn(NOW, number, entities={"category": [category]}, **given) for number in range(count)]


@pytest.mark.req("TRUE-15")
def test_two_queries_are_no_spending_concern_and_three_are() -> None:
    assert find_concerns(spending_turns(2), SPENDING) == []
    (found,) = find_concerns(spending_turns(3), SPENDING)
    assert found.confidence == pytest.approx(0.3)
    assert found.description == "Frequently asks about food spending"
    assert found.data == ConcernData(
        category="food", frequency=3, avg_amount=None, related_intents=["spending_analysis"]
    )


@pytest.mark.req("TRUE-15")
def test_spending_concerns_are_sorted_by_frequency_with_average_amount() -> None:
    dear = [
        user_turn(NOW, number, intent="Spending_Trend", entities={"category": ["Rent"], "amount": [amount]})
        for number, amount in enumerate([900, "$1,100", "unknown", *[1000] * 9])
    ]
    found = find_concerns([*spending_turns(3), *dear], SPENDING)
    assert [data_of(pattern, ConcernData).category for pattern in found] == ["Rent", "food"]
    assert found[0].confidence == 1.0
    assert data_of(found[0], ConcernData).avg_amount == 1000.0


@pytest.mark.req("TRUE-15")
def test_other_intents_and_missing_categories_are_no_spending_concern() -> None:
    assert find_concerns(spending_turns(5, intent="planning"), SPENDING) == []
    assert find_concerns([user_turn(NOW, number, intent="spending_analysis") for number in range(5)], SPENDING) == []


@pytest.mark.req("TRUE-15")
@pytest.mark.parametrize(("days", "counted"), [(60, True), (60.001, False)])
def test_spending_is_counted_over_sixty_days(days: float, counted: bool) -> None:
    old = user_turn(NOW - timedelta(days=days), 9, intent="spending_analysis", entities={"category": ["food"]})
    assert bool(find_patterns([*spending_turns(2), old], NOW, FINANCE)) is counted


@pytest.mark.req("TRUE-13")
def test_a_goal_mentioned_three_times_is_a_focus() -> None:
    named = [user_turn(NOW, number, entities={"goal": ["New flat"]}) for number in range(2)]
    planned = user_turn(NOW, 3, plans=("new flat",))
    assert find_goal_focus(named) == []
    (found,) = find_goal_focus([*named, planned])
    focus = data_of(found, GoalFocusData)
    assert (focus.goal, focus.frequency) == ("New flat", 3)
    assert found.confidence == pytest.approx(0.3)


@pytest.mark.req("TRUE-13")
def test_ten_messages_half_of_them_within_four_hours_show_a_time_of_day() -> None:
    evening = [user_turn(NOW.replace(hour=20) - timedelta(days=day), day) for day in range(5)]
    spread = [user_turn(NOW.replace(hour=hour) - timedelta(days=6), 10 + hour) for hour in (1, 6, 10, 14)]
    assert find_time_of_day([*evening, *spread]) == [], "nine messages are too few"
    (found,) = find_time_of_day([*evening, *spread, user_turn(NOW.replace(hour=15), 99)])
    assert found.confidence == 0.5
    evenings = data_of(found, TimeOfDayData)
    assert (evenings.start, evenings.end) == ("20:00", "00:00")
    scattered = [user_turn(NOW.replace(hour=hour, minute=30), hour) for hour in range(0, 24, 2)]
    assert find_time_of_day(scattered) == [], "no four hours hold half of them"


@pytest.mark.req("TRUE-13")
def test_time_of_day_wraps_around_midnight() -> None:
    late = [user_turn(NOW.replace(hour=hour % 24) - timedelta(days=hour), hour) for hour in [22, 23, 24, 25] * 3]
    (found,) = find_time_of_day(late)
    nights = data_of(found, TimeOfDayData)
    assert (nights.start, nights.end, found.confidence) == ("22:00", "02:00", 1.0)


@pytest.mark.req("TRUE-13")
def test_all_four_pattern_types_are_found_together() -> None:
    busy = daily_turns(10, 2, intent="spending_analysis", entities={"category": ["food"], "goal": ["flat"]})
    assert {pattern.type for pattern in find_patterns(busy, NOW, FINANCE)} == {
        "query_frequency", "spending_concern", "goal_focus", "time_of_day"
    }  # fmt: skip
    general = {pattern.type for pattern in find_patterns(busy, NOW, GENERAL)}
    assert general == {"query_frequency", "goal_focus", "time_of_day"}, "a spending concern is the finance profile's"


@pytest.mark.req("TRUE-28")
async def test_a_bad_rating_weakens_the_pattern_behind_it_and_may_end_it(harness: ContextHarness) -> None:
    replies = []
    for day in range(4):
        asked = MessageIn(role="user", content=f"My house, {day}?", entities={"goal": ["buy a house"]})
        replies.append((await harness.add_messages(f"s{day}", asked, "Save more."))[1])
    (before,) = await harness.learner.detect_patterns(harness.owner)
    seen = []
    for reply in replies[:2]:
        await harness.learner.learn_from_feedback(harness.owner, reply.id, 1)
        seen.append([one.confidence_score for one in await harness.contexts.list_patterns(harness.owner)])
    assert (before.confidence_score, seen) == (0.4, [[0.3], []])
    await harness.learner.learn_from_feedback(harness.owner, replies[0].id, 5)
    (again,) = await harness.contexts.list_patterns(harness.owner)
    assert again.confidence_score == 0.3


@pytest.mark.req("TRUE-28")
def test_a_bad_rating_weakens_a_pattern_of_any_number_of_messages() -> None:
    """More messages than full confidence takes must not make up for it."""
    asked = daily_turns(14, entities={"goal": ["a house"]})
    asked[3] = replace(asked[3], answered_badly=True)
    frequent, goal, hours = find_patterns(asked, NOW, GENERAL)
    assert (goal.confidence, hours.confidence) == pytest.approx((13 / 14, 13 / 14))
    assert frequent.confidence == pytest.approx(13 / 30)


def test_a_pattern_has_the_least_trusted_source_that_it_needs_and_others_do_not_change_it() -> None:
    own = daily_turns(7)
    relayed = [replace(turn, message_id=f"r{turn.message_id}", source_kind="assistant") for turn in daily_turns(9)]
    alone = find_patterns_by_source(own, NOW, GENERAL, DEFAULT_ORDER)
    mixed = find_patterns_by_source([*own, *relayed], NOW, GENERAL, DEFAULT_ORDER)
    foreign = find_patterns_by_source([*own[:3], *relayed], NOW, GENERAL, DEFAULT_ORDER)
    assert {pattern.source_kind for pattern in alone} == {"user"}
    assert {pattern.source_kind for pattern in foreign} == {"assistant"}
    assert [pattern for pattern in mixed if pattern.source_kind == "user"] == alone
