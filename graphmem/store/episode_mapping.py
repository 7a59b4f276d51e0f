"""Messages and sessions as graph properties, and back."""

from __future__ import annotations

import json
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from graphmem.domain.identity import Owner
from graphmem.domain.session import Message, MessageIn, MessageRole, Session, SessionIn, SessionKind
from graphmem.store.fact_mapping import group_key, parse_times, user_id_of_group

_SESSION_FIELDS = (
    *("session_id", "source_session_id", "title", "summary", "sentiment_score"),
    *("created_at", "updated_at", "ended_at"),
)
_MESSAGE_FIELDS = ("intent", "confidence", "sql_executed", "execution_time_ms", "feedback_score", "feedback_text")


_MESSAGE_TIME_FIELDS = ("valid_at", "created_at", "extracted_at")
"""The times of a message in the order in which queries return them."""


@dataclass(frozen=True, slots=True)
class PreparedMessage:
    """A message ready to be stored; `redacted` is its text without secrets, where it holds any."""

    message: MessageIn
    vector: list[float]
    redacted: str | None = None


def message_from_row(found: Sequence[Any]) -> Message:
    """Return what queries return of a message, `[properties, times]`, as a message."""
    properties, times = found
    return message_from_node({**properties, **parse_times(_MESSAGE_TIME_FIELDS, times)})


def message_from_node(stored: Mapping[str, Any]) -> Message:
    """Return an episode node's properties as a message."""
    return Message(
        **{name: stored.get(name) for name in _MESSAGE_FIELDS},
        id=stored["message_id"],
        session_id=stored["session_id"],
        user_id=user_id_of_group(stored["group_id"]) or "",
        role=MessageRole(stored["role"]),
        content=stored["content"],
        name=stored.get("speaker"),
        timestamp=stored["valid_at"],
        created_at=stored["created_at"],
        entities=json.loads(stored.get("entities") or "{}"),
        metadata=json.loads(stored.get("metadata") or "{}"),
        rich_content=json.loads(stored.get("rich_content") or "null"),
        query_results=json.loads(stored.get("query_results") or "null"),
        position=stored["position"],
        extracted_at=stored.get("extracted_at"),
        utc_offset_minutes=stored.get("utc_offset_minutes") or 0,
    )


def message_to_properties(
    owner: Owner, session_id: str, message_id: str, turn: PreparedMessage, position: int, now: datetime
) -> dict[str, Any]:
    """Return a turn as the properties of a new episode node."""
    message = turn.message
    at = message.timestamp or now
    return {
        "uuid": str(uuid.uuid4()),
        "group_id": owner.group_id,
        "group_key": group_key(owner.group_id),
        "name": f"{session_id} #{position}",
        "source": "message",
        "source_description": f"{message.role.value} message",
        "message_id": message_id,
        "session_id": session_id,
        "position": position,
        "role": message.role.value,
        "speaker": message.name,
        "content": message.content,
        "redacted": turn.redacted,
        "content_embedding": turn.vector,
        "entity_edges": [],
        "valid_at": at.astimezone(UTC),
        "utc_offset_minutes": int((at.utcoffset() or timedelta()).total_seconds() // 60),
        "created_at": now,
        "intent": message.intent,
        "entities": _json(message.entities),
        "metadata": _json(message.metadata),
        "rich_content": _json(message.rich_content) if message.rich_content is not None else None,
        "query_results": _json(message.query_results) if message.query_results is not None else None,
        "confidence": message.confidence,
        "sql_executed": message.sql_executed,
        "execution_time_ms": message.execution_time_ms,
    }


def session_from_node(stored: Mapping[str, Any]) -> Session:
    """Return a session node's properties as a session."""
    return Session(
        **{name: stored.get(name) for name in _SESSION_FIELDS},
        id=stored["uuid"],
        user_id=user_id_of_group(stored["group_id"]) or "",
        kind=SessionKind(stored["kind"]),
        summarized_through=stored["summarized_through"],
        intent_sequence=list(stored["intent_sequence"]),
        topic_tags=list(stored["topic_tags"]),
        message_count=stored["message_count"],
        is_active=stored["is_active"],
        metadata=json.loads(stored["metadata"]),
    )


def new_session_properties(
    session_in: SessionIn | None = None,
    kind: SessionKind = SessionKind.CONVERSATION,
    source_session_id: str | None = None,
) -> dict[str, Any]:
    """Return what a new session node begins with, beside its id and its times."""
    session = session_in or SessionIn()
    return {
        "uuid": str(uuid.uuid4()),
        "kind": kind.value,
        "title": session.title,
        "source_session_id": source_session_id,
        "message_count": 0,
        "summarized_through": 0,
        "intent_sequence": [],
        "topic_tags": session.topic_tags,
        "metadata": _json(session.metadata),
        "is_active": True,
    }


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
