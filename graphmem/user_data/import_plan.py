"""What an import writes: which entries the user has already, and which ids change. Pure."""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Mapping, Set
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from graphmem.memories.fact import Fact, dedup_key
from graphmem.tenants.owners import Owner
from graphmem.user_data.export_document import (
    AnyVersion,
    ExportedMessage,
    Problem,
    UserExport,
    find_lost_references,
)
from graphmem.user_data.export_entries import ExportedEntity, ExportedRecord, Identity

CLOCK_TOLERANCE = timedelta(minutes=5)
"""How far known times may lie ahead of this machine's clock. Every later write of the user gets a later time."""

_REPLACED_ID_NAMESPACE = uuid.UUID("b0c1de57-3c0f-4f0e-8a55-2f6f1c7f9d84")
"""Namespace of the ids that replace those in use."""

_KNOWN_TIMES = ("created_at", "first_created_at", "updated_at", "expired_at", "last_accessed_at")


@dataclass(frozen=True, slots=True)
class ExistingNode:
    """A node that the user has before the import; `uuid` is None for records that have no such property."""

    element_id: str
    uuid: str | None


@dataclass(frozen=True, slots=True)
class FirstVersion:
    """What the first version of a memory says, since when: two memories of one user with the same are one memory.

    Later versions, ends and deletions leave it as it is, so that a copy is recognised whatever happened to it.
    """

    content_hash: str
    subject_id: str
    object_id: str
    created_at: datetime


@dataclass(frozen=True, slots=True)
class ExistingData:
    """What the user has before the import."""

    entities: Mapping[str, ExistingNode]
    """By name key, and by the key of an alias that is of one entity alone, other than the user's own."""

    records: Mapping[Identity, ExistingNode]
    memory_ids: Set[str]
    current_statements: Mapping[str, str]
    """Memory ids by `active_hash`."""

    taken_ids: Set[str]
    """Ids of the import that an entity, message, version or global memory has already, of whichever user.

    Of those, also the ids that would replace them and that are in use themselves.
    """

    self_entity: ExistingNode | None = None
    """The entity that stands for the user."""

    entities_by_id: Mapping[str, ExistingNode] = field(default_factory=dict)
    first_versions: Mapping[FirstVersion, str] = field(default_factory=dict)
    """Memory ids by the first version."""

    messages: Mapping[tuple[str, int], str] = field(default_factory=dict)
    """Message ids by session and position."""


@dataclass(slots=True)
class ImportPlan:
    """Which entries stay as they are, and which ids are replaced."""

    ids: dict[str, str] = field(default_factory=dict)
    known_nodes: dict[str, str] = field(default_factory=dict)
    """Element ids of the user's nodes by the key that the export gives them."""

    known_memory_ids: set[str] = field(default_factory=set)
    element_ids: dict[str, str] = field(default_factory=dict)
    """Element ids of all nodes of the import that exist, by key: those of `known_nodes` and those created since."""

    def count_known(self, export: UserExport) -> int:
        """Return how many entities, records and versions of an export the user has."""
        nodes = sum(not self.is_new_node(node) for node in (*export.entities, *export.records))
        return nodes + sum(not self.is_new_version(version) for version in export.memories)

    def is_new_node(self, node: ExportedEntity | ExportedRecord) -> bool:
        """Whether the import creates the node."""
        return node.key not in self.known_nodes

    def is_new_version(self, version: AnyVersion) -> bool:
        """Whether the import creates the version."""
        return version.properties.memory_id not in self.known_memory_ids


def replacement_id(owner: Owner, id: str) -> str:
    """Return the id that takes the place of one in use: the same each time for one user, as imports are repeated."""
    return str(uuid.uuid5(_REPLACED_ID_NAMESPACE, f"{owner.group_id} {id}"))


