"""A conversation in short, without a model: its numbers, its last turns, and a digest of what is not shown. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import fmean

from graphmem.context.window import Line
from graphmem.domain.context import ConversationSummary, RecentMessage, SentimentTrend
from graphmem.domain.session import Message, Role, Session
from graphmem.store.context_rows import Figures

RECENT = 5
RECENT_CHARACTERS = 500
"""How many turns `recent_messages` holds, and how much of each (TRUE-11)."""

GIST_CHARACTERS = 120
"""So much of a turn goes into a digest."""

MOST_GISTS = 40
"""So many turns go into a digest word by word; the others are counted."""

TREND_STEP = 0.1
"""A mood, on a scale of −1 to 1, has changed when the later half differs from the earlier by more than this."""


def conversation_summary(session: Session | None, figures: Figures, messages: Sequence[Message]) -> ConversationSummary:
    """Return a session in numbers (TRUE-10); `messages` are its latest, oldest first, for the trend."""
    count = max(figures.stored, session.message_count if session else 0)
    if not count:
        return ConversationSummary()
    duration = (figures.last_at - figures.first_at).total_seconds() / 60 if figures.first_at and figures.last_at else 0
    return ConversationSummary(
        has_history=True,
        message_count=count,
        duration_minutes=round(duration, 2),
        topics_discussed=list(figures.intents),
        avg_confidence=round(figures.avg_confidence or 0.0, 4),
        satisfaction=round(figures.avg_feedback or 0.0, 4),
        sentiment_trend=sentiment_trend(messages),
    )


def sentiment_trend(messages: Sequence[Message]) -> SentimentTrend:
    """Return where the mood goes: the mean of the later half of the signals against that of the earlier half.

    A signal is a message's `metadata.sentiment` (−1 to 1) or else its feedback, with 1 to 5 read as −1 to 1.
    """
    signals = [mood for message in messages if (mood := _mood(message)) is not None]
    if len(signals) < 2:
        return SentimentTrend.UNKNOWN
    half = len(signals) // 2
    change = fmean(signals[half:]) - fmean(signals[:half])
    if abs(change) <= TREND_STEP:
        return SentimentTrend.STABLE
    return SentimentTrend.IMPROVING if change > 0 else SentimentTrend.DECLINING


def _mood(message: Message) -> float | None:
    told = message.metadata.get("sentiment")
    if isinstance(told, int | float) and not isinstance(told, bool) and -1 <= told <= 1:
        return float(told)
    return (message.feedback_score - 3) / 2 if message.feedback_score is not None else None


def recent_messages(messages: Sequence[Message]) -> list[RecentMessage]:
    """Return the last turns, oldest first, each cut (TRUE-11)."""
    return [
        RecentMessage(
            id=message.id,
            role=message.role,
            content=message.content[:RECENT_CHARACTERS],
            intent=message.intent,
            entities=message.entities,
            timestamp=message.timestamp,
        )
        for message in messages[-RECENT:]
    ]


def lines(messages: Sequence[Message]) -> list[Line]:
    """Return turns as lines of the window, `[USER]: …`."""
    return [Line(each.id, f"[{each.role.value.upper()}]: {one_line(each.content)}") for each in messages]


def rest(session: Session | None, figures: Figures, messages: Sequence[Message], shown: int) -> str:
    """Return the messages of a session that are not among the newest `shown` in short; empty when there are none.

    A stored summary stands for the messages up to `summarized_through`; the others are told by their gist.
    """
    count = max(figures.stored, session.message_count if session else 0)
    if count <= shown:
        return ""
    hidden = messages[: len(messages) - shown]
    parts = [f"{count - shown} earlier message{'s' if count - shown > 1 else ''}"]
    if figures.intents:
        parts[0] += f" about {', '.join(figures.intents)}"
    through = 0
    if session and session.summary:
        through = session.summarized_through
        parts.append(one_line(session.summary))
    gists = [gist(each) for each in hidden if each.position > through and each.role in (Role.USER, Role.ASSISTANT)]
    if gists:
        parts.append(" · ".join(gists[-MOST_GISTS:]))
    return ": ".join([parts[0], " ".join(parts[1:])]) if len(parts) > 1 else parts[0]


def gist(message: Message) -> str:
    """Return who said what in the beginning of a turn."""
    return f"{message.role.value}: {clipped(message.content, GIST_CHARACTERS)}"


def one_line(text: str) -> str:
    """Return a text on one line, so that it cannot pass for a heading or a bullet of its own."""
    return " ".join(text.split())


def clipped(text: str, most: int) -> str:
    """Return the beginning of a text on one line, at most so many characters, cut between words."""
    flat = one_line(text)
    if len(flat) <= most:
        return flat
    head = flat[: most - 1]
    return (head.rsplit(" ", 1)[0] if " " in head[most // 2 :] else head) + "…"
