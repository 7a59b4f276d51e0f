"""What feedback on a message teaches, score by score."""

from __future__ import annotations

import pytest

from graphmem.context.preferences import detect_issues
from graphmem.conversations.session import Message, MessageIn
from graphmem.runtime.errors import InvalidInput, NotFound
from tests.context.conftest import ContextHarness

QUESTION = MessageIn(role="user", content="Could you please chart my spending?", intent="spending_analysis")
REPLY = MessageIn(role="assistant", content="Here you are.", sql_executed="SELECT 1", confidence=0.5)


async def store_question_and_reply(harness: ContextHarness) -> Message:
    return (await harness.add_messages("s", QUESTION, REPLY))[1]


async def stored_intents(harness: ContextHarness) -> list[dict[str, object]]:
    return await harness.graph.read(
        lambda transaction: transaction.run_text(
            "MATCH (:User)-[:ASKS]->(i:LearnedIntent {group_id: $group})-[:LEARNED_FROM]->(m:Episodic) "
            "RETURN i.intent AS intent, i.confidence_score AS confidence, "
            "coalesce(i.successful_queries, []) AS queries, "
            "i.positive AS positive, i.negative AS negative, count(m) AS evidence",
            {"group": harness.owner.group_id},
        )
    )


@pytest.mark.req("TRUE-22")
@pytest.mark.parametrize(
    ("score", "verdict", "confidence", "intent_confidence", "learned"),
    [
        (1, "negative", 0.35, 0.35, 0),
        pytest.param(2, "negative", 0.425, 0.35, 0, marks=pytest.mark.long),
        (3, "neutral", 0.5, None, 0),
        (4, "positive", 0.575, 0.65, 3),
        pytest.param(5, "positive", 0.65, 0.65, 3, marks=pytest.mark.long),
    ],
)
async def test_each_score_updates_confidence_and_preferences(
    harness: ContextHarness, score: int, verdict: str, confidence: float, intent_confidence: float | None, learned: int
) -> None:
    reply = await store_question_and_reply(harness)
    result = await harness.learner.learn_from_feedback(harness.owner, reply.id, score)
    assert result.verdict == verdict
    assert result.confidence == pytest.approx(confidence)
    assert result.intent_confidence == (pytest.approx(intent_confidence) if intent_confidence else None)
    assert len(result.preferences) == len(await harness.contexts.list_preferences(harness.owner)) == learned
    (stored,) = await harness.episodes.load_messages(harness.owner, [reply.id])
    assert stored.feedback_score == score
    assert stored.confidence == pytest.approx(confidence)
    known = await stored_intents(harness)
    if intent_confidence is None:
        assert known == []
    else:
        positive = score >= 4
        assert known[0]["queries"] == (["SELECT 1"] if positive else [])
        assert (known[0]["positive"], known[0]["negative"]) == (int(positive), int(not positive))


@pytest.mark.req("TRUE-16", "TRUE-17", "TRUE-22")
async def test_positive_feedback_learns_style_format_and_topic(harness: ContextHarness) -> None:
    reply = await store_question_and_reply(harness)
    result = await harness.learner.learn_from_feedback(harness.owner, reply.id, 4)
    assert {preference.preference_type.value: preference.preference_value for preference in result.preferences} == {
        "communication": {"style": "formal"},
        "visualization": {"format": "chart"},
        "topics": {"topic": "spending_analysis"},
    }


@pytest.mark.req("TRUE-17")
@pytest.mark.parametrize(("score", "styles"), [(3, []), (4, [{"style": "technical"}])])
async def test_style_cues_are_learned_from_a_score_of_four_on(
    finance_harness: ContextHarness, score: int, styles: list[dict[str, str]]
) -> None:
    harness = finance_harness
    reply = (await harness.add_messages("s", "What ROI is it", "5 %"))[1]
    await harness.learner.learn_from_feedback(harness.owner, reply.id, score)
    assert [
        preference.preference_value for preference in await harness.contexts.list_preferences(harness.owner)
    ] == styles


@pytest.mark.req("TRUE-18", "TRUE-22")
async def test_a_second_positive_feedback_raises_confidence(finance_harness: ContextHarness) -> None:
    harness = finance_harness
    for session_id in ("one", "two"):
        reply = (await harness.add_messages(session_id, "What ROI is it", "5 %"))[1]
        await harness.learner.learn_from_feedback(harness.owner, reply.id, 5)
    (style,) = await harness.contexts.list_preferences(harness.owner)
    assert style.frequency == 2
    assert style.confidence_score == pytest.approx(0.7)


@pytest.mark.req("TRUE-22")
async def test_a_complaint_changes_the_preferences_it_names(harness: ContextHarness) -> None:
    reply = await store_question_and_reply(harness)
    await harness.learner.learn_from_feedback(harness.owner, reply.id, 5)
    other = (await harness.add_messages("t", QUESTION, REPLY))[1]
    result = await harness.learner.learn_from_feedback(
        harness.owner, other.id, 2, "Too long, and the chart is hard to read"
    )
    assert result.issues == ["too_long", "presentation"]
    (stored,) = await harness.episodes.load_messages(harness.owner, [other.id])
    assert stored.feedback_issues == result.issues, "the complaint stays with the reply"
    changed = {preference.preference_type.value: preference for preference in result.preferences}
    assert changed["detail_level"].preference_value == {"level": "brief"}
    assert changed["visualization"].confidence_score == pytest.approx(0.49)
    kept = {
        preference.preference_type.value: preference
        for preference in await harness.contexts.list_preferences(harness.owner)
    }
    assert kept["communication"].confidence_score == 0.7


