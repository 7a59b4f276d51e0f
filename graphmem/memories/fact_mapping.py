"""Facts as properties of edges, as rows of queries and as memories, by the fields of `Fact`."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, get_type_hints

from graphmem.memories.entity import EntityRef
from graphmem.memories.fact import Fact
from graphmem.memories.memory import Memory, MemorySource, MemoryStatus, MemoryType, MemoryVersion, Scope
from graphmem.memories.snapshot import ElementImage
from graphmem.neo4j.driver_values import to_json
from graphmem.runtime.times import parse_times
from graphmem.tenants.owners import Owner, group_key
from graphmem.tenants.trust import SourceKind, parse_source_kind

_STORED_AS = {"content": "fact", "predicate": "name"}
"""The names of properties where they differ from those of attributes."""

_ENDS_OF_THE_EDGE = {"subject_id", "object_id"}


@dataclass(frozen=True, slots=True)
class FactField:
    """One attribute of `Fact` that is a property of its edge; the type decides how it is stored."""

    name: str
    type: Any

    @property
    def property_name(self) -> str:
        """The name of the edge's property."""
        return _STORED_AS.get(self.name, self.name)

    @property
    def is_time(self) -> bool:
        """Whether the field is a time; queries return times apart from the other properties, as numbers."""
        return self.type in (datetime, datetime | None)


FACT_FIELDS = tuple(
    FactField(name, type) for name, type in get_type_hints(Fact).items() if name not in _ENDS_OF_THE_EDGE
)
"""Every field of `Fact` but `subject_id` and `object_id`, which are the ends of its edge."""

TIME_FIELDS = tuple(field.name for field in FACT_FIELDS if field.is_time)
"""The times of a version in the order of the fragment `fact_times`."""

SHADOW_PROPERTIES = ("valid_from", "valid_to", "known_from", "known_to", "profile_of")
"""Properties that repeat others for an index: the bounds of both intervals without null, the entity of a profile."""

VECTOR_PROPERTY = "fact_embedding"
"""The property that holds the embedding of the statement."""

NEXT_VECTOR_PROPERTY = "next_vector"
"""The property of facts, entities and messages that holds their vector of the next model while they are re-embedded."""

_ENCODERS: dict[Any, Callable[[Any], Any]] = {
    tuple[str, ...]: list,
    tuple[str, ...] | None: lambda items: list(items) if items else None,
    dict[str, Any]: to_json,
    dict[str, Any] | None: lambda value: to_json(value) if value else None,
    MemoryType: lambda kind: kind.value,
    Scope: lambda scope: scope.value,
    MemoryStatus: lambda status: status.value,
    MemoryStatus | None: lambda status: status.value if status else None,
}
"""How an attribute becomes a property, by its type; types that are not listed stay as they are."""

_DECODERS: dict[Any, Callable[[Any], Any]] = {
    tuple[str, ...]: lambda items: tuple(items or ()),
    tuple[str, ...] | None: lambda items: tuple(items) if items else None,
    dict[str, Any]: lambda text: json.loads(text or "{}"),
    dict[str, Any] | None: lambda text: json.loads(text) if text else None,
    MemoryType: MemoryType,
    Scope: Scope,
    MemoryStatus: lambda status: MemoryStatus(status) if status else None,
    MemoryStatus | None: lambda status: MemoryStatus(status) if status else None,
    SourceKind: parse_source_kind,
    SourceKind | None: lambda kind: parse_source_kind(kind) if kind else None,
}
"""How a property becomes an attribute, by its type; types that are not listed stay as they are."""

_ENCODED_FIELDS = tuple((field.name, field.property_name, _ENCODERS.get(field.type)) for field in FACT_FIELDS)
_DECODED_FIELDS = tuple((field.name, field.property_name, _DECODERS.get(field.type)) for field in FACT_FIELDS)
"""Attribute, property and coding of each field, looked up once: a search maps some 350 fields."""

_COPIED_TO_MEMORY = tuple(
    field.name for field in FACT_FIELDS if field.name in Memory.model_fields and field.name != "status"
)
"""Attributes that a memory has under the same name and with the same value."""


