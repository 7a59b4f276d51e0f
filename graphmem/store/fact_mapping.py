"""Facts and entities as graph properties, and back."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from graphmem.domain.entity import Entity, EntityRef
from graphmem.domain.fact import Fact
from graphmem.domain.memory import Memory, MemorySource, MemoryStatus, MemoryType, MemoryVersion, Scope

_SCALAR_FIELDS = (
    "uuid", "memory_id", "version", "group_id", "content_hash", "domain", "confidence", "importance", "strength",
    "decay_rate", "access_count", "last_accessed_at", "valid_at", "invalid_at", "claimed_invalid_at", "created_at",
    "first_created_at", "updated_at", "expired_at", "expires_at", "retired", "superseded_by", "session_id", "immutable",
    "single_valued", "source_kind", "active_hash", "search_text", "ended_reason", "ended_by", "actor",
)  # fmt: skip
_LIST_FIELDS = ("entity_ids", "tags", "supersedes", "associations", "message_ids", "episodes")


FACT_TIME_FIELDS = (
    "last_accessed_at", "valid_at", "invalid_at", "claimed_invalid_at", "created_at", "first_created_at", "updated_at",
    "expired_at", "expires_at",
)  # fmt: skip
"""The times of a version in the order in which queries return them."""

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def parse_times(names: Sequence[str], microseconds: Sequence[int | None]) -> dict[str, datetime | None]:
    """Return times by name from microseconds since 1970; None stays None."""
    return {
        name: None if at is None else EPOCH + timedelta(microseconds=at)
        for name, at in zip(names, microseconds, strict=True)
    }


def to_epoch_pair(moment: datetime) -> list[int]:
    """Return a time as seconds since 1970 and microseconds, the latter from 0."""
    since = moment - EPOCH
    return [since.days * 86_400 + since.seconds, since.microseconds]


def group_key(group_id: str) -> str:
    """Return a user's key in full-text indexes: one token, whatever characters the id has."""
    return "g" + hashlib.sha256(group_id.encode()).hexdigest()[:24]


def fact_to_properties(fact: Fact) -> dict[str, Any]:
    """Return all properties of a fact's edge but its vector; absent ones are None, so that setting them clears."""
    return {
        **{name: getattr(fact, name) for name in _SCALAR_FIELDS},
        **{name: list(getattr(fact, name)) for name in _LIST_FIELDS},
        "name": fact.predicate,
        "fact": fact.content,
        "type": fact.type.value,
        "scope": fact.scope.value,
        "status": fact.status.value,
        "end_status": fact.end_status.value if fact.end_status else None,
        "metadata": json.dumps(fact.metadata, ensure_ascii=False, separators=(",", ":")),
        "group_key": group_key(fact.group_id),
        "valid_from": fact.valid_from,
        "valid_to": fact.valid_to,
        "known_from": fact.created_at,
        "known_to": fact.known_to,
    }


def fact_from_row(row: Mapping[str, Any]) -> Fact:
    """Return the fact of a row `{fact, times?, subject_id, object_id}`; without `times` they stand in `fact`."""
    stored = {**row["fact"], **parse_times(FACT_TIME_FIELDS, row["times"])} if "times" in row else row["fact"]
    same: dict[str, Any] = {name: stored.get(name) for name in _SCALAR_FIELDS if name != "search_text"}
    lists: dict[str, Any] = {name: tuple(stored.get(name) or ()) for name in _LIST_FIELDS}
    return Fact(
        **same,
        **lists,
        search_text=stored.get("search_text") or "",
        predicate=stored["name"],
        content=stored["fact"],
        type=MemoryType(stored["type"]),
        scope=Scope(stored["scope"]),
        status=MemoryStatus(stored["status"]),
        end_status=MemoryStatus(stored["end_status"]) if stored.get("end_status") else None,
        metadata=json.loads(stored.get("metadata") or "{}"),
        subject_id=row["subject_id"],
        object_id=row["object_id"] if row["object_id"] != row["subject_id"] else None,
    )


def user_id_of_group(group_id: str) -> str | None:
    """Return the user id of a group; None for what is global."""
    return group_id.split(":", 1)[1] or None


def memory_from_fact(fact: Fact, names: Mapping[str, EntityRef], now: datetime) -> Memory:
    """Return a fact as callers see it at `now`; `names` holds the entities it touches."""
    return Memory(**_memory_fields(fact, names, now))


def memory_version_from_fact(fact: Fact, names: Mapping[str, EntityRef], now: datetime) -> MemoryVersion:
    """Return a fact as a row of its memory's history."""
    return MemoryVersion(
        **_memory_fields(fact, names, now), ended_reason=fact.ended_reason, ended_by=fact.ended_by, actor=fact.actor
    )


def _memory_fields(fact: Fact, names: Mapping[str, EntityRef], now: datetime) -> dict[str, Any]:
    same = (
        "version", "content", "type", "scope", "domain", "predicate", "tags", "confidence", "importance", "strength",
        "decay_rate", "access_count", "last_accessed_at", "valid_at", "invalid_at", "created_at", "expired_at",
        "updated_at", "superseded_by", "supersedes", "associations", "immutable", "single_valued", "expires_at",
        "metadata", "content_hash",
    )  # fmt: skip
    return {
        **{name: getattr(fact, name) for name in same},
        "id": fact.memory_id,
        "user_id": user_id_of_group(fact.group_id),
        "subject": names[fact.subject_id],
        "object": names[fact.object_id] if fact.object_id else None,
        "entities": [names[key] for key in fact.entity_ids if key in names],
        "status": fact.status_at(now),
        "source": MemorySource(kind=fact.source_kind, session_id=fact.session_id, message_ids=list(fact.message_ids)),
    }


def entity_from_node(stored: Mapping[str, Any], memory_count: int | None = None) -> Entity:
    """Return an entity node's properties as callers see them."""
    return Entity(
        id=stored["uuid"],
        name=stored["name"],
        type=stored["type"],
        aliases=list(stored.get("aliases") or ()),
        summary=stored.get("summary") or "",
        attributes=json.loads(stored.get("attributes") or "{}"),
        is_user=bool(stored.get("is_user")),
        created_at=stored["created_at"],
        updated_at=stored.get("updated_at") or stored["created_at"],
        memory_count=memory_count,
    )


def entity_ref_from_node(stored: Mapping[str, Any]) -> EntityRef:
    """Return an entity as a memory names it."""
    return EntityRef(id=stored["uuid"], name=stored["name"], type=stored["type"])
