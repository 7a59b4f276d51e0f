"""Messages to be stored, and conversion to and from their nodes. Pure."""

from __future__ import annotations

import json
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple

from graphmem.conversations.session import MemoryDefaults, Message, MessageIn, MessageRole
from graphmem.neo4j.driver_values import Row, pack_vector
from graphmem.runtime.field_types import Vector, to_json
from graphmem.runtime.times import parse_times
from graphmem.tenants.owners import Owner
from graphmem.tenants.trust import StatedKind
from graphmem.text.folding import FOLDED_TEXT, join_folded_words


@dataclass(frozen=True, slots=True)
class PreparedMessage:
    """A message ready to be stored; `redacted` is its text without secrets, None if it contains none.

    Without a `vector`, it is found only by its words until a job has computed one. `author` is the user who sent it to
    a space, `sent_as` the source of the key that sent it, unless that is the user.
    """

    message: MessageIn
    vector: Vector | None
    redacted: str | None = None
    author: str | None = None
    sent_as: StatedKind | None = None


class PendingJob(NamedTuple):
    """A job that will read messages: its id, and the id of the job store it is queued in."""

    id: str
    store: str


@dataclass(frozen=True, slots=True)
class AppendResult:
    """The result of storing a batch.

    `message_ids` are the ids of the whole batch, `new_ids` those stored now. `job_id` is the job assigned to messages
    that no other job has read or will read; `pending_jobs` will read the others.
    """

    session_id: str
    message_ids: list[str]
    new_ids: list[str]
    job_id: str | None
    pending_jobs: list[str]


@dataclass(frozen=True, slots=True)
class PendingMessages:
    """Messages of one session that a job will read."""

    group_id: str
    job_id: str
    session_id: str
    message_ids: list[str]


@dataclass(frozen=True, slots=True)
class ConversationContext:
    """Messages in session order, the messages before them, oldest first, and the user's time zone.

    `domain` is the messages' domain, or else their session's. `previous_at` is the time of the last message in the
    user's previous conversation.
    """

    messages: list[Message]
    preceding: list[Message]
    timezone: str | None
    domain: str | None = None
    previous_at: datetime | None = None


_NAMESPACE = uuid.UUID("0f6c1c52-6f5d-4c5e-9a55-2f8f6f0c7a41")


class BatchFingerprint:
    """The identity of a batch: the user's life, its session (None for a new one), its sender and its turns.

    The life is random and secret, so that ids reveal nothing about the content.
    """

    def __init__(
        self, life: str, session_id: str | None, messages: Sequence[MessageIn], sent_as: StatedKind | None
    ) -> None:
        turns = [
            {**message.model_dump(mode="json", exclude={"id"}), "content": " ".join(message.content.split())}
            for message in messages
        ]
        self._value = uuid.uuid5(_NAMESPACE, json.dumps([life, session_id, sent_as, turns], sort_keys=True))
        self._size = len(messages)

    def session_id(self, period: int) -> str:
        """Return the id of the session that the batch opens in a period."""
        return str(uuid.uuid5(self._value, f"session {period}"))

    def message_ids(self, place: str) -> list[str]:
        """Return the ids of its messages at a place: a position in its session, or the session it opens."""
        return [str(uuid.uuid5(self._value, f"{place} {index}")) for index in range(self._size)]

    def complete_ids(self, given: Sequence[str | None]) -> list[str]:
        """Return the messages' given ids, with derived ids for messages without one."""
        made = self.message_ids(json.dumps(given))
        return [message_id or made[index] for index, message_id in enumerate(given)]


_MESSAGE_FIELDS = (
    "intent", "domain", "confidence", "sql_executed", "execution_time_ms", "feedback_score", "feedback_text", "sent_as",
)  # fmt: skip
"""Message fields that are stored unchanged and may be absent."""

_MESSAGE_TIME_FIELDS = ("valid_at", "created_at", "extracted_at")
"""A message's times, in the order of the fragment `message_columns`."""