def fact_to_properties(fact: Fact) -> dict[str, Any]:
    """Return all properties of a fact's edge but its vector; absent ones are None, so that setting them clears."""
    properties = {
        property_name: encode(getattr(fact, name)) if encode else getattr(fact, name)
        for name, property_name, encode in _ENCODED_FIELDS
    }
    return properties | {
        "group_key": group_key(fact.group_id),
        "valid_from": fact.valid_from,
        "valid_to": fact.valid_to,
        "known_from": fact.created_at,
        "known_to": fact.known_to,
        "profile_of": profile_of(fact),
    }


def profile_of(fact: Fact) -> str | None:
    """Return the id of the entity that a profile is about; None for another memory."""
    return fact.subject_id if fact.type is MemoryType.PROFILE else None


def fact_from_row(row: Mapping[str, Any]) -> Fact:
    """Return the fact of a row `{fact, times?, subject_id, object_id}`; without `times`, `fact` contains the times.

    Raises KeyError, TypeError or ValueError for a row that lacks a property or has one of the wrong type.
    """
    stored: dict[str, Any] = row["fact"]
    if "times" in row:
        stored = {**stored, **parse_times(TIME_FIELDS, row["times"])}
    attributes: dict[str, Any] = {
        name: decode(stored.get(property_name)) if decode else stored.get(property_name)
        for name, property_name, decode in _DECODED_FIELDS
    }
    attributes["search_text"] = attributes["search_text"] or ""
    subject_id, object_id = row["subject_id"], row["object_id"]
    return Fact(**attributes, subject_id=subject_id, object_id=object_id if object_id != subject_id else None)


def fact_from_image(image: ElementImage) -> Fact:
    """Return the fact of an image of its edge."""
    return fact_from_row({"fact": image.properties, "subject_id": image.source, "object_id": image.target})


STRENGTH_DECIMALS = 4
"""Decimals of the strength that callers see."""


def memory_from_fact(fact: Fact, refs: Mapping[str, EntityRef], now: datetime) -> Memory:
    """Return a fact as callers see it at `now`; `refs` holds the entities it refers to, by id."""
    return Memory(**_memory_attributes(fact, refs, now))


def memory_at(memory: Memory, fact: Fact, now: datetime) -> Memory:
    """Return the memory that was made of a fact as callers see it at `now`."""
    return memory.model_copy(update=_changing_attributes(fact, now))


def memory_from_columns(columns: Sequence[Any], now: datetime) -> Memory:
    """Return a memory from the value of the fragment `memory_columns`."""
    properties, times, subject_id, object_id, entities = columns
    refs = {key: EntityRef(id=key, name=name, type=entity_type) for key, name, entity_type in entities}
    row = {"fact": properties, "times": times, "subject_id": subject_id, "object_id": object_id}
    return memory_from_fact(fact_from_row(row), refs, now)


def memory_version_from_fact(fact: Fact, refs: Mapping[str, EntityRef], now: datetime) -> MemoryVersion:
    """Return a fact as an entry of its memory's history."""
    return MemoryVersion(
        **_memory_attributes(fact, refs, now),
        ended_reason=fact.ended_reason,
        ended_by=fact.ended_by,
        actor=fact.actor,
    )


def _memory_attributes(fact: Fact, refs: Mapping[str, EntityRef], now: datetime) -> dict[str, Any]:
    owner = Owner.from_group_id(fact.group_id)
    return {
        **{name: getattr(fact, name) for name in _COPIED_TO_MEMORY},
        "invalid_at": fact.shown_invalid_at,
        "expired_at": fact.shown_expired_at,
        "id": fact.memory_id,
        "user_id": owner.own_user_id,
        "space": owner.space,
        "subject": refs[fact.subject_id],
        "object": refs[fact.object_id] if fact.object_id else None,
        "entities": [refs[entity_id] for entity_id in fact.entity_ids if entity_id in refs],
        **_changing_attributes(fact, now),
        "source": MemorySource(
            kind=fact.source_kind,
            trusted_as=fact.trusted_as,
            speaker=fact.speaker,
            session_id=fact.session_id,
            message_ids=list(fact.message_ids),
            quote=fact.source_quote,
        ),
    }


def _changing_attributes(fact: Fact, now: datetime) -> dict[str, Any]:
    """Return the attributes of a memory that depend on when it is read."""
    return {"status": fact.status_at(now), "strength": round(fact.strength_at(now), STRENGTH_DECIMALS)}
