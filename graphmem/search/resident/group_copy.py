"""Everything that searches read of one group, in memory: facts, entities and messages as of a revision. Pure."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence, Set
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphmem.conversations.session import Message
from graphmem.conversations.stored import compact_columns, message_from_columns
from graphmem.memories.entity import EntityRef, NamedEntity
from graphmem.memories.filters import FactFilters
from graphmem.models.embedding_models import EmbeddingModel
from graphmem.runtime.times import from_micros, to_micros
from graphmem.search.bm25 import POSTING_BYTES, TextIndex
from graphmem.search.candidates import Mask, Rows, best_rows, unit_vector
from graphmem.search.evidence import MessageText, MessageTexts
from graphmem.search.resident.fact_table import FACT_BYTES, Column, FactTable, cosines
from graphmem.tenants.owners import message_key
from graphmem.tenants.spaces import GroupState
from graphmem.text.folding import join_folded_words

MESSAGE_BYTES = 1_150
"""Memory of a message in bytes without its vector, text and postings, measured over conversations."""

MAX_CONTENT = 2_000
"""Maximum characters of a message that evidence reads."""


@dataclass(slots=True)
class ResidentMessage:
    """A message in memory: its data for evidence, and its full form as queries return it."""

    text: MessageText
    columns: Sequence[Any]
    message: Message | None = None

    @property
    def texts(self) -> tuple[str, str, str]:
        """The texts for full-text search: its text, its speaker, and the folded words of both."""
        stored = self.columns[0]
        text, speaker = stored["content"], stored.get("speaker") or ""
        return text, speaker, join_folded_words(text, speaker) or ""

    @property
    def is_caught(self) -> bool:
        """Whether extraction caught a statement in it, so that it is no evidence."""
        return bool(self.columns[0].get("caught"))

    def to_message(self) -> Message:
        """Return the message for callers, which is created once."""
        if self.message is None:
            self.message = message_from_columns(self.columns)
        return self.message


class MessageTable:
    """Messages by row, found by key (`tenants.owners.message_key`)."""

    def __init__(self, dimension: int) -> None:
        self._dimension = dimension
        self._messages: list[ResidentMessage] = []
        self._rows: dict[str, int] = {}
        self._texts = TextIndex(fields=3)
        self._text_bytes = 0
        self._vectors = Column(np.float32, dimension)
        self._has_vector = Column(np.bool_)
        self._said_at, self._known_from = Column(np.int64), Column(np.int64)

    def __len__(self) -> int:
        return len(self._messages)

    @property
    def nbytes(self) -> int:
        """An estimate of the memory used by the table."""
        postings = self._texts.postings * POSTING_BYTES
        return self._vectors.nbytes + len(self._messages) * MESSAGE_BYTES + self._text_bytes + postings

    def reserve(self, rows: int) -> None:
        """Make room for the vectors of this number of rows."""
        self._vectors.reserve(rows)

    def put(self, columns: Sequence[Any]) -> None:
        """Add or replace a message, from the value of the fragment `resident_message`."""
        read, vector = columns
        stored, times = compact_columns(read)
        key = message_key(stored["group_id"], stored["message_id"])
        text, speaker = stored["content"], stored.get("speaker")
        read_text = MessageText(
            key, text[:MAX_CONTENT], speaker, stored["role"], stored["session_id"], stored["position"]
        )
        message = ResidentMessage(read_text, (stored, times))
        row = self._rows.get(key)
        if row is None:
            row = self._rows[key] = len(self._messages)
            self._messages.append(message)
            self._texts.append(*message.texts)
            for column in (self._vectors, self._has_vector, self._said_at, self._known_from):
                column.append(0)
        else:
            before = self._messages[row]
            self._texts.replace(row, before.texts, message.texts)
            self._text_bytes -= len(before.texts[0].encode())
        self._messages[row] = message
        self._text_bytes += len(text.encode())
        self._has_vector.set(row, vector is not None)
        self._vectors.set(row, unit_vector(vector, self._dimension))
        said_at, known_from, _ = times
        self._said_at.set(row, said_at)
        self._known_from.set(row, known_from)

    def get(self, key: str) -> Message | None:
        """Return a message for callers."""
        row = self._rows.get(key)
        return None if row is None else self._messages[row].to_message()

    def time_said(self, key: str) -> datetime | None:
        """Return when a message was said."""
        row = self._rows.get(key)
        return None if row is None else from_micros(int(self._said_at.values[row]))

    def mask(self, filters: FactFilters) -> Mask:
        """Return which rows were said and known by the times of the filters."""
        said_until, known_at = (to_micros(filters.message_params[name]) for name in ("said_until", "known_at"))
        mask: Mask = (self._said_at.values <= said_until) & (self._known_from.values <= known_at)
        return mask

    def find_by_vector(self, vector: NDArray[np.float32], mask: Mask, limit: int) -> list[tuple[float, str]]:
        """Return cosines and keys of the nearest messages among the rows of the mask, best first."""
        similarities = cosines(self._vectors.values, vector)
        rows = np.flatnonzero(mask & self._has_vector.values)
        return self._with_scores(best_rows(rows, similarities[rows], limit), similarities)

    def find_by_words(self, words: Sequence[str], mask: Mask, limit: int) -> list[tuple[float, str]]:
        """Return scores and keys of the messages with any of the words among the rows of the mask."""
        scores = self._texts.scores(words)
        rows = np.flatnonzero((scores > 0) & mask)
        return self._with_scores(best_rows(rows, scores[rows], limit), scores)

    def _with_scores(self, rows: Rows, scores: NDArray[Any]) -> list[tuple[float, str]]:
        keys = (self._messages[row].text.message_id for row in rows.tolist())
        return [*zip(scores[rows].tolist(), keys, strict=True)]

    def texts(self, keys: Sequence[str], vector: NDArray[np.float32] | None, mask: Mask) -> MessageTexts:
        """Return messages by key, without those that are unknown, outside the mask, or have a caught statement.

        Their similarities are the cosines with a vector of length 1.
        """
        known = (self._rows.get(key) for key in keys)
        rows = [row for row in known if row is not None and mask[row] and not self._messages[row].is_caught]
        similarities = (
            np.zeros(len(rows)) if vector is None else cosines(self._vectors.values[rows], vector).astype(np.float64)
        )
        return MessageTexts([self._messages[row].text for row in rows], similarities)


ENTITY_BYTES = 800
"""Memory of an entity in bytes."""


class GroupCopy:
    """A group as of one revision of one of its lives, with vectors of one model."""

    def __init__(self, state: GroupState, model: EmbeddingModel) -> None:
        self.group_id = state.group_id
        self.life = state.life
        self.revision = state.applied_revision
        self.model = model
        self.facts = FactTable(model.dimension)
        self.messages = MessageTable(model.dimension)
        self._entities: dict[str, NamedEntity] = {}
        self._refs: dict[str, EntityRef] = {}
        self._user_ids: set[str] = set()

    @property
    def nbytes(self) -> int:
        """An estimate of the memory used by the copy."""
        return self.facts.nbytes + self.messages.nbytes + len(self._entities) * ENTITY_BYTES

    def reserve(self, facts: int, entities: int, messages: int) -> int:
        """Make room for this many elements, and return an estimate of the copy's memory including them.

        The estimate does not include the texts.
        """
        self.facts.reserve(facts)
        self.messages.reserve(messages)
        return self.nbytes + facts * FACT_BYTES + messages * MESSAGE_BYTES + entities * ENTITY_BYTES

    @property
    def refs(self) -> Mapping[str, EntityRef]:
        """References to the entities, by id."""
        return self._refs

    @property
    def user_ids(self) -> Set[str]:
        """The ids of the entities that stand for a user."""
        return self._user_ids

    @property
    def named_entities(self) -> Collection[NamedEntity]:
        """The entities with their names."""
        return self._entities.values()

    def put_entity(self, columns: Sequence[Any]) -> None:
        """Add or replace an entity, from the value of the fragment `named_entity`."""
        entity = NamedEntity(*columns)
        self._entities[entity.id] = entity
        self._refs[entity.id] = EntityRef(id=entity.id, name=entity.name, type=entity.type)
        if entity.is_user:
            self._user_ids.add(entity.id)
        else:
            self._user_ids.discard(entity.id)
