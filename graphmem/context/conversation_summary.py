"""Summary of a session without a model: its figures, its last messages, a digest of the omitted ones. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import fmean

from graphmem.context.models import (
    ConversationSummary,
    RecentMessage,
    SentimentTrend,
    SessionStatistics,
)
from graphmem.context.preamble import PreambleLine
from graphmem.conversations.session import Message, MessageRole, Session
from graphmem.text.added_texts import fence_line

MAX_RECENT_MESSAGES = 5
"""Maximum messages in `recent_messages`."""

RECENT_MESSAGE_CHARACTERS = 500
"""Maximum characters of a recent message."""

EXCERPT_CHARACTERS = 120
"""Maximum characters of a message in a digest."""

MAX_EXCERPTS = 40
"""Maximum messages excerpted in a digest; the others are only counted."""

TREND_THRESHOLD = 0.1
"""Difference of mean sentiment (−1 to 1) between the later and the earlier half above which the mood has changed."""


def build_conversation_summary(
    session: Session | None, statistics: SessionStatistics, messages: Sequence[Message]
) -> ConversationSummary:
    """Return the figures of a session; the trend is computed from `messages`, its latest, oldest first."""
    count = max(statistics.stored, session.message_count if session else 0)
    if not count:
        return ConversationSummary()
    duration = (
        (statistics.last_at - statistics.first_at).total_seconds() / 60
        if statistics.first_at and statistics.last_at
        else 0
    )
    return ConversationSummary(
        has_history=True,
        message_count=count,
        duration_minutes=round(duration, 2),
        topics_discussed=list(dict.fromkeys([*statistics.intents, *(session.intent_sequence if session else ())])),
        avg_confidence=round(statistics.avg_confidence or 0.0, 4),
        satisfaction=round(statistics.avg_feedback or 0.0, 4),
        sentiment_trend=compute_sentiment_trend(messages),
    )


def compute_sentiment_trend(messages: Sequence[Message]) -> SentimentTrend:
    """Compare the mean sentiment of the later half of the messages with that of the earlier half.

    A message's sentiment is its `metadata.sentiment` (−1 to 1), else its feedback score, mapped from 1–5 to −1–1.
    Messages without either are ignored.
    """
    sentiments = [sentiment for message in messages if (sentiment := _sentiment(message)) is not None]
    if len(sentiments) < 2:
        return SentimentTrend.UNKNOWN
    half = len(sentiments) // 2
    change = fmean(sentiments[half:]) - fmean(sentiments[:half])
    if abs(change) <= TREND_THRESHOLD:
        return SentimentTrend.STABLE
    return SentimentTrend.IMPROVING if change > 0 else SentimentTrend.DECLINING


def _sentiment(message: Message) -> float | None:
    given = message.metadata.get("sentiment")
    if isinstance(given, int | float) and not isinstance(given, bool) and -1 <= given <= 1:
        return float(given)
    return (message.feedback_score - 3) / 2 if message.feedback_score is not None else None


def build_recent_messages(messages: Sequence[Message]) -> list[RecentMessage]:
    """Return the last messages, oldest first, with their text truncated."""
    return [
        RecentMessage(
            id=message.id,
            role=message.role,
            content=message.content[:RECENT_MESSAGE_CHARACTERS],
            intent=message.intent,
            entities=message.entities,
            timestamp=message.timestamp,
        )
        for message in messages[-MAX_RECENT_MESSAGES:]
    ]


def message_lines(messages: Sequence[Message]) -> list[PreambleLine]:
    """Return messages as lines of the preamble, `[USER]: …`."""
    return [
        PreambleLine(message.key, f"[{_speaker_tag(message)}]: {to_single_line(message.content)}")
        for message in messages
    ]


def summarize_omitted_messages(
    session: Session | None, statistics: SessionStatistics, messages: Sequence[Message], shown: int
) -> str:
    """Return a digest of the messages that are not among the newest `shown`; empty if there are none.

    It contains the stored summary of the session and excerpts of the messages after `summarized_through`.
    """
    count = max(statistics.stored, session.message_count if session else 0)
    if count <= shown:
        return ""
    hidden = messages[: len(messages) - shown]
    parts = [f"{count - shown} earlier message{'s' if count - shown > 1 else ''}"]
    if statistics.intents:
        parts[0] += f" about {', '.join(statistics.intents)}"
    through = 0
    if session and session.summary:
        through = session.summarized_through
        parts.append(to_single_line(session.summary))
    excerpted = [
        message
        for message in hidden
        if message.position > through and message.role in (MessageRole.USER, MessageRole.ASSISTANT)
    ]
    if excerpted:
        parts.append(" · ".join(map(message_excerpt, excerpted[-MAX_EXCERPTS:])))
    return ": ".join([parts[0], " ".join(parts[1:])]) if len(parts) > 1 else parts[0]


def message_excerpt(message: Message) -> str:
    """Return the beginning of a message, with its role, or its origin if others wrote it."""
    speaker = to_single_line(message.said_by) if message.is_of_others else message.role.value
    return f"{speaker}: {truncate_at_word(message.content, EXCERPT_CHARACTERS)}"


def _speaker_tag(message: Message) -> str:
    """Return a message's role, or its origin if others wrote it."""
    return to_single_line(message.said_by) if message.is_of_others else message.role.value.upper()


def to_single_line(text: str) -> str:
    """Return a text on one line, so that no part of it can be mistaken for a heading or a bullet."""
    return fence_line(text)


def truncate_at_word(text: str, max_characters: int) -> str:
    """Return a text on one line, truncated between words to at most `max_characters`."""
    flat = to_single_line(text)
    if len(flat) <= max_characters:
        return flat
    head = flat[: max_characters - 1]
    return (head.rsplit(" ", 1)[0] if " " in head[max_characters // 2 :] else head) + "…"
