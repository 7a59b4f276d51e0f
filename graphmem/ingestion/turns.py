"""Intents and entities of messages, as the first model call derives them where the sender names none. Pure."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence

from pydantic import BaseModel, Field

from graphmem.conversations.session import MessageRole
from graphmem.ingestion.llm_schemas import NamedValue, Turn
from graphmem.ingestion.transcript import TranscriptLine
from graphmem.runtime.json_values import JSON

MAX_WORD_CHARACTERS = 60
"""Characters of an intent or a type of entity; a longer one is dropped."""

MAX_VALUE_CHARACTERS = 200
"""Characters of the value of an entity; a longer one is dropped."""

MAX_ENTITIES_PER_MESSAGE = 20
"""Entities of one message that are used."""

_SEPARATORS = re.compile(r"[\W_]+")
_REMOVED_SECRET = re.compile(r"\[[a-z_]+\]")


class DerivedTurn(BaseModel):
    """What a message is about: the intent, and the values that it names by type."""

    message_id: str
    intent: str | None = None
    entities: dict[str, list[str]] = Field(default_factory=dict)


def derive_turns(
    turns: Iterable[Turn], lines: Sequence[TranscriptLine], holds_secret: Callable[[JSON], bool]
) -> list[DerivedTurn]:
    """Return what an answer says of the user's messages, in their order, without secrets.

    Several lines of one long message are one turn, with the intent of the first.
    """
    answered = {turn.message: turn for turn in reversed(list(turns))}
    derived: dict[str, DerivedTurn] = {}
    for line in lines:
        turn = answered.get(line.number)
        if turn is None or line.role is not MessageRole.USER:
            continue
        known = derived.setdefault(line.message_id, DerivedTurn(message_id=line.message_id))
        intent = _read_word(turn.intent or "")
        if known.intent is None and intent and not holds_secret(intent):
            known.intent = intent
        _add_entities(known.entities, turn.entities, holds_secret)
    return [turn for turn in derived.values() if turn.intent or turn.entities]


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
    """Return a word of the model's in lower_snake_case; empty when it is none."""
    word = _SEPARATORS.sub("_", text.casefold()).strip("_")
    return word if len(word) <= MAX_WORD_CHARACTERS else ""
