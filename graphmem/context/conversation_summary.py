"""A conversation in short, without a model: its numbers, its last turns, and a digest of what is not shown. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import fmean

from graphmem.context.preamble import PreambleLine
from graphmem.domain.context_models import ConversationSummary, RecentMessage, SentimentTrend
from graphmem.domain.session import Message, MessageRole, Session
from graphmem.store.context_mapping import SessionStatistics

MAX_RECENT_MESSAGES = 5
RECENT_MESSAGE_CHARACTERS = 500
"""How many turns `recent_messages` holds, and how much of each (TRUE-11)."""

EXCERPT_CHARACTERS = 120
"""So much of a turn goes into a digest."""

MAX_EXCERPTS = 40
"""So many turns go into a digest word by word; the others are counted."""

TREND_THRESHOLD = 0.1
"""A mood, on a scale of −1 to 1, has changed when the later half differs from the earlier by more than this."""


def build_conversation_summary(
    session: Session | None, statistics: SessionStatistics, messages: Sequence[Message]
) -> ConversationSummary:
    """Return a session in numbers (TRUE-10); `messages` are its latest, oldest first, for the trend."""
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
        topics_discussed=list(statistics.intents),
        avg_confidence=round(statistics.avg_confidence or 0.0, 4),
        satisfaction=round(statistics.avg_feedback or 0.0, 4),
        sentiment_trend=compute_sentiment_trend(messages),
    )


def compute_sentiment_trend(messages: Sequence[Message]) -> SentimentTrend:
    """Return where the mood goes: the mean of the later half of the signals against that of the earlier half.

    A signal is a message's `metadata.sentiment` (−1 to 1) or else its feedback, with 1 to 5 read as −1 to 1.
    """
    signals = [mood for message in messages if (mood := _sentiment(message)) is not None]
    if len(signals) < 2:
        return SentimentTrend.UNKNOWN
    half = len(signals) // 2
    change = fmean(signals[half:]) - fmean(signals[:half])
    if abs(change) <= TREND_THRESHOLD:
        return SentimentTrend.STABLE
    return SentimentTrend.IMPROVING if change > 0 else SentimentTrend.DECLINING


def _sentiment(message: Message) -> float | None:
    told = message.metadata.get("sentiment")
    if isinstance(told, int | float) and not isinstance(told, bool) and -1 <= told <= 1:
        return float(told)
    return (message.feedback_score - 3) / 2 if message.feedback_score is not None else None


def build_recent_messages(messages: Sequence[Message]) -> list[RecentMessage]:
    """Return the last turns, oldest first, each cut (TRUE-11)."""
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
    """Return turns as lines of the window, `[USER]: …`."""
    return [PreambleLine(each.id, f"[{each.role.value.upper()}]: {to_single_line(each.content)}") for each in messages]


def summarize_omitted_messages(
    session: Session | None, statistics: SessionStatistics, messages: Sequence[Message], shown: int
) -> str:
    """Return the messages of a session that are not among the newest `shown` in short; empty when there are none.

    A stored summary stands for the messages up to `summarized_through`; the others are told by their gist.
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
    excerpts = [
        message_excerpt(each)
        for each in hidden
        if each.position > through and each.role in (MessageRole.USER, MessageRole.ASSISTANT)
    ]
    if excerpts:
        parts.append(" · ".join(excerpts[-MAX_EXCERPTS:]))
    return ": ".join([parts[0], " ".join(parts[1:])]) if len(parts) > 1 else parts[0]


def message_excerpt(message: Message) -> str:
    """Return who said what in the beginning of a turn."""
    return f"{message.role.value}: {truncate_at_word(message.content, EXCERPT_CHARACTERS)}"


def to_single_line(text: str) -> str:
    """Return a text on one line, so that it cannot pass for a heading or a bullet of its own."""
    return " ".join(text.split())


def truncate_at_word(text: str, max_characters: int) -> str:
    """Return the beginning of a text on one line, at most so many characters, cut between words."""
    flat = to_single_line(text)
    if len(flat) <= max_characters:
        return flat
    head = flat[: max_characters - 1]
    return (head.rsplit(" ", 1)[0] if " " in head[max_characters // 2 :] else head) + "…"
