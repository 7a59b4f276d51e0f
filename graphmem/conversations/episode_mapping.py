"""Messages and sessions as node properties and back."""

from __future__ import annotations

import json
import uuid
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from graphmem.conversations.conversation import PreparedMessage
from graphmem.conversations.session import (
    Message,
    MessageRole,
    RunMessage,
    Session,
    SessionIn,
    SessionKind,
)
from graphmem.neo4j.json_text import to_json
from graphmem.runtime.times import parse_times
from graphmem.tenants.owners import Owner

_SESSION_FIELDS = (
    "session_id", "source_session_id", "title", "summary", "sentiment_score", "created_at", "updated_at", "ended_at",
    "domain", "job_id",
)  # fmt: skip
"""Fields of a session that are stored as they are, and that may be absent."""

_MESSAGE_FIELDS = (
    "intent", "domain", "confidence", "sql_executed", "execution_time_ms", "feedback_score", "feedback_text",
)  # fmt: skip
"""Fields of a message that are stored as they are, and that may be absent."""

_MESSAGE_TIME_FIELDS = ("valid_at", "created_at", "extracted_at")
"""The times of a message in the order of the fragment `message_columns`."""


def message_from_row(columns: Sequence[Any]) -> Message:
    """Return a message from the value of the fragment `message_columns`."""
    properties, times = columns
    return message_from_node({**properties, **parse_times(_MESSAGE_TIME_FIELDS, times)})


def message_from_node(stored: Mapping[str, Any]) -> Message:
    """Return a message from the properties of its episode node."""
    return Message(
        **{name: stored.get(name) for name in _MESSAGE_FIELDS},
        id=stored["message_id"],
        session_id=stored["session_id"],
        user_id=Owner.from_group_id(stored["group_id"]).user_id,
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
    )


def run_messages_from_session(stored: Mapping[str, Any]) -> list[Message]:
    """Return the messages of an extraction session from the properties of its node."""
    session = session_from_node(stored)
    empty = {name: None for name, field in Message.model_fields.items() if field.is_required()}
    turns = [RunMessage.model_validate_json(text) for text in stored.get("transcript") or ()]
    return [
        Message.model_validate(
            {
                **empty,
                "id": f"{session.session_id} {position}",
                "session_id": session.session_id,
                "user_id": session.user_id,
                "role": turn.role,
                "content": turn.content,
                "timestamp": session.updated_at,
                "created_at": session.updated_at,
                "entities": {},
                "metadata": {"tool_calls": turn.tool_calls} if turn.tool_calls else {},
                "position": position,
                "utc_offset_minutes": 0,
            }
        )
        for position, turn in enumerate(turns, 1)
    ]


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
        "content": message.content,
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
        "confidence": message.confidence,
        "sql_executed": message.sql_executed,
        "execution_time_ms": message.execution_time_ms,
    }


def session_from_node(stored: Mapping[str, Any]) -> Session:
    """Return a session from the properties of its node."""
    return Session(
        **{name: stored.get(name) for name in _SESSION_FIELDS},
        id=stored["uuid"],
        user_id=Owner.from_group_id(stored["group_id"]).user_id,
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
    job_id: str | None = None,
) -> dict[str, Any]:
    """Return the properties of a new session node but its session id and its times."""
    session = session_in or SessionIn()
    return {
        "uuid": str(uuid.uuid4()),
        "kind": kind.value,
        "title": session.title,
        "source_session_id": source_session_id,
        "job_id": job_id,
        "message_count": 0,
        "summarized_through": 0,
        "intent_sequence": [],
        "topic_tags": session.topic_tags,
        "domain": session.domain,
        "metadata": to_json(session.metadata),
        "is_active": True,
    }
