"""The part of a conversation that one model call reads, and the data derived from its messages. Pure."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone, tzinfo
from typing import Annotated, Any
from zoneinfo import ZoneInfo

from pydantic import BaseModel, BeforeValidator, Field, PlainSerializer

from graphmem.conversations.session import MemoryDefaults, Message, MessageRole
from graphmem.ingestion.answers import NamedValue, Turn, Wish
from graphmem.models.language_model import indent_continuations
from graphmem.runtime.field_types import JSON
from graphmem.secrets.scanner import Redactor
from graphmem.tenants.trust import StatedKind

MAX_BATCH_CHARACTERS = 24_000
"""Maximum characters per batch, so that prompt and answer fit the context of a small model."""

MAX_BATCH_MESSAGES = 60
"""Maximum messages per batch."""

PART_OVERLAP_CHARACTERS = 600
"""Maximum overlap of two parts of one long message, in characters."""

EARLIER_MESSAGES = 6
"""Number of messages before a batch that its prompt shows."""

EARLIER_MESSAGE_EDGE_CHARACTERS = 400
"""Characters shown from the beginning and from the end of an earlier message."""

MAX_TOOL_RESULT_CHARACTERS = 4_000
"""Maximum characters read of a tool result, which may be much longer than the dialogue."""

WEEKDAY_NAMES = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
"""Weekday names in prompts, independent of the machine's language."""

CALENDAR_WEEKS_BEFORE, CALENDAR_WEEKS_AFTER, MAX_CALENDAR_WEEKS = 2, 9, 16
"""Weeks in a prompt's calendar: before the first line, after the last, and in total at most."""

_DIALOGUE_ROLES = (MessageRole.USER, MessageRole.ASSISTANT)


def _dump_local_time(moment: datetime) -> dict[str, Any]:
    offset = moment.utcoffset() or timedelta()
    return {"at": moment.isoformat(), "zone": getattr(moment.tzinfo, "key", None) or int(offset.total_seconds())}


def _load_local_time(value: Any) -> Any:
    if not isinstance(value, dict):
        return value
    zone = value["zone"]
    tz = ZoneInfo(zone) if isinstance(zone, str) else timezone(timedelta(seconds=zone))
    return datetime.fromisoformat(value["at"]).astimezone(tz)


LocalTime = Annotated[datetime, BeforeValidator(_load_local_time), PlainSerializer(_dump_local_time)]
"""A time stored with the name of its zone, not just its offset, so that other local dates can be read with it."""


@dataclass(frozen=True, slots=True)
class MessagePart:
    """A message, or the characters `[start, end)` of one that is longer than a batch."""

    message_id: str
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class TranscriptLine:
    """One numbered line of a prompt: a part of a message, at the speaker's local time.

    In a space, `author` is the user who sent it. `origin` is the source of the text; `sent_as` is the source that the
    sending key is bound to, if any.
    """

    number: int
    message_id: str
    role: MessageRole
    speaker: str | None
    sent_at: LocalTime
    text: str
    author: str | None = None
    origin: StatedKind = "user"
    sent_as: StatedKind | None = None
    defaults: MemoryDefaults | None = None
    """Defaults for memories extracted from the line."""

    @property
    def stated_by(self) -> tuple[StatedKind, ...]:
        """The sources of its text and of the key; the less trusted one counts."""
        return self.origin, self.sent_as or "user"


def split_into_batches(messages: Sequence[Message], limit: int = MAX_BATCH_CHARACTERS) -> list[list[MessagePart]]:
    """Return the batches of a conversation, each of one session and domain, up to `limit` characters and 60 messages.

    A message longer than a batch is cut at a space; its parts overlap by up to 600 characters. Only the end of a long
    tool result is dropped.
    """
    batches: list[list[MessagePart]] = []
    used, place = 0, None
    for message in messages:
        for part in _split_message(message, limit):
            size = part.end - part.start
            message_place = (message.session_id, message.domain)
            if message_place != place or used + size > limit or len(batches[-1]) == MAX_BATCH_MESSAGES:
                batches.append([])
                used, place = 0, message_place
            batches[-1].append(part)
            used += size
    return batches


