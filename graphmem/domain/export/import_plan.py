"""What an import writes: which entries the user has already, and which ids change. Pure."""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Mapping, Set
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from graphmem.domain.export.document import UserExport
from graphmem.domain.export.entries import (
    ExportedArchivedEpisode,
    ExportedEntity,
    ExportedEpisode,
    ExportedRecord,
    ExportedSession,
    ExportedVersion,
)
from graphmem.domain.export.properties import Identity
from graphmem.domain.json_values import JsonPath

CLOCK_TOLERANCE = timedelta(minutes=5)
"""How far known times may lie ahead of this machine's clock. Every later write of the user gets a later time."""

_KNOWN_TIMES = ("created_at", "first_created_at", "updated_at", "expired_at", "last_accessed_at")


@dataclass(frozen=True, slots=True)
class ExistingNode:
    """A node that the user has before the import; `uuid` is None for records that have no such property."""

    element_id: str
    uuid: str | None


@dataclass(frozen=True, slots=True)
class ExistingData:
    """What the user has before the import."""

    entities: Mapping[str, ExistingNode]
    """By name key."""

    records: Mapping[Identity, ExistingNode]
    memory_ids: Set[str]
    current_statements: Mapping[str, str]
    """Memory ids by `active_hash`."""

    taken_ids: Set[str]
    """Ids of the import that an entity, message, version or global memory has already, of whichever user."""

    self_entity: ExistingNode | None = None
    """The entity that stands for the user."""


@dataclass(slots=True)
class ImportPlan:
    """Which entries stay as they are, and which ids are replaced."""

    ids: dict[str, str] = field(default_factory=dict)
    known_nodes: dict[str, str] = field(default_factory=dict)
    """Element ids of the user's nodes by the key that the export gives them."""

    known_memory_ids: set[str] = field(default_factory=set)

    def is_new_node(self, node: ExportedEntity | ExportedRecord) -> bool:
        """Whether the import creates the node."""
        return node.key not in self.known_nodes

    def is_new_version(self, version: ExportedVersion) -> bool:
        """Whether the import creates the version."""
        return version.properties.memory_id not in self.known_memory_ids


def plan_import(export: UserExport, existing: ExistingData) -> ImportPlan:
    """Return what to write: ids stay when they are free; ids in use are replaced, or lead to the user's own entry."""
    plan = ImportPlan(known_memory_ids=set(existing.memory_ids))
    for entity in export.entities:
        own = existing.self_entity if entity.properties.is_user else None
        _plan_node(plan, existing, entity, own or existing.entities.get(entity.properties.name_key))
    for record in export.records:
        _plan_node(plan, existing, record, existing.records.get(record.identity))
    for version in export.memories:
        _plan_known_memory(plan, existing, version)
    for version in export.memories:
        fact = version.properties
        if plan.is_new_version(version) and {fact.uuid, fact.memory_id} & existing.taken_ids:
            plan.ids.setdefault(fact.memory_id, str(uuid.uuid4()))
            plan.ids[fact.uuid] = str(uuid.uuid4())
    for reference in _foreign_references(export, existing):
        plan.ids.setdefault(reference, str(uuid.uuid4()))
    return plan


def find_future_times(export: UserExport, now: datetime) -> Iterator[tuple[JsonPath, str]]:
    """Yield the known times of an export that are in the future."""
    for index, version in enumerate(export.memories):
        for name in _KNOWN_TIMES:
            time: datetime | None = getattr(version.properties, name)
            if time is not None and time > now + CLOCK_TOLERANCE:
                yield ("memories", index, "properties", name), "is in the future"


def _plan_node(
    plan: ImportPlan, existing: ExistingData, node: ExportedEntity | ExportedRecord, known: ExistingNode | None
) -> None:
    own_id: str | None = getattr(node.properties, "uuid", None)
    if known is not None:
        plan.known_nodes[node.key] = known.element_id
        if own_id and known.uuid and own_id != known.uuid:
            plan.ids[own_id] = known.uuid
    elif own_id and own_id in existing.taken_ids:
        plan.ids[own_id] = str(uuid.uuid4())


def _plan_known_memory(plan: ImportPlan, existing: ExistingData, version: ExportedVersion) -> None:
    """Let a memory be known when its statement is current already."""
    fact = version.properties
    if fact.active_hash is None or fact.memory_id in existing.memory_ids:
        return
    subject_id = plan.ids.get(version.subject_id, version.subject_id)
    known_id = existing.current_statements.get(f"{fact.content_hash}:{subject_id}")
    if known_id:
        plan.known_memory_ids.add(fact.memory_id)
        plan.ids[fact.memory_id] = known_id


def _foreign_references(export: UserExport, existing: ExistingData) -> Iterator[str]:
    """Yield the ids that neither the export nor the user has: they may be other users' and must not be stored."""
    entities = {entity.key for entity in export.entities} | {node.uuid for node in existing.entities.values()}
    messages = {node.uuid for node in existing.records.values()}
    messages |= {
        record.properties.uuid
        for record in export.records
        if isinstance(record, ExportedEpisode | ExportedArchivedEpisode)
    }
    for version in export.memories:
        yield from (entity_id for entity_id in version.properties.entity_ids or () if entity_id not in entities)
    for record in export.records:
        last_message = record.properties.last_episode if isinstance(record, ExportedSession) else None
        if last_message is not None and last_message not in messages:
            yield last_message
