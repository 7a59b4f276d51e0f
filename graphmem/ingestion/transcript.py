"""What one model call reads: a conversation cut at its turns, and turns as numbered lines. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone, tzinfo
from zoneinfo import ZoneInfo

from graphmem.domain.session import Message, MessageRole
from graphmem.ingestion.secret_redaction import Redactor
from graphmem.llm.prompts import indent_continuations

MAX_WINDOW_CHARACTERS = 24_000
MAX_WINDOW_MESSAGES = 60
PART_OVERLAP_CHARACTERS = 600
EARLIER_MESSAGES = 6
EARLIER_MESSAGE_EDGE_CHARACTERS = 400

_DIALOGUE_ROLES = (MessageRole.USER, MessageRole.ASSISTANT)


@dataclass(frozen=True, slots=True)
class MessagePart:
    """A message, or the part `[start, end)` of one that is longer than a window."""

    message_id: str
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class TranscriptLine:
    """One numbered line of a prompt: a part of a message as its speaker said it, at their local time."""

    number: int
    message_id: str
    role: MessageRole
    speaker: str | None
    sent_at: datetime
    text: str


def split_into_windows(messages: Sequence[Message], limit: int = MAX_WINDOW_CHARACTERS) -> list[list[MessagePart]]:
    """Return the windows of a conversation, each of one session, up to `limit` characters and 60 turns.

    Nothing is left out. Turns are kept whole; one longer than a window is cut at a space, its parts overlapping by up
    to 600 characters.
    """
    windows: list[list[MessagePart]] = []
    used, session = 0, None
    for message in messages:
        for part in _split_message(message, limit):
            size = part.end - part.start
            if message.session_id != session or used + size > limit or len(windows[-1]) == MAX_WINDOW_MESSAGES:
                windows.append([])
                used, session = 0, message.session_id
            windows[-1].append(part)
            used += size
    return windows


def _split_message(message: Message, limit: int) -> Iterator[MessagePart]:
    text, start = message.content, 0
    overlap = min(PART_OVERLAP_CHARACTERS, limit // 4)
    while len(text) - start > limit:
        end = start + limit
        space = text.rfind(" ", start + limit // 2, end)
        end = space if space > 0 else end
        yield MessagePart(message.id, start, end)
        start = end - overlap
    yield MessagePart(message.id, start, len(text))


def is_dialogue(message: Message) -> bool:
    """Return whether a person or the assistant says it; system and tool turns are never read."""
    return message.role in _DIALOGUE_ROLES


def speaker_zone(message: Message, user_zone: str | None, default: str) -> tzinfo:
    """Return the speaker's time zone: the user's own, else the offset the message came with, else the default."""
    if user_zone:
        return ZoneInfo(user_zone)
    if message.utc_offset_minutes:
        return timezone(timedelta(minutes=message.utc_offset_minutes))
    return ZoneInfo(default)


def build_transcript(
    parts: Sequence[MessagePart],
    messages: Sequence[Message],
    user_zone: str | None,
    default_zone: str,
    redact: Redactor,
) -> list[TranscriptLine]:
    """Return the lines of a window, numbered from 1, without secrets; parts of messages that are gone are left out."""
    known = {message.id: message for message in messages}
    present = [part for part in parts if part.message_id in known]
    return [
        _build_line(number, known[part.message_id], part, user_zone, default_zone, redact)
        for number, part in enumerate(present, 1)
    ]


def _build_line(
    number: int, message: Message, part: MessagePart, user_zone: str | None, default_zone: str, redact: Redactor
) -> TranscriptLine:
    sent_at = message.timestamp.astimezone(speaker_zone(message, user_zone, default_zone))
    text = redact(message.content[part.start : part.end].strip())
    return TranscriptLine(number, message.id, message.role, message.name, sent_at, text)


def render_transcript(lines: Sequence[TranscriptLine]) -> str:
    """Return numbered lines as `[1] USER Mara, Tue 2025-03-04 19:02: …`."""
    return "\n".join(f"[{line.number}] {_line_header(line)}: {indent_continuations(line.text)}" for line in lines)


def render_earlier_turns(
    messages: Sequence[Message], user_zone: str | None, default_zone: str, redact: Redactor
) -> str:
    """Return earlier turns without numbers, of a long one its first and last 400 characters."""
    told = []
    for message in messages:
        text = redact(message.content)
        if len(text) > 2 * EARLIER_MESSAGE_EDGE_CHARACTERS:
            text = f"{text[:EARLIER_MESSAGE_EDGE_CHARACTERS]} … {text[-EARLIER_MESSAGE_EDGE_CHARACTERS:]}"
        line = _build_line(0, message, MessagePart(message.id, 0, 0), user_zone, default_zone, redact)
        told.append(f"{_line_header(line)}: {indent_continuations(text)}")
    return "\n".join(told) or "(none)"


def _line_header(line: TranscriptLine) -> str:
    who = f"{line.role.value.upper()} {line.speaker}" if line.speaker else line.role.value.upper()
    return f"{indent_continuations(who)}, {WEEKDAY_NAMES[line.sent_at.weekday()]} {line.sent_at:%Y-%m-%d %H:%M}"


WEEKDAY_NAMES = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
"""Weekdays as prompts name them, whatever the machine's language."""