def _split_message(message: Message, limit: int) -> Iterator[MessagePart]:
    text, start = message.content, 0
    if message.role is MessageRole.TOOL:
        text = text[:MAX_TOOL_RESULT_CHARACTERS]
    overlap = min(PART_OVERLAP_CHARACTERS, limit // 4)
    while len(text) - start > limit:
        end = start + limit
        space = text.rfind(" ", start + limit // 2, end)
        end = space if space > 0 else end
        yield MessagePart(message.id, start, end)
        start = end - overlap
    yield MessagePart(message.id, start, len(text))


def message_ids_of(parts: Sequence[MessagePart]) -> list[str]:
    """Return the ids of the messages of a batch, in order."""
    return list(dict.fromkeys(part.message_id for part in parts))


def part_length(parts: Sequence[MessagePart]) -> int:
    """Return the number of characters in the parts of a batch."""
    return sum(part.end - part.start for part in parts)


def is_dialogue(message: Message) -> bool:
    """Return whether the user or the assistant sent a message."""
    return message.role in _DIALOGUE_ROLES


def select_readable(messages: Sequence[Message]) -> list[Message]:
    """Return the messages to extract from: those of a dialogue, and the tool results in it.

    Tool results without a dialogue and system messages are left out.
    """
    if not any(map(is_dialogue, messages)):
        return []
    return [message for message in messages if message.role is not MessageRole.SYSTEM]


def speaker_zone(message: Message, user_zone: str | None, default: str) -> tzinfo:
    """Return the speaker's time zone: the user's own, else the offset of the message, else the default."""
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
    """Return the lines of a batch, numbered from 1, without secrets; parts of erased messages are left out."""
    by_id = {message.id: message for message in messages}
    present = [part for part in parts if part.message_id in by_id]
    return [
        _build_line(number, by_id[part.message_id], part, user_zone, default_zone, redact)
        for number, part in enumerate(present, 1)
    ]


def _build_line(
    number: int, message: Message, part: MessagePart, user_zone: str | None, default_zone: str, redact: Redactor
) -> TranscriptLine:
    sent_at = message.timestamp.astimezone(speaker_zone(message, user_zone, default_zone))
    text = redact(message.content[part.start : part.end].strip())
    speaker = message.name if message.name and redact(message.name) == message.name else None
    author = message.user_id if message.space is not None else None
    sender = (author, message.origin, message.sent_as, message.memory_defaults)
    return TranscriptLine(number, message.id, message.role, speaker, sent_at, text, *sender)


def render_transcript(lines: Sequence[TranscriptLine]) -> str:
    """Return numbered lines as `[1] USER Mara, Tue 2025-03-04 19:02: …`."""
    return "\n".join(f"[{line.number}] {_line_header(line)}: {indent_continuations(line.text)}" for line in lines)


def render_earlier_messages(
    messages: Sequence[Message], user_zone: str | None, default_zone: str, redact: Redactor
) -> str:
    """Return earlier messages without numbers; of a long message, the first and last 400 characters."""
    rendered = []
    for message in messages:
        text = redact(message.content)
        if len(text) > 2 * EARLIER_MESSAGE_EDGE_CHARACTERS:
            text = f"{text[:EARLIER_MESSAGE_EDGE_CHARACTERS]} … {text[-EARLIER_MESSAGE_EDGE_CHARACTERS:]}"
        line = _build_line(0, message, MessagePart(message.id, 0, 0), user_zone, default_zone, redact)
        rendered.append(f"{_line_header(line)}: {indent_continuations(text)}")
    return "\n".join(rendered)


def render_calendar(lines: Sequence[TranscriptLine]) -> str:
    """Return the day and the zone of the last line, and the ISO weeks around the lines with their first days."""
    last = max(line.sent_at for line in lines)
    first_day = min(line.sent_at for line in lines).date()
    start = first_day - timedelta(weeks=CALENDAR_WEEKS_BEFORE, days=first_day.weekday())
    end = last.date() + timedelta(weeks=CALENDAR_WEEKS_AFTER)
    count = min((end - start).days // 7 + 1, MAX_CALENDAR_WEEKS)
    mondays = [end - timedelta(weeks=number, days=end.weekday()) for number in reversed(range(count))]
    weeks = ", ".join(f"W{monday.isocalendar().week:02} {monday}" for monday in mondays)
    week = last.isocalendar()
    day = f"{WEEKDAY_NAMES[last.weekday()]} {last:%Y-%m-%d} (ISO week {week.year}-W{week.week:02})"
    return f"{day}, time zone {getattr(last.tzinfo, 'key', None) or f'{last:%z}'}. Weeks and their Mondays: {weeks}"


def render_previous_conversation(previous_at: datetime | None, lines: Sequence[TranscriptLine]) -> str:
    """Return a sentence naming the day of the previous conversation, in the zone of the lines."""
    if previous_at is None or not lines:
        return "No conversation before this one is known."
    day = previous_at.astimezone(lines[0].sent_at.tzinfo)
    return f"The conversation before this one was on {WEEKDAY_NAMES[day.weekday()]} {day:%Y-%m-%d}."


def _line_header(line: TranscriptLine) -> str:
    speaker = f"{line.role.value.upper()} {line.speaker}" if line.speaker else line.role.value.upper()
    return f"{indent_continuations(speaker)}, {WEEKDAY_NAMES[line.sent_at.weekday()]} {line.sent_at:%Y-%m-%d %H:%M}"


MAX_WORD_CHARACTERS = 60
"""Maximum characters of an intent or an entity type; a longer one is dropped."""

MAX_VALUE_CHARACTERS = 200
"""Maximum characters of an entity value; a longer one is dropped."""

MAX_ENTITIES_PER_MESSAGE = 20
"""Maximum entities used per message."""

_SEPARATORS = re.compile(r"[\W_]+")
_REMOVED_SECRET = re.compile(r"\[[a-z_]+\]")


class DerivedTurn(BaseModel):
    """The content of a message: its intent, the values it names by type, and lasting wishes about replies."""

    message_id: str
    intent: str | None = None
    entities: dict[str, list[str]] = Field(default_factory=dict)
    wishes: list[Wish] = Field(default_factory=list)


def derive_turns(
    turns: Iterable[Turn], lines: Sequence[TranscriptLine], holds_secret: Callable[[JSON], bool]
) -> list[DerivedTurn]:
    """Return the turns that an answer derives from the user's messages, in their order, without secrets.

    The lines of one long message are one turn, with the intent of the first. Text that somebody else wrote, such as a
    document, yields no wishes.
    """
    answered = {turn.message: turn for turn in reversed(list(turns))}
    derived: dict[str, DerivedTurn] = {}
    for line in lines:
        turn = answered.get(line.number)
        if turn is None or line.role is not MessageRole.USER or line.origin != "user":
            continue
        known = derived.setdefault(line.message_id, DerivedTurn(message_id=line.message_id))
        intent = _read_word(turn.intent or "")
        if known.intent is None and intent and not holds_secret(intent):
            known.intent = intent
        _add_entities(known.entities, turn.entities, holds_secret)
        known.wishes += [wish for wish in turn.wishes if not holds_secret(wish.value)]
    return [turn for turn in derived.values() if turn.intent or turn.entities or turn.wishes]


def _add_entities(
    entities: dict[str, list[str]], named: Iterable[NamedValue], holds_secret: Callable[[JSON], bool]
) -> None:
    count = sum(map(len, entities.values()))
    for entity in named:
        kind, value = _read_word(entity.type), " ".join(entity.value.split())
        is_usable = kind and value and len(value) <= MAX_VALUE_CHARACTERS and not _REMOVED_SECRET.search(value)
        if count == MAX_ENTITIES_PER_MESSAGE or not is_usable or value in entities.get(kind, ()):
            continue
        if not holds_secret({kind: value}):
            entities.setdefault(kind, []).append(value)
            count += 1


def _read_word(text: str) -> str:
    """Return a word from the model in lower_snake_case; empty if it is not a word."""
    word = _SEPARATORS.sub("_", text.casefold()).strip("_")
    return word if len(word) <= MAX_WORD_CHARACTERS else ""
