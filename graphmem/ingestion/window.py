"""What one model call reads: a conversation cut at its turns, and turns as numbered lines. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone, tzinfo
from zoneinfo import ZoneInfo

from graphmem.domain.session import Message, Role
from graphmem.ingestion.redaction import Hide
from graphmem.llm.prompts import within_line

WINDOW_CHARACTERS = 24_000
WINDOW_MESSAGES = 60
PIECE_OVERLAP = 600
CONTEXT_MESSAGES = 6
CONTEXT_CHARACTERS = 400

_SPOKEN = (Role.USER, Role.ASSISTANT)


@dataclass(frozen=True, slots=True)
class Piece:
    """A message, or the part `[start, end)` of one that is longer than a window."""

    message_id: str
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Line:
    """One numbered line of a prompt: a piece of a message as its speaker said it, at their local time."""

    number: int
    message_id: str
    role: Role
    speaker: str | None
    told_at: datetime
    text: str


def cut(messages: Sequence[Message], limit: int = WINDOW_CHARACTERS) -> list[list[Piece]]:
    """Return the windows of a conversation, each of one session, up to `limit` characters and 60 turns.

    Nothing is left out. Turns are kept whole; one longer than a window is cut at a space, its pieces overlapping by up
    to 600 characters.
    """
    windows: list[list[Piece]] = []
    used, session = 0, None
    for message in messages:
        for piece in _pieces(message, limit):
            size = piece.end - piece.start
            if message.session_id != session or used + size > limit or len(windows[-1]) == WINDOW_MESSAGES:
                windows.append([])
                used, session = 0, message.session_id
            windows[-1].append(piece)
            used += size
    return windows


def _pieces(message: Message, limit: int) -> Iterator[Piece]:
    text, start = message.content, 0
    overlap = min(PIECE_OVERLAP, limit // 4)
    while len(text) - start > limit:
        end = start + limit
        space = text.rfind(" ", start + limit // 2, end)
        end = space if space > 0 else end
        yield Piece(message.id, start, end)
        start = end - overlap
    yield Piece(message.id, start, len(text))


def is_spoken(message: Message) -> bool:
    """Return whether a person or the assistant says it; system and tool turns are never read."""
    return message.role in _SPOKEN


def zone_of(message: Message, user_zone: str | None, default: str) -> tzinfo:
    """Return the speaker's time zone: the user's own, else the offset the message came with, else the default."""
    if user_zone:
        return ZoneInfo(user_zone)
    if message.utc_offset_minutes:
        return timezone(timedelta(minutes=message.utc_offset_minutes))
    return ZoneInfo(default)


def lines_of(
    pieces: Sequence[Piece], messages: Sequence[Message], user_zone: str | None, default_zone: str, hide: Hide
) -> list[Line]:
    """Return the lines of a window, numbered from 1, without secrets; pieces of messages that are gone are left out."""
    known = {message.id: message for message in messages}
    present = [piece for piece in pieces if piece.message_id in known]
    return [
        _line(number, known[piece.message_id], piece, user_zone, default_zone, hide)
        for number, piece in enumerate(present, 1)
    ]


def _line(number: int, message: Message, piece: Piece, user_zone: str | None, default_zone: str, hide: Hide) -> Line:
    told_at = message.timestamp.astimezone(zone_of(message, user_zone, default_zone))
    text = hide(message.content[piece.start : piece.end].strip())
    return Line(number, message.id, message.role, message.name, told_at, text)


def render(lines: Sequence[Line]) -> str:
    """Return numbered lines as `[1] USER Mara, Tue 2025-03-04 19:02: …`."""
    return "\n".join(f"[{line.number}] {_head(line)}: {within_line(line.text)}" for line in lines)


def render_context(messages: Sequence[Message], user_zone: str | None, default_zone: str, hide: Hide) -> str:
    """Return earlier turns without numbers, of a long one its first and last 400 characters."""
    told = []
    for message in messages:
        text = hide(message.content)
        if len(text) > 2 * CONTEXT_CHARACTERS:
            text = f"{text[:CONTEXT_CHARACTERS]} … {text[-CONTEXT_CHARACTERS:]}"
        line = _line(0, message, Piece(message.id, 0, 0), user_zone, default_zone, hide)
        told.append(f"{_head(line)}: {within_line(text)}")
    return "\n".join(told) or "(none)"


def _head(line: Line) -> str:
    who = f"{line.role.value.upper()} {line.speaker}" if line.speaker else line.role.value.upper()
    return f"{within_line(who)}, {DAYS[line.told_at.weekday()]} {line.told_at:%Y-%m-%d %H:%M}"


DAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
"""Weekdays as prompts name them, whatever the machine's language."""
