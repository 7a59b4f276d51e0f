"""What an import writes: which entries the user has already, and which ids change. Pure."""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Mapping, Set
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from graphmem.domain.export.consistency import ExportedMessage, Problem, find_lost_references
from graphmem.domain.export.document import UserExport
from graphmem.domain.export.entries import ExportedEntity, ExportedRecord, ExportedVersion
from graphmem.domain.export.properties import Identity

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

    messages: Mapping[tuple[str, int], str] = field(default_factory=dict)
    """Message ids by session and position."""


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
    return plan


def find_future_times(export: UserExport, now: datetime) -> Iterator[Problem]:
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


def find_misfits(export: UserExport, existing: ExistingData) -> Iterator[Problem]:
    """Yield the entries that do not fit what the user has: lost references, and messages in the place of others."""
    messages = [
        (index, record.properties) for index, record in enumerate(export.records) if isinstance(record, ExportedMessage)
    ]
    entity_ids = {entity.key for entity in export.entities}
    entity_ids |= {node.uuid for node in existing.entities.values() if node.uuid}
    message_ids = {message.uuid for _, message in messages}
    message_ids |= {node.uuid for node in existing.records.values() if node.uuid}
    memory_ids = {version.properties.memory_id for version in export.memories} | existing.memory_ids
    yield from find_lost_references(export.memories, entity_ids, message_ids, memory_ids)
    places = {message_id: place for place, message_id in existing.messages.items()}
    for index, message in messages:
        place = (message.session_id, message.position)
        has_moved = places.get(message.message_id, place) != place
        if has_moved or existing.messages.get(place, message.message_id) != message.message_id:
            yield ("records", index), "is a message in another place than in the sessions that the user has"
