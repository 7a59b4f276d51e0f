"""Context as values and as graph properties: what stands, what was mentioned, what is learned."""

from __future__ import annotations

import hashlib
import json
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any

from graphmem.domain.context_models import (
    BehaviorPattern,
    ContextItem,
    LearnedPreference,
    PatternType,
    PreferenceType,
)
from graphmem.domain.identity import Owner
from graphmem.domain.memory import Memory
from graphmem.domain.session import Message, Session
from graphmem.store.driver import Row
from graphmem.store.entity_mapping import entity_ref_from_node
from graphmem.store.episode_mapping import message_from_node, message_from_row, session_from_node
from graphmem.store.fact_mapping import fact_from_row, memory_from_fact
from graphmem.store.json_text import to_json

_SNAPSHOT_TIME_FIELDS = (
    "created_at", "first_created_at", "updated_at", "last_accessed_at", "valid_at", "invalid_at", "expires_at",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class SessionStatistics:
    """What is counted over all stored messages of a session."""

    stored: int = 0
    first_at: datetime | None = None
    last_at: datetime | None = None
    intents: tuple[str, ...] = ()
    avg_confidence: float | None = None
    avg_feedback: float | None = None


@dataclass(frozen=True, slots=True)
class PastSession:
    """An earlier session as hints need it."""

    session_id: str
    title: str | None
    summary: str | None
    topic_tags: tuple[str, ...]
    intents: tuple[str, ...]
    updated_at: datetime


@dataclass(frozen=True, slots=True)
class ContextSnapshot:
    """All of a context that does not depend on the question; `profile` holds at some moment before `valid_until`."""

    version: str
    valid_until: datetime
    profile: Sequence[Memory] = ()
    session: Session | None = None
    statistics: SessionStatistics = SessionStatistics()
    messages: Sequence[Message] = ()
    items: Sequence[ContextItem] = ()
    preferences: Sequence[LearnedPreference] = ()
    patterns: Sequence[BehaviorPattern] = ()
    sessions: Sequence[PastSession] = ()
    user_entity_name: str | None = None
    speaker: str | None = None


@dataclass(frozen=True, slots=True)
class Mention:
    """Something a message mentions, to be kept for a while."""

    message_id: str
    session_id: str
    type: str
    key: str
    value: Any
    relevance: float
    expires_at: datetime


@dataclass(frozen=True, slots=True)
class UserTurn:
    """One message of the user; `local` is its time on the user's own clock, `plans` are the plans that rest on it."""

    message_id: str
    at: datetime
    local: datetime
    intent: str | None = None
    entities: Mapping[str, Sequence[Any]] = field(default_factory=dict)
    plans: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class DetectedPattern:
    """A pattern as counted now; `key` tells it from others of its type, `evidence` are its messages, oldest first."""

    type: PatternType
    key: str
    description: str
    data: Mapping[str, Any]
    confidence: float
    evidence: Sequence[str]


@dataclass(frozen=True, slots=True)
class RatedInteraction:
    """A rated message with its question and reply, what was learned so far, and the verdict learned from before."""

    message: Message
    question: Message | None
    reply: Message | None
    intent_confidence: float | None
    preferences: Sequence[LearnedPreference]
    learned_from: str | None


@dataclass(frozen=True, slots=True)
class FeedbackUpdate:
    """What a verdict changes; `intent_confidence` and `positive` are None where the intent stays as it is."""

    confidence: float
    intent: str | None = None
    intent_confidence: float | None = None
    positive: bool | None = None
    sql: str | None = None
    preferences: Sequence[LearnedPreference] = ()


def without_expired(snapshot: ContextSnapshot, now: datetime) -> ContextSnapshot:
    """Return a snapshot with what has expired by `now` left out."""
    return replace(
        snapshot,
        profile=[each for each in snapshot.profile if _is_current(each, now)],
        items=[each for each in snapshot.items if each.expires_at > now],
    )


def _is_current(memory: Memory, now: datetime) -> bool:
    return not (
        (memory.valid_at and memory.valid_at > now)
        or (memory.invalid_at and memory.invalid_at <= now)
        or (memory.expires_at and memory.expires_at <= now)
    )


def snapshot_from_row(version: str, found: Row, now: datetime, max_age: timedelta) -> ContextSnapshot:
    """Return what stands as the query found it."""
    statistics = found["statistics"]
    return ContextSnapshot(
        version=version,
        valid_until=now + max_age,
        profile=[
            memory_from_fact(
                fact_from_row({**row, "fact": _parse_times(row["fact"], _SNAPSHOT_TIME_FIELDS)}),
                {each["uuid"]: entity_ref_from_node(each) for each in row["entities"]},
                now,
            )
            for row in found["profile"]
        ],
        session=session_from_node(found["session"]) if found["session"] else None,
        statistics=SessionStatistics(**{**statistics, "intents": tuple(statistics["intents"])}),
        messages=[message_from_row(each) for each in reversed(found["messages"])],
        items=[item_from_node(each) for each in found["items"]],
        preferences=[preference_from_node(each) for each in found["preferences"]],
        patterns=[pattern_from_node(each) for each in found["patterns"]],
        sessions=[
            PastSession(
                session_id=each["session_id"],
                title=each["title"],
                summary=each["summary"],
                topic_tags=tuple(each["topic_tags"]),
                intents=tuple(each["intent_sequence"]),
                updated_at=each["updated_at"],
            )
            for each in found["sessions"]
        ],
        user_entity_name=found["user_entity_name"],
        speaker=found["speaker"],
    )


def _parse_times(stored: Mapping[str, Any], names: Sequence[str]) -> dict[str, Any]:
    """Return properties with the times that came as text read."""
    return {**stored, **{name: datetime.fromisoformat(stored[name]) for name in names if stored.get(name)}}


def optional_message_from_node(stored: Mapping[str, Any] | None) -> Message | None:
    """Return an episode node's properties as a message, where there is one."""
    return message_from_node(stored) if stored else None


def item_from_node(stored: Mapping[str, Any]) -> ContextItem:
    """Return a node's properties as a context item."""
    same = ("id", "session_id", "context_type", "context_key", "relevance_score", "expires_at", "created_at")
    return ContextItem(
        **{name: stored[name] for name in same},
        user_id=_user_id_from_node(stored),
        context_value=json.loads(stored["context_value"]),
    )


def item_to_row(owner: Owner, mentioned: Mention, now: datetime) -> Row:
    """Return something mentioned as a row to be kept; its key is one for the same thing in a session."""
    value = to_json(mentioned.value)
    digest = hashlib.sha256(f"{mentioned.type}\n{mentioned.key}\n{value}".encode()).hexdigest()[:32]
    return {
        "message_id": mentioned.message_id,
        "session_id": mentioned.session_id,
        "item_key": digest,
        "properties": {
            "id": str(uuid.uuid4()),
            "group_id": owner.group_id,
            "name": f"{mentioned.key}: {value[:80]}",
            "context_type": mentioned.type,
            "context_key": mentioned.key,
            "context_value": value,
            "relevance_score": mentioned.relevance,
            "expires_at": mentioned.expires_at,
            "created_at": now,
        },
    }


def preference_from_node(stored: Mapping[str, Any]) -> LearnedPreference:
    """Return a node's properties as a learned preference."""
    same = ("id", "preference_key", "confidence_score", "frequency", "last_observed", "created_at", "updated_at")
    return LearnedPreference(
        **{name: stored[name] for name in same},
        user_id=_user_id_from_node(stored),
        preference_type=PreferenceType(stored["preference_type"]),
        preference_value=json.loads(stored["preference_value"]),
        learned_from=json.loads(stored["learned_from"]),
    )


def preference_to_row(preference: LearnedPreference) -> Row:
    """Return a learned preference as a row to be kept."""
    same = ("id", "confidence_score", "frequency", "last_observed", "created_at", "updated_at")
    return {
        "preference_type": preference.preference_type.value,
        "preference_key": preference.preference_key,
        "message_id": preference.learned_from.get("message_id"),
        "properties": {
            **{name: getattr(preference, name) for name in same},
            "name": f"{preference.preference_key}: {', '.join(map(str, preference.preference_value.values()))}",
            "preference_value": to_json(preference.preference_value),
            "learned_from": to_json(preference.learned_from),
        },
    }


def pattern_from_node(stored: Mapping[str, Any]) -> BehaviorPattern:
    """Return a node's properties as a behaviour pattern."""
    same = (
        "id",
        "pattern_description",
        "confidence_score",
        "occurrence_count",
        "first_detected",
        "last_detected",
        "is_active",
    )
    return BehaviorPattern(
        **{name: stored[name] for name in same},
        user_id=_user_id_from_node(stored),
        pattern_type=PatternType(stored["pattern_type"]),
        pattern_data=json.loads(stored["pattern_data"]),
    )


def _user_id_from_node(stored: Mapping[str, Any]) -> str:
    return Owner.from_group_id(stored["group_id"]).user_id