def plan_import(owner: Owner, export: UserExport, existing: ExistingData) -> ImportPlan:
    """Return what to write: ids stay when they are free; ids in use are replaced, or lead to the user's own entry."""
    others = _find_other_memories(export, existing)
    plan = ImportPlan(known_memory_ids=set(existing.memory_ids - others))
    for entity in export.entities:
        _plan_node(plan, owner, existing, entity, _find_known_entity(owner, existing, entity))
    for record in export.records:
        _plan_node(plan, owner, existing, record, existing.records.get(record.identity))
    for version in export.memories:
        memory_id = version.properties.memory_id
        if plan.is_new_version(version) and (known_id := _find_known_memory(plan, owner, existing, version)):
            plan.known_memory_ids.add(memory_id)
            plan.ids[memory_id] = known_id
    for version in export.memories:
        fact = version.properties
        if plan.is_new_version(version) and {fact.uuid, fact.memory_id} & (existing.taken_ids | others):
            plan.ids.setdefault(fact.memory_id, _choose_id(owner, existing, fact.memory_id))
            plan.ids[fact.uuid] = _choose_id(owner, existing, fact.uuid)
    plan.element_ids = dict(plan.known_nodes)
    return plan


def find_future_times(export: UserExport, now: datetime) -> Iterator[Problem]:
    """Yield the known times of an export that are in the future."""
    for index, version in enumerate(export.memories):
        for name in _KNOWN_TIMES:
            time: datetime | None = getattr(version.properties, name)
            if time is not None and time > now + CLOCK_TOLERANCE:
                yield ("memories", index, "properties", name), "is in the future"


def _find_known_entity(owner: Owner, existing: ExistingData, entity: ExportedEntity) -> ExistingNode | None:
    """Return the user's entity that an exported one is: by its id, by that of an earlier import, or by its name."""
    properties = entity.properties
    if properties.is_user and existing.self_entity is not None:
        return existing.self_entity
    by_id = existing.entities_by_id
    return (
        by_id.get(properties.uuid)
        or by_id.get(replacement_id(owner, properties.uuid))
        or existing.entities.get(properties.name_key)
    )


def _plan_node(
    plan: ImportPlan,
    owner: Owner,
    existing: ExistingData,
    node: ExportedEntity | ExportedRecord,
    known: ExistingNode | None,
) -> None:
    own_id: str | None = getattr(node.properties, "uuid", None)
    if known is not None:
        plan.known_nodes[node.key] = known.element_id
        if own_id and known.uuid and own_id != known.uuid:
            plan.ids[own_id] = known.uuid
    elif own_id and own_id in existing.taken_ids:
        plan.ids[own_id] = _choose_id(owner, existing, own_id)


def _find_other_memories(export: UserExport, existing: ExistingData) -> set[str]:
    """Return the memory ids of the export that are those of other memories of the user, as callers may choose ids.

    The first versions of such two say something else since another time.
    """
    first_versions = {memory_id: first for first, memory_id in existing.first_versions.items()}
    return {
        fact.memory_id
        for fact in (version.properties for version in export.memories)
        if fact.version == 1
        and (first := first_versions.get(fact.memory_id))
        and fact.content_hash != first.content_hash
        and fact.created_at != first.created_at
    }


def _find_known_memory(plan: ImportPlan, owner: Owner, existing: ExistingData, version: AnyVersion) -> str | None:
    """Return the id of the user's memory that a version is of, if it has another id than in the export.

    That is the memory which an earlier import made, the one that this memory was copied from, or the one whose
    statement is current already.
    """
    fact = version.properties
    replaced = replacement_id(owner, fact.memory_id)
    if replaced in existing.memory_ids:
        return replaced
    subject_id, object_id = (plan.ids.get(key, key) for key in (version.subject_id, version.object_id))
    if fact.version == 1:
        first = FirstVersion(fact.content_hash, subject_id, object_id, fact.created_at)
        if first in existing.first_versions:
            return existing.first_versions[first]
    if not fact.active_hash:
        return None
    predicate = fact.predicate if isinstance(fact, Fact) else fact.name
    return existing.current_statements.get(dedup_key(fact.content_hash, subject_id, predicate, object_id))


def _choose_id(owner: Owner, existing: ExistingData, id: str) -> str:
    """Return an id in place of one in use; a random one where that of an earlier import has moved to another user."""
    replaced = replacement_id(owner, id)
    return str(uuid.uuid4()) if replaced in existing.taken_ids else replaced


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