@pytest.mark.req("TRUE-22")
async def test_repeated_feedback_changes_nothing_and_changed_feedback_does(harness: ContextHarness) -> None:
    reply = await store_question_and_reply(harness)
    first = await harness.learner.learn_from_feedback(harness.owner, reply.id, 5)
    again = await harness.learner.learn_from_feedback(harness.owner, reply.id, 5)
    assert (again.confidence, again.preferences) == (first.confidence, [])
    other = await harness.learner.learn_from_feedback(harness.owner, reply.id, 1)
    assert other.confidence < first.confidence


@pytest.mark.req("TRUE-22")
async def test_a_rating_that_changes_back_and_forth_counts_once(harness: ContextHarness) -> None:
    reply = await store_question_and_reply(harness)
    results = [
        await harness.learner.learn_from_feedback(harness.owner, reply.id, score) for score in (5, 4, 5, 4, 1, 5, 1, 4)
    ]
    (intent,) = await stored_intents(harness)
    assert (intent["positive"], intent["negative"]) == (1, 0), "the present rating counts"
    assert [len(result.preferences) for result in results] == [3, 0, 0, 0, 0, 0, 0, 0]
    (style,) = [
        preference
        for preference in await harness.contexts.list_preferences(harness.owner)
        if preference.preference_type == "communication"
    ]
    assert (style.frequency, style.confidence_score) == (1, 0.7)
    (stored,) = await harness.episodes.load_messages(harness.owner, [reply.id])
    assert stored.feedback_score == 4
    assert stored.confidence == pytest.approx(0.575), "as if it had been rated with the last score alone"


@pytest.mark.req("TRUE-22")
async def test_a_comment_that_is_added_to_a_rating_teaches_what_it_states(harness: ContextHarness) -> None:
    reply = await store_question_and_reply(harness)
    await harness.learner.learn_from_feedback(harness.owner, reply.id, 2)
    result = await harness.learner.learn_from_feedback(harness.owner, reply.id, 2, "Your answer was too long")
    assert result.issues == ["too_long"]
    assert [preference.preference_value for preference in result.preferences] == [{"level": "brief"}]


@pytest.mark.req("TRUE-22")
async def test_feedback_on_a_question_applies_to_its_reply(harness: ContextHarness) -> None:
    question = (await harness.add_messages("s", QUESTION, REPLY))[0]
    await harness.learner.learn_from_feedback(harness.owner, question.id, 5)
    assert (await stored_intents(harness))[0]["queries"] == ["SELECT 1"]


@pytest.mark.req("TRUE-03", "TRUE-22")
@pytest.mark.parametrize("score", [0, 6])
async def test_scores_out_of_range_are_rejected(harness: ContextHarness, score: int) -> None:
    reply = await store_question_and_reply(harness)
    with pytest.raises(InvalidInput):
        await harness.learner.learn_from_feedback(harness.owner, reply.id, score)
    assert (await harness.episodes.load_messages(harness.owner, [reply.id]))[0].feedback_score is None


async def test_an_unknown_message_cannot_be_rated(harness: ContextHarness) -> None:
    with pytest.raises(NotFound):
        await harness.learner.learn_from_feedback(harness.owner, "nowhere", 5)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("", ["unspecified"]),
        ("That is wrong and out of date", ["incorrect", "outdated"]),
        ("I didn't understand the jargon", ["too_technical"]),
        ("Not what I asked, and you repeated yourself", ["irrelevant", "repetitive"]),
    ],
)
def test_a_complaint_is_classified_by_its_issues(text: str, found: list[str]) -> None:
    assert detect_issues(text) == found


@pytest.mark.req("TRUE-22", "QUINN-42")
@pytest.mark.parametrize(
    "comment",
    [
        "I do not want charts",
        pytest.param("no charts please", marks=pytest.mark.long),
        pytest.param("I didn't want charts here", marks=pytest.mark.long),
    ],
)
@pytest.mark.parametrize("score", [1, 5])
async def test_a_comment_against_charts_never_raises_the_preference_for_them(
    harness: ContextHarness, comment: str, score: int
) -> None:
    first = await store_question_and_reply(harness)
    await harness.learner.learn_from_feedback(harness.owner, first.id, 5)
    reply = (await harness.add_messages("t", "And last month?", "Here."))[1]
    await harness.learner.learn_from_feedback(harness.owner, reply.id, score, comment)
    stored = {one.preference_key: one for one in await harness.contexts.list_preferences(harness.owner)}
    charts = stored["visualization"]
    assert charts.preference_value == {"format": "chart"}
    assert charts.confidence_score <= (0.49 if score == 1 else 0.7)
