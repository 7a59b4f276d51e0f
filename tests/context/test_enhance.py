"""A draft reply made the user's own."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from graphmem.context.enhance import Acquaintance, enhance, in_style, likely_followups, with_continuity
from graphmem.domain.context import BehaviorPattern
from tests.context.conftest import message

NOON = datetime(2026, 6, 1, 12, tzinfo=UTC)
ASKED = [message("How much did I spend?", intent="spending_analysis")]


def pattern(kind: str, **data: Any) -> BehaviorPattern:
    return BehaviorPattern(
        id="p", user_id="mara", pattern_type=kind, pattern_description="", pattern_data=data, confidence_score=0.5,
        occurrence_count=1, first_detected=NOON, last_detected=NOON, is_active=True,
    )  # fmt: skip


@pytest.mark.req("TRUE-21")
def test_the_first_your_spending_is_tied_to_the_talk_once() -> None:
    draft = "Your spending rose. Your spending on food fell."
    tied = "As we discussed, your spending rose. Your spending on food fell."
    assert with_continuity(draft, ASKED) == tied
    assert with_continuity(tied, ASKED) == tied


@pytest.mark.req("TRUE-21")
@pytest.mark.parametrize(
    ("draft", "recent"),
    [
        ("Your spending rose.", []),
        ("Your spending rose.", [message("How much?", intent="planning")]),
        ("Your spending rose.", [message("It rose.", role="assistant", intent="spending_analysis")]),
        ("Your savings rose.", ASKED),
    ],
)
def test_nothing_is_tied_without_a_talk_of_spending_or_a_reply_about_it(draft: str, recent: list[Any]) -> None:
    assert with_continuity(draft, recent) == draft


@pytest.mark.req("TRUE-20", "QUINN-39")
def test_the_steps_are_taken_in_order() -> None:
    known = Acquaintance(
        recent=ASKED,
        style="casual",
        patterns=[pattern("spending_concern", category="rent", avg_amount=900.0)],
        followups=["budget_planning"],
    )
    reply = enhance("Your spending rose and you are over budget.", known)
    assert reply.applied == ["continuity", "style", "example", "followups"]
    assert reply.text == (
        "As we discussed, your spending rose and you're over budget.\n\n"
        "For example, take your rent spending, about 900 on average, which you ask about often.\n\n"
        "You may also want to look at: budget planning."
    )


@pytest.mark.req("TRUE-20")
def test_a_draft_about_which_nothing_is_known_stays_as_it_is() -> None:
    assert enhance("Your spending rose.", Acquaintance()).model_dump() == {"text": "Your spending rose.", "applied": []}


@pytest.mark.req("TRUE-20")
@pytest.mark.parametrize(
    ("style", "told"),
    [
        ("formal", "It is 5 % APR; I do not know why."),
        ("casual", "It's 5 % APR; I don't know why."),
        ("simple", "It's 5 % APR (the yearly cost of borrowing); I don't know why."),
        ("technical", "It's 5 % APR; I don't know why."),
        (None, "It's 5 % APR; I don't know why."),
    ],
)
def test_style_changes_wording_never_content(style: str | None, told: str) -> None:
    assert in_style("It's 5 % APR; I don't know why.", style) == told


def test_an_example_is_given_only_where_the_reply_does_not_name_it() -> None:
    goal = Acquaintance(patterns=[pattern("goal_focus", goal="a flat in Porto")])
    assert enhance("You could save more.", goal).applied == ["example"]
    assert enhance("You could save more for a flat in Porto.", goal).applied == []


def test_followups_are_what_came_after_most_often() -> None:
    talks = [["a", "b", "a", "b", "a", "c"], ["a", "a", "d"]]
    assert likely_followups(talks, "a") == ["b", "c", "d"]
    assert likely_followups(talks, None) == likely_followups(talks, "d") == []
