"""Context as graph properties, and back."""

from __future__ import annotations

import hashlib
import json
import uuid
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from graphmem.context.behavior_patterns import BehaviorPattern, DetectedPattern
from graphmem.context.learned_preferences import (
    FeedbackVerdict,
    LearnedIntent,
    LearnedPreference,
    Lesson,
    PreferenceSource,
    PreferenceType,
    verdict_for_score,
)
from graphmem.context.models import (
    ContextItem,
    ContextItemIn,
    ContextSnapshot,
    Mention,
    PastSession,
    SessionStatistics,
)
from graphmem.conversations.episode_mapping import message_from_node, message_from_row, session_from_node
from graphmem.conversations.session import Message
from graphmem.memories.entity_mapping import entity_ref_from_node
from graphmem.memories.fact_mapping import fact_from_row, memory_from_fact
from graphmem.memories.memory import Memory
from graphmem.neo4j.driver import Row
from graphmem.neo4j.json_text import to_json
from graphmem.tenants.owners import Owner
from graphmem.tenants.pattern_type import PatternType

MAX_PATTERN_EVIDENCE = 25
"""Messages that a pattern is linked to at most; the newest are taken."""

MAX_LESSONS = 20
"""Lessons stored with a message at most; the latest are kept."""

_VERDICTS = {
    **{verdict.value: verdict for verdict in FeedbackVerdict},
    **{str(score): verdict_for_score(score) for score in range(1, 6)},
}


def snapshot_from_row(version: str, found: Row, now: datetime, valid_until: datetime) -> ContextSnapshot:
    """Return the result of `context.load_snapshot` as of `now`."""
    statistics = found["statistics"]
    return ContextSnapshot(
        version=version,
        valid_until=valid_until,
        profile=[memory_from_snapshot_row(row, now) for row in found["profile"]],
        session=session_from_node(found["session"]) if found["session"] else None,
        statistics=SessionStatistics(**{**statistics, "intents": tuple(statistics["intents"])}),
        messages=[message_from_row(row) for row in reversed(found["messages"])],
        items=[item_from_node(node) for node in found["items"]],
        preferences=settled_preferences(found["preferences"]),
        patterns=[pattern_from_node(node) for node in found["patterns"]],
        sessions=[
            PastSession(
                session_id=node["session_id"],
                title=node["title"],
                summary=node["summary"],
                topic_tags=tuple(node["topic_tags"]),
                intents=tuple(node["intent_sequence"]),
                updated_at=node["updated_at"],
            )
            for node in found["sessions"]
        ],
        intents=[LearnedIntent.model_validate(node) for node in found["intents"]],
        user_entity_name=found["user_entity_name"],
        speaker=found["speaker"],
    )


def memory_from_snapshot_row(row: Row, now: datetime) -> Memory:
    """Return a row of the fragment `fact_with_entities` as a memory."""
    refs = {node["uuid"]: entity_ref_from_node(node) for node in row["entities"]}
    return memory_from_fact(fact_from_row(row), refs, now)


def optional_message_from_node(stored: Mapping[str, Any] | None) -> Message | None:
    """Return an episode node's properties as a message; None stays None."""
    return message_from_node(stored) if stored else None


def item_from_node(stored: Mapping[str, Any]) -> ContextItem:
    """Return a node's properties as a context item."""
    same = ("id", "context_type", "context_key", "relevance_score", "expires_at", "created_at")
    return ContextItem(
        **{name: stored[name] for name in same},
        session_id=stored["session_id"] or None,
        user_id=_user_id_from_node(stored),
        context_value=json.loads(stored["context_value"]),
    )


def mention_to_row(owner: Owner, mention: Mention, now: datetime) -> Row:
    """Return a mention as a context item to be stored; `item_key` is equal for equal mentions of a session."""
    value = to_json(mention.value)
    digest = hashlib.sha256(f"{mention.type}\n{mention.key}\n{value}".encode()).hexdigest()[:32]
    return {
        "message_id": mention.message_id,
        "session_id": mention.session_id,
        "item_key": digest,
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
        },
    }


def stated_item_to_row(owner: Owner, item: ContextItemIn, now: datetime) -> Row:
    """Return a context item of a caller to be stored; `item_key` is equal for items of the same type and key."""
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
        learned_from=PreferenceSource.model_validate_json(stored["learned_from"]),
    )


def settled_preferences(nodes: Iterable[Mapping[str, Any]]) -> list[LearnedPreference]:
    """Return the learned preferences of nodes, without those that one request only has shown."""
    return [preference for preference in map(preference_from_node, nodes) if not preference.is_tentative]


def lessons_from_text(text: str | None) -> list[Lesson]:
    """Return what feedback on a message has taught, of the text that is stored: one lesson a line.

    A line begins with the verdict or, as stored earlier, with the score.
    """
    lines = [line.partition(" ") for line in (text or "").splitlines()]
    return [Lesson(_VERDICTS[word], comment.strip()) for word, _, comment in lines if word in _VERDICTS]


def lessons_to_text(lessons: Sequence[Lesson]) -> str:
    """Return what feedback on a message has taught as the text to store, each lesson once."""
    return "\n".join(f"{verdict} {text}".rstrip() for verdict, text in list(dict.fromkeys(lessons))[-MAX_LESSONS:])


def preference_to_row(preference: LearnedPreference) -> Row:
    """Return a learned preference as a row to be stored."""
    same = ("id", "confidence_score", "frequency", "last_observed", "created_at", "updated_at")
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


def pattern_from_node(stored: Mapping[str, Any]) -> BehaviorPattern:
    """Return a node's properties as a behaviour pattern."""
    same = (
        *("id", "pattern_description", "confidence_score", "occurrence_count"),
        *("first_detected", "last_detected", "is_active"),
    )
    return BehaviorPattern(
        **{name: stored[name] for name in same},
        user_id=_user_id_from_node(stored),
        pattern_type=PatternType(stored["pattern_type"]),
        pattern_data=json.loads(stored["pattern_data"]),
    )


def pattern_to_row(pattern: DetectedPattern) -> Row:
    """Return a detected pattern as a row to be stored."""
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
        },
    }


def _user_id_from_node(stored: Mapping[str, Any]) -> str:
    return Owner.from_group_id(stored["group_id"]).user_id
