"""Conversation summaries: figures, the last messages, a digest of the omitted ones."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from graphmem.context.conversation_summary import (
    build_conversation_summary,
    build_recent_messages,
    compute_sentiment_trend,
    summarize_omitted_messages,
    truncate_at_word,
)
from graphmem.context.models import ConversationSummary, SentimentTrend, SessionStatistics
from graphmem.conversations.session import Message, Session
from tests.context.conftest import message

NOON = datetime(2026, 6, 1, 12, tzinfo=UTC)


def session(**fields: Any) -> Session:
    filled: dict[str, Any] = {
        "id": "s", "session_id": "s", "user_id": "mara", "kind": "conversation", "source_session_id": None,
        "title": None, "summary": None, "summarized_through": 0, "intent_sequence": [], "topic_tags": [],
        "sentiment_score": None, "message_count": 0, "is_active": True, "created_at": NOON, "updated_at": NOON,
        "ended_at": None, "metadata": {}, **fields,
    }  # fmt: skip
    return Session(**filled)


def make_messages(count: int) -> list[Message]:
    return [message(f"turn {number}", id=f"m{number}", position=number) for number in range(1, count + 1)]


@pytest.mark.req("TRUE-10")
def test_a_session_without_messages_has_an_empty_summary() -> None:
    assert build_conversation_summary(None, SessionStatistics(), []) == ConversationSummary(
        has_history=False, message_count=0, duration_minutes=0, topics_discussed=[], avg_confidence=0, satisfaction=0
    )


@pytest.mark.req("TRUE-10")
def test_a_session_is_summarized_in_figures() -> None:
    statistics = SessionStatistics(4, NOON, NOON + timedelta(minutes=30), ("planning", "spending_analysis"), 0.75, 4.5)
    summary = build_conversation_summary(session(message_count=4), statistics, make_messages(4))
    assert summary.has_history
    assert (summary.message_count, summary.duration_minutes) == (4, 30)
    assert summary.topics_discussed == ["planning", "spending_analysis"]
    assert (summary.avg_confidence, summary.satisfaction) == (0.75, 4.5)


@pytest.mark.req("TRUE-10")
@pytest.mark.parametrize(
    ("scores", "trend"),
    [
        ([], SentimentTrend.UNKNOWN),
        ([1], SentimentTrend.UNKNOWN),
        ([1, 5], SentimentTrend.IMPROVING),
        ([5, 5, 1, 2], SentimentTrend.DECLINING),
        ([4, 4], SentimentTrend.STABLE),
    ],
)
def test_the_sentiment_trend_compares_later_with_earlier_feedback(scores: list[int], trend: SentimentTrend) -> None:
    assert compute_sentiment_trend([message("x", feedback_score=score) for score in scores]) is trend


@pytest.mark.req("TRUE-10")
def test_given_sentiment_precedes_feedback_and_invalid_values_are_ignored() -> None:
    given = [message("x", metadata={"sentiment": value}, feedback_score=1) for value in (-0.5, 0.5)]
    assert compute_sentiment_trend(given) is SentimentTrend.IMPROVING
    invalid = [message("x", metadata={"sentiment": value}) for value in ("great", True, 7)]
    assert compute_sentiment_trend(invalid) is SentimentTrend.UNKNOWN


@pytest.mark.req("TRUE-11")
def test_the_last_five_messages_are_listed_oldest_first_truncated_at_500() -> None:
    turns = [*make_messages(6), message("x" * 501, id="m7", intent="planning", entities={"goal": ["flat"]})]
    recent = build_recent_messages(turns)
    assert [turn.id for turn in recent] == ["m3", "m4", "m5", "m6", "m7"]
    assert len(recent[-1].content) == 500
    written = recent[-1].model_dump(mode="json")
    assert (written["role"], written["intent"], written["entities"]) == ("user", "planning", {"goal": ["flat"]})
    assert written["timestamp"] == "2026-06-01T12:00:00Z"


@pytest.mark.req("TRUE-12")
def test_omitted_messages_are_summarized_by_count_topics_and_excerpts() -> None:
    statistics = SessionStatistics(6, NOON, NOON, ("planning",))
    digest = summarize_omitted_messages(session(message_count=6), statistics, make_messages(6), 2)
    assert digest == "4 earlier messages about planning: user: turn 1 · user: turn 2 · user: turn 3 · user: turn 4"
    assert summarize_omitted_messages(session(message_count=6), statistics, make_messages(6), 6) == ""


@pytest.mark.req("TRUE-12", "QUINN-08")
def test_a_stored_summary_replaces_the_messages_it_covers() -> None:
    digest = summarize_omitted_messages(
        session(message_count=6, summary="They spoke of rent.", summarized_through=3),
        SessionStatistics(3),
        make_messages(6)[3:],
        1,
    )
    assert digest == "5 earlier messages: They spoke of rent. user: turn 4 · user: turn 5"


def test_texts_are_truncated_between_words_on_one_line() -> None:
    assert truncate_at_word("one\n two  three", 100) == "one two three"
    assert truncate_at_word("one two three four", 12) == "one two…"
    assert len(truncate_at_word("x" * 50, 10)) == 10
