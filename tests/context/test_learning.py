"""Patterns and preferences learned from messages, stored with links to their evidence."""

from __future__ import annotations

from datetime import timedelta
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from graphmem.conversations.session import MessageIn
from graphmem.ingestion.answers import Polarity, Wish, WishAbout
from graphmem.memories.memory import MemoryIn
from graphmem.tenants.profiles import PatternType
from graphmem.text.normalising import normalise
from tests.context.conftest import ContextHarness


@pytest.mark.req("TRUE-06", "TRUE-14")
@pytest.mark.parametrize(("days", "confidence"), [(6, None), (7, 7 / 30)])
async def test_query_frequency_is_stored_from_seven_active_days_on(
    harness: ContextHarness, days: int, confidence: float | None
) -> None:
    await harness.add_daily_messages(days)
    found = [
        pattern
        for pattern in await harness.contexts.list_patterns(harness.owner)
        if pattern.pattern_type == "query_frequency"
    ]
    assert [pattern.confidence_score for pattern in found] == ([pytest.approx(confidence)] if confidence else [])
    if found:
        assert found[0].pattern_description == "User typically asks 1 question per day"
        assert (found[0].user_id, found[0].is_active, found[0].occurrence_count) == ("mara", True, 7)
        assert found[0].first_detected == found[0].last_detected == harness.clock()


@pytest.mark.req("TRUE-06")
async def test_a_pattern_counts_its_messages_not_its_detections_and_a_vanished_one_is_deactivated(
    harness: ContextHarness,
) -> None:
    await harness.add_daily_messages(7)
    first = await harness.contexts.list_patterns(harness.owner)
    harness.clock.advance(timedelta(days=1))
    again = {pattern.pattern_type: pattern for pattern in await harness.learner.detect_patterns(harness.owner)}
    frequency = again[PatternType.QUERY_FREQUENCY]
    assert (frequency.occurrence_count, frequency.id) == (7, first[0].id)
    assert frequency.first_detected < frequency.last_detected == harness.clock()
    harness.clock.advance(timedelta(days=60))
    assert await harness.learner.detect_patterns(harness.owner) == []
    rows = await _run(harness, "MATCH (p:BehaviorPattern {group_id: $group}) RETURN collect(p.is_active) AS active")
    assert rows == [{"active": [False]}]


@pytest.mark.req("TRUE-15")
@pytest.mark.parametrize(("queries", "found"), [(2, 0), (3, 1)])
async def test_three_questions_about_a_category_are_a_spending_concern(
    finance_harness: ContextHarness, queries: int, found: int
) -> None:
    harness = finance_harness
    entities: Any = {"category": "food", "amount": 90}
    question = MessageIn(role="user", content="And food?", intent="spending_analysis", entities=entities)
    await harness.add_messages("s", *[question] * queries, learn=True)
    patterns = await harness.contexts.list_patterns(harness.owner)
    assert len(patterns) == found
    if found:
        assert patterns[0].pattern_data == {
            "category": "food", "frequency": 3, "avg_amount": 90.0, "related_intents": ["spending_analysis"]
        }  # fmt: skip
        rows = await _run(
            harness,
            "MATCH (u:User)-[:SHOWS]->(p:BehaviorPattern {group_id: $group})-[:SEEN_IN]->(m:Episodic) "
            "RETURN p.name AS name, count(m) AS evidence",
        )
        assert rows == [{"name": "Frequently asks about food spending", "evidence": 3}]


@pytest.mark.req("TRUE-04", "TRUE-15")
async def test_what_extraction_found_messages_to_be_about_is_learned_like_what_callers_send(
    finance_harness: ContextHarness,
) -> None:
    harness = finance_harness
    turns = [MessageIn(role="user", content=f"And food? {number}") for number in range(3)]
    messages = await harness.add_messages("s", *turns, learn=True)
    assert await harness.contexts.list_patterns(harness.owner) == []
    derived = {"intent": "spending_analysis", "entities": '{"category": ["food"]}'}
    await harness.graph.execute(
        "extraction.set_turns",
        group_id=harness.owner.group_id,
        session_id="s",
        turns=[{"message_id": message.id, **derived} for message in messages],
    )
    found = await harness.episodes.load_messages(harness.owner, [message.id for message in messages])
    await harness.learner.learn_from_turns(harness.owner, found, {})
    (concern,) = await harness.contexts.list_patterns(harness.owner)
    assert (concern.pattern_type, concern.occurrence_count) == ("spending_concern", 3)
    items = await harness.store.list_active_items(harness.owner, "s")
    assert ("entity_category", "food") in {(item.context_type, item.context_value) for item in items}


