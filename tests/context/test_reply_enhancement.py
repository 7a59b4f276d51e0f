"""A draft reply made the user's own."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from graphmem.context.reply_enhancement import (
    ReplyContext,
    add_continuity,
    apply_style,
    enhance_reply,
    predict_followups,
)
from graphmem.domain.context_models import BehaviorPattern
from tests.context.conftest import message

NOON = datetime(2026, 6, 1, 12, tzinfo=UTC)
SPENDING_QUESTION = [message("How much did I spend?", intent="spending_analysis")]


def pattern(kind: str, **data: Any) -> BehaviorPattern:
    return BehaviorPattern(
        id="p", user_id="mara", pattern_type=kind, pattern_description="", pattern_data=data, confidence_score=0.5,
        occurrence_count=1, first_detected=NOON, last_detected=NOON, is_active=True,
    )  # fmt: skip


@pytest.mark.req("TRUE-21")
def test_continuity_is_added_to_the_first_spending_phrase_once() -> None:
    draft = "Your spending rose. Your spending on food fell."
    tied = "As we discussed, your spending rose. Your spending on food fell."
    assert add_continuity(draft, SPENDING_QUESTION) == tied
    assert add_continuity(tied, SPENDING_QUESTION) == tied


@pytest.mark.req("TRUE-21")
@pytest.mark.parametrize(
    ("draft", "recent"),
    [
        ("Your spending rose.", []),
        ("Your spending rose.", [message("How much?", intent="planning")]),
        ("Your spending rose.", [message("It rose.", role="assistant", intent="spending_analysis")]),
        ("Your savings rose.", SPENDING_QUESTION),
    ],
)
def test_no_continuity_without_a_spending_question_and_reply(draft: str, recent: list[Any]) -> None:
    assert add_continuity(draft, recent) == draft


@pytest.mark.req("TRUE-20", "QUINN-39")
def test_enhancements_are_applied_in_order() -> None:
    known = ReplyContext(
        recent=SPENDING_QUESTION,
        style="casual",
        patterns=[pattern("spending_concern", category="rent", avg_amount=900.0)],
        followups=["budget_planning"],
    )
    reply = enhance_reply("Your spending rose and you are over budget.", known)
    assert reply.applied == ["continuity", "style", "example", "followups"]
    assert reply.text == (
        "As we discussed, your spending rose and you're over budget.\n\n"
        "For example, take your rent spending, about 900 on average, which you ask about often.\n\n"
        "You may also want to look at: budget planning."
    )


@pytest.mark.req("TRUE-20")
def test_a_draft_without_context_is_unchanged() -> None:
    assert enhance_reply("Your spending rose.", ReplyContext()).model_dump() == {
        "text": "Your spending rose.",
        "applied": [],
    }


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
def test_style_changes_wording_not_content(style: str | None, told: str) -> None:
    assert apply_style("It's 5 % APR; I don't know why.", style) == told


def test_an_example_is_added_only_when_the_reply_lacks_it() -> None:
    goal = ReplyContext(patterns=[pattern("goal_focus", goal="a flat in Porto")])
    assert enhance_reply("You could save more.", goal).applied == ["example"]
    assert enhance_reply("You could save more for a flat in Porto.", goal).applied == []


def test_followups_are_the_most_frequent_next_intents() -> None:
    talks = [["a", "b", "a", "b", "a", "c"], ["a", "a", "d"]]
    assert predict_followups(talks, "a") == ["b", "c", "d"]
    assert predict_followups(talks, None) == predict_followups(talks, "d") == []
