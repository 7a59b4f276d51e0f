"""Memories and quoted messages as lines of the preamble. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from datetime import datetime

from graphmem.context.conversation_summary import to_single_line
from graphmem.context.hints import format_date, last_said_at
from graphmem.context.preamble import PreambleLine
from graphmem.conversations.session import Message
from graphmem.memories.memory import Memory

_YEAR = re.compile(r"(?<!\d)(?:19|20)\d\d(?!\d)")


def memory_bullets(memories: Sequence[Memory], said_at: Mapping[str, datetime] | None) -> list[PreambleLine]:
    """Return one `- ` bullet for each memory, with when it held where its text does not say it.

    With `said_at`, the times of messages by id, a bullet also says when and in which session the memory was said.
    """
    return [
        PreambleLine(memory.id, f"- {to_single_line(memory.content)}{_notes(memory, said_at)}") for memory in memories
    ]


def quote_line(message: Message, text: str) -> PreambleLine:
    """Return a part of a message with its day and its speaker."""
    speaker = message.name or f"the {message.role.value}"
    return PreambleLine(message.id, f"{format_date(message.timestamp)}, {to_single_line(speaker)}: {text}")


def _notes(memory: Memory, said_at: Mapping[str, datetime] | None) -> str:
    notes = [note for note in (_validity(memory), _source(memory, said_at) if said_at is not None else "") if note]
    return f" ({', '.join(notes)})" if notes else ""


def _validity(memory: Memory) -> str:
    """Return the days between which a memory holds, empty where its text names a year or nothing is known."""
    if _YEAR.search(memory.content):
        return ""
    start = format_date(memory.valid_at) if memory.valid_at else ""
    end = f"until {format_date(memory.invalid_at)}" if memory.invalid_at else ""
    return f"{start} {end}".strip()


def _source(memory: Memory, said_at: Mapping[str, datetime]) -> str:
    last = last_said_at(memory, said_at)
    when = f"said on {format_date(last)}" if last else f"noted on {format_date(memory.created_at)}"
    return f"{when}, session {memory.source.session_id}" if memory.source.session_id else when