_READ_PROPERTIES = (
    *_MESSAGE_FIELDS, "message_id", "session_id", "group_id", "role", "content", "speaker", "author", "entities",
    "metadata", "feedback_issues", "rich_content", "query_results", "position", "utc_offset_minutes",
    "caught", "memory_defaults",
)  # fmt: skip
"""The message properties that callers see, except times."""

_EMPTY_VALUES: tuple[Any, ...] = (None, "{}", [])
"""Values that count as a missing property."""


def compact_columns(columns: Sequence[Any]) -> tuple[dict[str, Any], Sequence[int | None]]:
    """Return the value of the fragment `message_columns` without unread properties, for keeping many in memory."""
    properties, times = columns
    kept = {name: value for name in _READ_PROPERTIES if (value := properties.get(name)) not in _EMPTY_VALUES}
    return kept, times


def message_from_columns(columns: Sequence[Any]) -> Message:
    """Return a message from the value of the fragment `message_columns`."""
    properties, times = columns
    return message_from_node({**properties, **parse_times(_MESSAGE_TIME_FIELDS, times)})


def message_from_node(stored: Mapping[str, Any]) -> Message:
    """Return a message from the properties of its episode node."""
    owner = Owner.from_group_id(stored["group_id"])
    return Message(
        **{name: stored.get(name) for name in _MESSAGE_FIELDS},
        id=stored["message_id"],
        session_id=stored["session_id"],
        user_id=stored.get("author") or owner.user_id,
        space=owner.space,
        role=MessageRole(stored["role"]),
        content=stored["content"],
        name=stored.get("speaker"),
        timestamp=stored["valid_at"],
        created_at=stored["created_at"],
        entities=json.loads(stored.get("entities") or "{}"),
        feedback_issues=list(stored.get("feedback_issues") or ()),
        metadata=json.loads(stored.get("metadata") or "{}"),
        rich_content=json.loads(stored.get("rich_content") or "null"),
        query_results=json.loads(stored.get("query_results") or "null"),
        position=stored["position"],
        extracted_at=stored.get("extracted_at"),
        utc_offset_minutes=stored.get("utc_offset_minutes") or 0,
        is_caught=bool(stored.get("caught")),
        memory_defaults=_read_defaults(stored.get("memory_defaults")),
    )


def _read_defaults(stored: str | None) -> MemoryDefaults | None:
    return MemoryDefaults.model_validate_json(stored) if stored else None


def message_to_properties(
    owner: Owner,
    session_id: str,
    message_id: str,
    prepared: PreparedMessage,
    position: int,
    domain: str | None,
    now: datetime,
) -> Row:
    """Return the properties of the episode node of a new message."""
    message = prepared.message
    at = message.timestamp or now
    return {
        "uuid": str(uuid.uuid4()),
        "group_id": owner.group_id,
        "group_key": owner.group_key,
        "name": f"{session_id} #{position}",
        "source": "message",
        "source_description": f"{message.role.value} message",
        "message_id": message_id,
        "session_id": session_id,
        "position": position,
        "role": message.role.value,
        "speaker": message.name,
        "author": prepared.author,
        "sent_as": prepared.sent_as,
        "content": message.content,
        FOLDED_TEXT: join_folded_words(message.content, message.name),
        "redacted": prepared.redacted,
        "content_embedding": pack_vector(prepared.vector),
        "entity_edges": [],
        "valid_at": at.astimezone(UTC),
        "utc_offset_minutes": int((at.utcoffset() or timedelta()).total_seconds() // 60),
        "created_at": now,
        "intent": message.intent,
        "domain": domain,
        "entities": to_json(message.entities),
        "metadata": to_json(message.metadata),
        "rich_content": to_json(message.rich_content) if message.rich_content is not None else None,
        "query_results": to_json(message.query_results) if message.query_results is not None else None,
        "memory_defaults": message.memories.model_dump_json(exclude_defaults=True) if message.memories else None,
        "confidence": message.confidence,
        "sql_executed": message.sql_executed,
        "execution_time_ms": message.execution_time_ms,
    }