async def test_the_general_profile_detects_no_spending_concern(harness: ContextHarness) -> None:
    question = MessageIn(role="user", content="And food?", intent="spending_analysis", entities={"category": "food"})
    await harness.add_messages("s", *[question] * 10, learn=True)
    patterns = await harness.contexts.list_patterns(harness.owner)
    assert [pattern.pattern_type for pattern in patterns] == ["time_of_day"]


@pytest.mark.req("TRUE-13")
async def test_a_plan_with_three_source_messages_is_a_goal_focus(harness: ContextHarness) -> None:
    messages = await harness.add_messages(
        "s", *[MessageIn(role="user", content=f"The flat, part {n}") for n in range(3)]
    )
    plan = {
        "content": "Mara saves for a flat in Porto",
        "type": "plan",
        "source": {"message_ids": [m.id for m in messages]},
    }
    (memory,) = await harness.save_memories(MemoryIn(**plan))
    (found,) = await harness.learner.detect_patterns(harness.owner)
    assert (found.pattern_type, found.pattern_data["goal"]) == ("goal_focus", "Mara saves for a flat in Porto")
    await harness.store.delete_goal_patterns(harness.owner, [normalise(memory.content)])
    assert await _run(harness, "MATCH (p:BehaviorPattern {group_id: $group}) RETURN p.name AS name") == []


@pytest.mark.req("TRUE-13")
async def test_the_time_of_day_uses_the_users_timezone(harness: ContextHarness) -> None:
    noon = harness.clock()
    questions = [
        MessageIn(
            role="user",
            content=f"q{n}",
            timestamp=(noon - timedelta(days=1, minutes=n)).astimezone(ZoneInfo("Asia/Tokyo")),
        )
        for n in range(10)
    ]
    await harness.add_messages("s", *questions, learn=True)
    (found,) = await harness.contexts.list_patterns(harness.owner)
    assert (found.pattern_type, found.pattern_data["start"]) == ("time_of_day", "20:51")


@pytest.mark.req("QUINN-42", "TRUE-16")
async def test_where_a_model_reads_messages_its_wishes_are_learned_and_the_forms_of_wishes_are_not(
    harness: ContextHarness,
) -> None:
    (message,) = await harness.add_messages("s", "Use a formal tone, writes my boss, and I would rather you did not.")
    (quoting,) = await harness.add_messages("s", "Answer in Spanish")
    await harness.learner.learn_from_messages(harness.owner, [message, quoting], reads_wishes=False)
    assert await harness.contexts.list_preferences(harness.owner) == []
    wishes = {
        message.id: [
            Wish(about=WishAbout.STYLE, value="Formal", polarity=Polarity.AGAINST),
            Wish(about=WishAbout.STYLE, value="pirate", polarity=Polarity.FOR),
            Wish(about=WishAbout.LANGUAGE, value="card 4242", polarity=Polarity.FOR),
        ]
    }
    await harness.learner.learn_from_turns(harness.owner, [message, quoting], wishes)
    (learned,) = await harness.contexts.list_preferences(harness.owner)
    assert (learned.preference_value, learned.learned_from.message_id) == ({"avoid": "formal"}, message.id)


@pytest.mark.req("TRUE-05", "TRUE-16", "QUINN-42")
async def test_a_stated_preference_is_learned_at_once_with_its_source(harness: ContextHarness) -> None:
    (message,) = await harness.add_messages("s", "Please answer in Spanish and keep it short", learn=True)
    preferences = await harness.contexts.list_preferences(harness.owner)
    learned = {preference.preference_type.value: preference for preference in preferences}
    language = learned["communication"]
    assert (language.preference_key, language.preference_value) == ("language", {"language": "Spanish"})
    assert (language.confidence_score, language.frequency, language.learned_from.message_id) == (0.9, 1, message.id)
    assert learned["detail_level"].preference_value == {"level": "brief"}
    rows = await _run(
        harness,
        "MATCH (u:User)-[:LIKES]->(p:LearnedPreference {group_id: $group})-[:LEARNED_FROM]->(m:Episodic) "
        "RETURN DISTINCT m.message_id AS message",
    )
    assert rows == [{"message": message.id}]


@pytest.mark.req("TRUE-07")
async def test_assistant_messages_teach_nothing(harness: ContextHarness) -> None:
    await harness.add_messages(
        "s", MessageIn(role="assistant", content="Please answer in Spanish, I paid $40"), learn=True
    )
    assert await harness.contexts.list_preferences(harness.owner) == []
    assert await harness.contexts.list_items(harness.owner) == []


async def _run(harness: ContextHarness, text: str) -> list[dict[str, Any]]:
    return await harness.graph.read(lambda tx: tx.run_text(text, {"group": harness.owner.group_id}))
