"""Conversions from context nodes to models, and from models to rows."""

from __future__ import annotations

import hashlib
import json
import uuid
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from graphmem.context.models import (
    BehaviorPattern,
    ContextItem,
    ContextItemIn,
    ContextSnapshot,
    DetectedPattern,
    FeedbackVerdict,
    LearnedIntent,
    LearnedPreference,
    Lesson,
    Mention,
    PastSession,
    PreferenceSource,
    PreferenceType,
    SessionStatistics,
    verdict_for_score,
)
from graphmem.conversations.episode_store import session_from_columns
from graphmem.conversations.session import Message
from graphmem.conversations.stored import message_from_columns, message_from_node
from graphmem.memories.fact import memory_from_columns
from graphmem.neo4j.driver_values import Row
from graphmem.runtime.field_types import to_json
from graphmem.runtime.times import from_micros, parse_times
from graphmem.tenants.owners import Owner
from graphmem.tenants.profiles import PatternType
from graphmem.tenants.trust import Effect, StatedKind, TrustOrder

MAX_PATTERN_EVIDENCE = 25
"""Maximum messages that a pattern is linked to; the newest are taken."""

MAX_LESSONS = 20
"""Maximum lessons stored with a message; the latest are kept."""

_VERDICTS = {
    **{verdict.value: verdict for verdict in FeedbackVerdict},
    **{str(score): verdict_for_score(score) for score in range(1, 6)},
}


def snapshot_from_columns(columns: Sequence[Any], now: datetime, valid_until: datetime) -> ContextSnapshot:
    """Return the snapshot loaded by `context.load_snapshot`, as of `now`."""
    version, found = columns
    return ContextSnapshot(
        version=version,
        valid_until=valid_until,
        profile=[memory_from_columns(columns, now) for columns in found["profile"]],
        contested=[memory_from_columns(columns, now) for columns in found["contested"]],
        session=session_from_columns(found["session"]) if found["session"] else None,
        statistics=_statistics_from_columns(found["statistics"]),
        messages=[message_from_columns(columns) for columns in reversed(found["messages"])],
        items=[item_from_columns(columns) for columns in found["items"]],
        preferences=[preference_from_columns(columns) for columns in found["preferences"]],
        patterns=[pattern_from_columns(columns) for columns in found["patterns"]],
        sessions=[_past_session_from_columns(columns) for columns in found["sessions"]],
        intents=[intent_from_columns(columns) for columns in found["intents"]],
        user_entity_name=found["user_entity_name"],
        speaker=found["speaker"],
    )


def _with_times(columns: Sequence[Any], names: Sequence[str]) -> Row:
    """Return properties with their times, which queries return separately as microseconds since 1970."""
    properties, microseconds = columns
    return {**properties, **parse_times(names, microseconds)}


def _statistics_from_columns(columns: Sequence[Any]) -> SessionStatistics:
    statistics = _with_times(columns, ("first_at", "last_at"))
    fields: Row = {**statistics, "intents": tuple(statistics["intents"])}
    return SessionStatistics(**fields)


def _past_session_from_columns(columns: Sequence[Any]) -> PastSession:
    session_id, title, summary, topic_tags, intents, updated_at = columns
    return PastSession(
        session_id=session_id,
        title=title,
        summary=summary,
        topic_tags=tuple(topic_tags),
        intents=tuple(intents),
        updated_at=from_micros(updated_at),
    )


def intent_from_columns(columns: Sequence[Any]) -> LearnedIntent:
    """Return a learned intent from a value of the fragment `learned_intents`."""
    return LearnedIntent.model_validate(_with_times(columns, ("created_at", "updated_at")))


def optional_message_from_node(stored: Mapping[str, Any] | None) -> Message | None:
    """Return an episode node's properties as a message; None stays None."""
    return message_from_node(stored) if stored else None


def item_from_columns(columns: Sequence[Any]) -> ContextItem:
    """Return a context item from the value of the fragment `item_columns`."""
    stored = _with_times(columns, ("expires_at", "created_at"))
    same = ("id", "context_type", "context_key", "relevance_score", "expires_at", "created_at")
    return ContextItem(
        **{name: stored[name] for name in same},
        session_id=stored["session_id"] or None,
        user_id=_user_id_from_node(stored),
        source_kind=_source_kind_from_node(stored),
        context_value=json.loads(stored["context_value"]),
    )


def mention_to_row(owner: Owner, mention: Mention, order: TrustOrder, now: datetime) -> Row:
    """Return a mention as a context item row; `item_key` is equal for equal mentions of a session.

    `permitted` are the kinds of sources whose item it may change.
    """
    value = to_json(mention.value)
    kind = order.least_trusted(mention.stated_by)
    digest = hashlib.sha256(f"{mention.type}\n{mention.key}\n{value}".encode()).hexdigest()[:32]
    return {
        "message_id": mention.message_id,
        "session_id": mention.session_id,
        "item_key": digest,
        "permitted": order.permitted_on(Effect.OUTRANK, kind),
        "properties": {
            "id": str(uuid.uuid4()),
            "group_id": owner.group_id,
            "name": f"{mention.key}: {value[:80]}",
            "context_type": mention.type,
            "context_key": mention.key,
            "context_value": value,
            "relevance_score": mention.relevance,
            "expires_at": mention.expires_at,
            "created_at": now,
            "source_kind": kind,
        },
    }


