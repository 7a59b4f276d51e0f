"""Entities as nodes of the graph and rows of queries, and back. Pure."""

from __future__ import annotations

import json
import uuid
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from graphmem.memories.entity import DEFAULT_ENTITY_TYPE, Entity, EntityIn, EntityRef, NamedEntity
from graphmem.memories.entity_details import NAME, TYPE, attribute_detail, write_detail_sources
from graphmem.runtime.field_types import Vector, name_key, to_json
from graphmem.runtime.times import parse_times
from graphmem.tenants.owners import Owner
from graphmem.tenants.trust import SourceKind

_TIME_FIELDS = ("created_at", "updated_at")
"""The times of an entity in the order of the fragment `entity_columns`."""


def entity_from_node(stored: Mapping[str, Any], memory_count: int | None = None) -> Entity:
    """Return the properties of an entity node as callers see them."""
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


def entity_from_columns(stored: Mapping[str, Any], times: Sequence[int | None], memory_count: int) -> Entity:
    """Return an entity from the values of the fragment `entity_columns`."""
    return entity_from_node({**stored, **parse_times(_TIME_FIELDS, times)}, memory_count)


def entity_ref_from_node(stored: Mapping[str, Any]) -> EntityRef:
    """Return an entity as a memory refers to it."""
    return EntityRef(id=stored["uuid"], name=stored["name"], type=stored["type"])


def named_entity_from_node(stored: Mapping[str, Any]) -> NamedEntity:
    """Return an entity with its names."""
    return NamedEntity(
        stored["uuid"], stored["name"], stored["type"], stored.get("aliases") or [], bool(stored.get("is_user"))
    )


def new_entity_properties(
    owner: Owner,
    entity: EntityIn,
    vector: Vector | None,
    now: datetime,
    *,
    entity_id: str | None = None,
    is_user: bool = False,
    source_kind: SourceKind = "user",
) -> dict[str, Any]:
    """Return the properties of a new entity node; without `entity_id` it gets a random one."""
    kind = entity.type or DEFAULT_ENTITY_TYPE
    details = [NAME, *([TYPE] if kind != DEFAULT_ENTITY_TYPE else []), *map(attribute_detail, entity.attributes)]
    return {
        "uuid": entity_id or str(uuid.uuid4()),
        "group_id": owner.group_id,
        "group_key": owner.group_key,
        "name": entity.name,
        "name_key": name_key(entity.name),
        "type": kind,
        "labels": ["Entity", kind],
        "summary": "",
        "alias_text": "",
        "attributes": to_json(entity.attributes),
        "detail_sources": write_detail_sources(dict.fromkeys(details, source_kind)),
        "is_user": is_user,
        "name_embedding": vector,
        "created_at": now,
        "updated_at": now,
    }
