"""Enhancement of a draft reply, step by step."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

import pytest

from graphmem.context.hints import add_continuity, apply_style, enhance_reply, predict_followups
from graphmem.context.models import BehaviorPattern, ContextSnapshot, EnhanceIn, LearnedPreference, PastSession
from graphmem.conversations.session import Message
from graphmem.tenants.profiles import load_profile
from tests.context.conftest import ContextHarness, message

NOON = datetime(2026, 6, 1, 12, tzinfo=UTC)
GENERAL, FINANCE = load_profile("general"), load_profile("finance")
SPENDING_QUESTION = [message("How much did I spend?", intent="spending_analysis")]


def pattern(kind: str, **data: Any) -> BehaviorPattern:
    return BehaviorPattern(
        id="p", user_id="mara", pattern_type=kind, pattern_description="", pattern_data=data, confidence_score=0.5,
        occurrence_count=1, first_detected=NOON, last_detected=NOON, is_active=True,
    )  # fmt: skip


def snapshot(
    messages: Sequence[Message] = (),
    style: str | None = None,
    patterns: Sequence[BehaviorPattern] = (),
    intents: tuple[str, ...] = (),
) -> ContextSnapshot:
    preference = LearnedPreference(
        id="p", user_id="mara", preference_type="communication", preference_key="communication",
        preference_value={"style": style or ""}, confidence_score=0.7, learned_from={}, frequency=1,
        last_observed=NOON, created_at=NOON, updated_at=NOON,
    )  # fmt: skip
    return ContextSnapshot(
        version="1",
        valid_until=NOON,
        messages=messages,
        preferences=[preference] if style else [],
        patterns=patterns,
        sessions=[PastSession("earlier", None, None, (), intents, NOON)],
    )


@pytest.mark.req("TRUE-21")
def test_continuity_is_added_to_the_first_spending_phrase_once() -> None:
    draft = "Your spending rose. Your spending on food fell."
    tied = "As we discussed, your spending rose. Your spending on food fell."
    assert add_continuity(draft, SPENDING_QUESTION, FINANCE.continuity) == tied
    assert add_continuity(tied, SPENDING_QUESTION, FINANCE.continuity) == tied


@pytest.mark.req("TRUE-21")
@pytest.mark.parametrize(
    ("draft", "messages"),
    [
        ("Your spending rose.", []),
        ("Your spending rose.", [message("How much?", intent="planning")]),
        ("Your spending rose.", [message("It rose.", role="assistant", intent="spending_analysis")]),
        ("Your savings rose.", SPENDING_QUESTION),
    ],
)
def test_no_continuity_without_a_spending_question_and_reply(draft: str, messages: list[Message]) -> None:
    assert enhance_reply(draft, snapshot(messages), FINANCE).applied == []


@pytest.mark.req("TRUE-20", "QUINN-39")
def test_enhancements_are_applied_in_order() -> None:
    known = snapshot(
        messages=SPENDING_QUESTION,
        style="casual",
        patterns=[pattern("spending_concern", category="rent", avg_amount=900.0)],
        intents=("spending_analysis", "budget_planning"),
    )
    reply = enhance_reply("Your spending rose and you are over budget.", known, FINANCE)
    assert reply.applied == ["continuity", "style", "example", "followups"]
    assert reply.text == (
        "As we discussed, your spending rose and you're over budget.\n\n"
        "For example, take your rent spending, about 900 on average, which you ask about often.\n\n"
        "You may also want to look at: budget planning."
    )
    general = enhance_reply("Your spending rose and you are over budget.", known, GENERAL)
    assert general.applied == ["style", "followups"], "continuity and the example are the finance profile's"


@pytest.mark.req("TRUE-20")
def test_a_draft_without_context_is_unchanged() -> None:
    reply = enhance_reply("Your spending rose.", snapshot(), FINANCE)
    assert (reply.text, reply.applied) == ("Your spending rose.", [])


@pytest.mark.req("TRUE-20")
@pytest.mark.parametrize(
    ("style", "enhanced"),
    [
        ("formal", "It is 5 % APR; I do not know why."),
        ("casual", "It's 5 % APR; I don't know why."),
        ("simple", "It's 5 % APR (the yearly cost of borrowing); I don't know why."),
        ("technical", "It's 5 % APR; I don't know why."),
        (None, "It's 5 % APR; I don't know why."),
    ],
)
def test_style_changes_wording_not_content(style: str | None, enhanced: str) -> None:
    assert apply_style("It's 5 % APR; I don't know why.", style, FINANCE.glossary) == enhanced


def test_the_general_profile_explains_no_finance_terms() -> None:
    assert apply_style("It's 5 % APR.", "simple", GENERAL.glossary) == "It's 5 % APR."


@pytest.mark.parametrize(
    ("draft", "profile", "applied"),
    [
        ("That fits your plan.", GENERAL, ["example"]),
        ("That fits your plan for a flat in Porto.", GENERAL, []),
        ("You could save more.", FINANCE, ["example"]),
        ("You could save more.", GENERAL, []),
    ],
)
def test_a_goal_is_added_to_a_reply_about_goals_that_does_not_name_it(
    draft: str, profile: Any, applied: list[str]
) -> None:
    known = snapshot(patterns=[pattern("goal_focus", goal="a flat in Porto")])
    assert enhance_reply(draft, known, profile).applied == applied


def test_followups_are_the_most_frequent_next_intents() -> None:
    sessions = [["a", "b", "a", "b", "a", "c"], ["a", "a", "d"]]
    assert predict_followups(sessions, "a") == ["b", "c", "d"]
    assert predict_followups(sessions, None) == predict_followups(sessions, "d") == []


@pytest.mark.req("QUINN-39")
async def test_a_memory_without_messages_is_a_source_with_its_date(harness: ContextHarness) -> None:
    await harness.add_messages("s", "Where do I live?", "In Turin.")
    (saved,) = await harness.save_memories("Mara lives in Turin")
    reply = await harness.contexts.enhance(harness.owner, "s", EnhanceIn(reply="In Turin.", sources=[saved.id]))
    assert f"{saved.created_at:%Y-%m-%d}" in reply.text