def stated_item_to_row(owner: Owner, item: ContextItemIn, kind: StatedKind, now: datetime) -> Row:
    """Return a caller's context item as a row; `item_key` is equal for items of the same type and key."""
    value = to_json(item.value)
    return {
        "session_id": item.session_id or "",
        "item_key": hashlib.sha256(f"{item.type}\n{item.key}".encode()).hexdigest()[:32],
        "created": {
            "id": str(uuid.uuid4()),
            "group_id": owner.group_id,
            "context_type": item.type,
            "context_key": item.key,
            "created_at": now,
        },
        "changed": {
            "name": f"{item.key}: {value[:80]}",
            "context_value": value,
            "relevance_score": item.relevance,
            "expires_at": now + timedelta(seconds=item.ttl),
            "source_kind": kind,
        },
    }


def preference_from_columns(columns: Sequence[Any]) -> LearnedPreference:
    """Return a learned preference from a value of the fragment `learned_preferences`."""
    stored = _with_times(columns, ("last_observed", "created_at", "updated_at"))
    same = ("id", "preference_key", "confidence_score", "frequency", "last_observed", "created_at", "updated_at")
    return LearnedPreference(
        **{name: stored[name] for name in same},
        user_id=_user_id_from_node(stored),
        preference_type=PreferenceType(stored["preference_type"]),
        preference_value=json.loads(stored["preference_value"]),
        learned_from=PreferenceSource.model_validate_json(stored["learned_from"]),
        source_kind=_source_kind_from_node(stored),
    )


def lessons_from_text(text: str | None) -> list[Lesson]:
    """Return the lessons learned from feedback on a message, stored as text with one per line.

    A line begins with the verdict or, in older data, with the score.
    """
    lines = [line.partition(" ") for line in (text or "").splitlines()]
    return [Lesson(_VERDICTS[word], comment.strip()) for word, _, comment in lines if word in _VERDICTS]


def lessons_to_text(lessons: Sequence[Lesson]) -> str:
    """Return the distinct lessons learned from feedback on a message, as the text to store."""
    return "\n".join(f"{verdict} {text}".rstrip() for verdict, text in list(dict.fromkeys(lessons))[-MAX_LESSONS:])


def preference_to_row(preference: LearnedPreference) -> Row:
    """Return a learned preference as a row."""
    same = ("id", "confidence_score", "frequency", "last_observed", "created_at", "updated_at", "source_kind")
    return {
        "preference_type": preference.preference_type.value,
        "preference_key": preference.preference_key,
        "message_id": preference.learned_from.message_id,
        "properties": {
            **{name: getattr(preference, name) for name in same},
            "name": f"{preference.preference_key}: {', '.join(preference.preference_value.values())}",
            "preference_value": to_json(preference.preference_value),
            "learned_from": to_json(preference.learned_from),
        },
    }


def pattern_from_columns(columns: Sequence[Any]) -> BehaviorPattern:
    """Return a behaviour pattern from a value of the fragment `active_patterns`."""
    stored = _with_times(columns, ("first_detected", "last_detected"))
    same = (
        *("id", "pattern_description", "confidence_score", "occurrence_count"),
        *("first_detected", "last_detected", "is_active"),
    )
    return BehaviorPattern(
        **{name: stored[name] for name in same},
        user_id=_user_id_from_node(stored),
        pattern_type=PatternType(stored["pattern_type"]),
        pattern_data=json.loads(stored["pattern_data"]),
        source_kind=_source_kind_from_node(stored),
    )


def pattern_to_row(pattern: DetectedPattern) -> Row:
    """Return a detected pattern as a row."""
    return {
        "pattern_type": pattern.type.value,
        "pattern_key": pattern.key,
        "id": str(uuid.uuid4()),
        "evidence": list(pattern.evidence)[-MAX_PATTERN_EVIDENCE:],
        "properties": {
            "name": pattern.description,
            "pattern_description": pattern.description,
            "pattern_data": to_json(pattern.data),
            "confidence_score": pattern.confidence,
            "occurrence_count": len(pattern.evidence),
            "source_kind": pattern.source_kind,
        },
    }


def _source_kind_from_node(stored: Mapping[str, Any]) -> StatedKind:
    """Return the stored source of a statement, by default the user, as exports may leave it out."""
    kind: StatedKind = stored.get("source_kind") or "user"
    return kind


def _user_id_from_node(stored: Mapping[str, Any]) -> str:
    return Owner.from_group_id(stored["group_id"]).user_id
