"""What each score teaches."""

from __future__ import annotations

import pytest

from graphmem.context.feedback import issues
from graphmem.domain.session import Message, MessageIn
from graphmem.errors import InvalidInput, NotFound
from tests.context.conftest import Ground

QUESTION = MessageIn(role="user", content="Could you please chart my spending?", intent="spending_analysis")
REPLY = MessageIn(role="assistant", content="Here you are.", sql_executed="SELECT 1", confidence=0.5)


async def talked(ground: Ground) -> Message:
    return (await ground.say("s", QUESTION, REPLY))[1]


async def intents(ground: Ground) -> list[dict[str, object]]:
    return await ground.graph.read(
        lambda transaction: transaction.run_text(
            "MATCH (:User)-[:ASKS]->(i:LearnedIntent {group_id: $group})-[:LEARNED_FROM]->(m:Episodic) "
            "RETURN i.intent AS intent, i.confidence_score AS confidence, i.successful_queries AS queries, "
            "i.positive AS positive, i.negative AS negative, count(m) AS evidence",
            {"group": ground.owner.group_id},
        )
    )


@pytest.mark.req("TRUE-22")
@pytest.mark.parametrize(
    ("score", "verdict", "confidence", "intent_confidence", "learned"),
    [
        (1, "negative", 0.35, 0.35, 0),
        (2, "negative", 0.425, 0.35, 0),
        (3, "neutral", 0.5, None, 0),
        (4, "positive", 0.575, 0.65, 3),
        (5, "positive", 0.65, 0.65, 3),
    ],
)
async def test_each_score_moves_the_confidence_and_teaches_what_it_may(
    ground: Ground, score: int, verdict: str, confidence: float, intent_confidence: float | None, learned: int
) -> None:
    reply = await talked(ground)
    lesson = await ground.contexts.learn_from_feedback(ground.owner, reply.id, score)
    assert (lesson.verdict, lesson.confidence) == (verdict, pytest.approx(confidence))
    assert lesson.intent_confidence == (pytest.approx(intent_confidence) if intent_confidence else None)
    assert len(lesson.preferences) == len(await ground.contexts.preferences(ground.owner)) == learned
    (stored,) = await ground.episodes.load(ground.owner, [reply.id])
    assert (stored.feedback_score, stored.confidence) == (score, pytest.approx(confidence))
    known = await intents(ground)
    if intent_confidence is None:
        assert known == []
    else:
        positive = score >= 4
        assert known[0]["queries"] == (["SELECT 1"] if positive else [])
        assert (known[0]["positive"], known[0]["negative"]) == (int(positive), int(not positive))


@pytest.mark.req("TRUE-16", "TRUE-17", "TRUE-22")
async def test_a_good_verdict_teaches_the_style_and_form_of_the_question_and_its_topic(ground: Ground) -> None:
    reply = await talked(ground)
    lesson = await ground.contexts.learn_from_feedback(ground.owner, reply.id, 4)
    assert {each.preference_type.value: each.preference_value for each in lesson.preferences} == {
        "communication": {"style": "formal"},
        "visualization": {"format": "chart"},
        "topics": {"topic": "spending_analysis"},
    }


@pytest.mark.req("TRUE-17")
@pytest.mark.parametrize(("score", "styles"), [(3, []), (4, [{"style": "technical"}])])
async def test_cues_count_from_a_score_of_four_on(ground: Ground, score: int, styles: list[dict[str, str]]) -> None:
    reply = (await ground.say("s", "What ROI is it", "5 %"))[1]
    await ground.contexts.learn_from_feedback(ground.owner, reply.id, score)
    assert [each.preference_value for each in await ground.contexts.preferences(ground.owner)] == styles


@pytest.mark.req("TRUE-18", "TRUE-22")
async def test_a_second_good_verdict_on_another_reply_makes_surer(ground: Ground) -> None:
    for session_id in ("one", "two"):
        reply = (await ground.say(session_id, "What ROI is it", "5 %"))[1]
        await ground.contexts.learn_from_feedback(ground.owner, reply.id, 5)
    (style,) = await ground.contexts.preferences(ground.owner)
    assert (style.frequency, style.confidence_score) == (2, pytest.approx(0.7))


@pytest.mark.req("TRUE-22")
async def test_a_complaint_says_what_to_change(ground: Ground) -> None:
    reply = await talked(ground)
    await ground.contexts.learn_from_feedback(ground.owner, reply.id, 5)
    other = (await ground.say("t", QUESTION, REPLY))[1]
    lesson = await ground.contexts.learn_from_feedback(
        ground.owner, other.id, 2, "Too long, and the chart is hard to read"
    )
    assert lesson.issues == ["too_long", "presentation"]
    changed = {each.preference_type.value: each for each in lesson.preferences}
    assert changed["detail_level"].preference_value == {"level": "brief"}
    assert changed["visualization"].confidence_score == pytest.approx(0.49)
    kept = {each.preference_type.value: each for each in await ground.contexts.preferences(ground.owner)}
    assert kept["communication"].confidence_score == 0.7


@pytest.mark.req("TRUE-22")
async def test_the_same_verdict_again_teaches_nothing_and_another_one_does(ground: Ground) -> None:
    reply = await talked(ground)
    first = await ground.contexts.learn_from_feedback(ground.owner, reply.id, 5)
    again = await ground.contexts.learn_from_feedback(ground.owner, reply.id, 5)
    assert (again.confidence, again.preferences) == (first.confidence, [])
    other = await ground.contexts.learn_from_feedback(ground.owner, reply.id, 1)
    assert other.confidence < first.confidence


@pytest.mark.req("TRUE-22")
async def test_a_verdict_on_a_question_means_the_reply_to_it(ground: Ground) -> None:
    question = (await ground.say("s", QUESTION, REPLY))[0]
    await ground.contexts.learn_from_feedback(ground.owner, question.id, 5)
    assert (await intents(ground))[0]["queries"] == ["SELECT 1"]


@pytest.mark.req("TRUE-03", "TRUE-22")
@pytest.mark.parametrize("score", [0, 6])
async def test_other_scores_are_refused(ground: Ground, score: int) -> None:
    reply = await talked(ground)
    with pytest.raises(InvalidInput):
        await ground.contexts.learn_from_feedback(ground.owner, reply.id, score)
    assert (await ground.episodes.load(ground.owner, [reply.id]))[0].feedback_score is None


async def test_an_unknown_message_cannot_be_rated(ground: Ground) -> None:
    with pytest.raises(NotFound):
        await ground.contexts.learn_from_feedback(ground.owner, "nowhere", 5)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("", ["unspecified"]),
        ("That is wrong and out of date", ["incorrect", "outdated"]),
        ("I didn't understand the jargon", ["too_technical"]),
        ("Not what I asked, and you repeated yourself", ["irrelevant", "repetitive"]),
    ],
)
def test_a_complaint_is_sorted_by_what_it_is_about(text: str, found: list[str]) -> None:
    assert issues(text) == found
