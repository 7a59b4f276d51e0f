"""Messages as properties of episode nodes, and back. Pure."""

from __future__ import annotations

import json
import uuid
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from graphmem.conversations.session import MemoryDefaults, Message, MessageRole, PreparedMessage
from graphmem.runtime.field_types import to_json
from graphmem.runtime.times import parse_times
from graphmem.tenants.owners import Owner
from graphmem.text.folding import FOLDED_TEXT, join_folded_words

_MESSAGE_FIELDS = (
    "intent", "domain", "confidence", "sql_executed", "execution_time_ms", "feedback_score", "feedback_text", "sent_as",
)  # fmt: skip
"""Fields of a message that are stored as they are, and that may be absent."""

_MESSAGE_TIME_FIELDS = ("valid_at", "created_at", "extracted_at")
"""The times of a message in the order of the fragment `message_columns`."""

_READ_PROPERTIES = (
    *_MESSAGE_FIELDS, "message_id", "session_id", "group_id", "role", "content", "speaker", "author", "entities",
    "metadata", "feedback_issues", "rich_content", "query_results", "position", "utc_offset_minutes",
    "caught", "memory_defaults",
)  # fmt: skip
"""The properties of a message that callers see, without its times."""

_EMPTY_VALUES: tuple[Any, ...] = (None, "{}", [])
"""Values that are read as the absence of a property is."""


def compact_columns(columns: Sequence[Any]) -> tuple[dict[str, Any], Sequence[int | None]]:
    """Return the value of the fragment `message_columns` without what is not read, for holding many of them."""
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
) -> dict[str, Any]:
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
        "content_embedding": prepared.vector,
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
