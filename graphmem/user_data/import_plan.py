"""The plan of an export's import: entries that do not fit, entries the user has, and ids to replace. Pure."""

from __future__ import annotations

import uuid
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from datetime import datetime

from graphmem.memories.fact import Fact, dedup_key, fact_to_properties
from graphmem.memories.timeline import describe_rival, find_rival
from graphmem.neo4j.driver_values import Row, pack_vector
from graphmem.neo4j.schema import LinkType, RecordLabel
from graphmem.runtime.errors import Conflict
from graphmem.tenants.owners import Owner
from graphmem.text.folding import FOLDED_TEXT, join_folded_words
from graphmem.user_data.export_properties import FACT_MARKS, ID_PROPERTIES, Identity, replace_ids
from graphmem.user_data.export_schema import (
    ExportedEntity,
    ExportedLink,
    ExportedNode,
    ExportedVersion,
    ExportEntry,
)
from graphmem.user_data.outline import MAX_REPORTED_PROBLEMS, VECTOR_PROPERTIES, ExportOutline, Problem, to_fact


def find_misfits(outline: ExportOutline, existing: ExistingData) -> Iterator[Problem]:
    """Yield the entries that do not fit the user's data: lost references, and messages at the position of others."""
    entity_ids = {entity.key for entity in outline.entities}
    entity_ids |= {node.uuid for node in existing.entities.values() if node.uuid}
    message_ids = {message["uuid"] for _, message in outline.messages}
    message_ids |= {node.uuid for node in existing.records.values() if node.uuid}
    memory_ids = {fact.memory_id for fact in outline.facts} | existing.memory_ids
    yield from _find_lost_references(outline.facts, entity_ids, message_ids, memory_ids)
    places = {message_id: place for place, message_id in existing.messages.items()}
    for index, message in outline.messages:
        place, message_id = (message["session_id"], message["position"]), message["message_id"]
        has_moved = places.get(message_id, place) != place
        if has_moved or existing.messages.get(place, message_id) != message_id:
            yield ("records", index), "is a message in another place than in the sessions that the user has"


def _find_lost_references(
    facts: Sequence[Fact], entity_ids: Set[str], message_ids: Set[str], memory_ids: Set[str]
) -> Iterator[Problem]:
    """Yield references of memories to ids that neither the import nor the user has.

    Such an id may be another user's, and must not be stored.
    """
    for index, fact in enumerate(facts):
        ended_by = [fact.superseded_by] if fact.superseded_by else []
        for name, ids, known in (
            ("entity_ids", fact.entity_ids, entity_ids),
            ("episodes", fact.episodes, message_ids),
            ("supersedes", fact.supersedes, memory_ids),
            ("contests", fact.contests, memory_ids),
            ("associations", fact.associations, memory_ids),
            ("superseded_by", ended_by, memory_ids),
        ):
            if lost := [reference for reference in ids if reference not in known]:
                yield (
                    ("memories", index, "properties", name),
                    f"names {lost[0]}, which neither the import nor the user has",
                )


_REPLACED_ID_NAMESPACE = uuid.UUID("b0c1de57-3c0f-4f0e-8a55-2f6f1c7f9d84")
"""UUID namespace of the ids that replace ids in use."""


@dataclass(frozen=True, slots=True)
class ExistingNode:
    """An existing node of the user; `uuid` is None for records without that property."""

    element_id: str
    uuid: str | None


@dataclass(frozen=True, slots=True)
class FirstVersion:
    """The content and time of a memory's first version: equal ones of a user belong to the same memory.

    Later versions, ends and deletions do not change it, so that a copy is always recognised.
    """

    content_hash: str
    subject_id: str
    object_id: str
    created_at: datetime


@dataclass(frozen=True, slots=True)
class ExistingData:
    """The user's data before the import."""

    entities: Mapping[str, ExistingNode]
    """By name key, and by alias keys of exactly one entity, other than the user's own."""

    records: Mapping[Identity, ExistingNode]
    memory_ids: Set[str]
    current_statements: Mapping[str, str]
    """Memory ids by `active_hash`."""

    taken_ids: Set[str]
    """Ids of the import already used by an entity, message, version or global memory of any user.

    Includes their replacement ids that are in use.
    """

    self_entity: ExistingNode | None = None
    """The entity that stands for the user."""

    latest_versions: Mapping[str, int] = field(default_factory=dict)
    """The number of the latest version by memory id."""

    entities_by_id: Mapping[str, ExistingNode] = field(default_factory=dict)
    first_versions: Mapping[FirstVersion, str] = field(default_factory=dict)
    """Memory ids by the first version."""

    messages: Mapping[tuple[str, int], str] = field(default_factory=dict)
    """Message ids by session and position."""


@dataclass(slots=True)
class ImportPlan:
    """The entries that stay unchanged, and the ids that are replaced."""

    ids: dict[str, str] = field(default_factory=dict)
    known_nodes: dict[str, str] = field(default_factory=dict)
    """Element ids of the user's nodes by their key in the export."""

    known_memory_ids: set[str] = field(default_factory=set)
    element_ids: dict[str, str] = field(default_factory=dict)
    """Element ids of all existing nodes of the import, by key: those in `known_nodes` and those created since."""

    later_versions: set[int] = field(default_factory=set)
    """The places of versions later than the user's own of the same memory; they are not imported."""

    def count_known(self, outline: ExportOutline) -> int:
        """Return the number of entities, records and versions of an export that the user has."""
        nodes = sum(not self.is_new_node(node) for node in outline.nodes)
        return nodes + sum(not self.is_new_memory(fact.memory_id) for fact in outline.facts)

    def is_new(self, entry: ExportEntry) -> bool:
        """Whether the import creates an entry; existing links are found by their ends."""
        match entry:
            case ExportedVersion():
                return self.is_new_memory(entry.properties["memory_id"])
            case ExportedLink():
                return True
        return self.is_new_node(entry)

    def is_new_node(self, node: ExportedNode) -> bool:
        """Whether the import creates the node."""
        return node.key not in self.known_nodes

    def is_new_memory(self, memory_id: str) -> bool:
        """Whether the import creates the versions of a memory."""
        return memory_id not in self.known_memory_ids


def replacement_id(owner: Owner, id: str) -> str:
    """Return the replacement of an id in use: the same each time for a user, so that imports can be repeated."""
    return str(uuid.uuid5(_REPLACED_ID_NAMESPACE, f"{owner.group_id} {id}"))


def plan_import(owner: Owner, outline: ExportOutline, existing: ExistingData) -> ImportPlan:
    """Return the plan: free ids stay; ids in use are replaced, or mapped to the user's own entry."""
    others = _find_other_memories(outline, existing)
    plan = ImportPlan(known_memory_ids=set(existing.memory_ids - others))
    for entity in outline.entities:
        _plan_node(plan, owner, existing, entity, _find_known_entity(owner, existing, entity))
    for record in outline.records:
        _plan_node(plan, owner, existing, record, existing.records.get(record.identity))
    same_statement: set[str] = set()
    for fact in outline.facts:
        if not plan.is_new_memory(fact.memory_id):
            continue
        known_id = _find_known_memory(plan, owner, existing, fact)
        if known_id is None and (known_id := _find_same_statement(plan, existing, fact)):
            same_statement.add(fact.memory_id)
        if known_id:
            plan.known_memory_ids.add(fact.memory_id)
            plan.ids[fact.memory_id] = known_id
    for index, fact in enumerate(outline.facts):
        if plan.is_new_memory(fact.memory_id) or fact.memory_id in same_statement:
            continue
        if fact.version > existing.latest_versions[plan.ids.get(fact.memory_id, fact.memory_id)]:
            plan.later_versions.add(index)
    for fact in outline.facts:
        if plan.is_new_memory(fact.memory_id) and {fact.uuid, fact.memory_id} & (existing.taken_ids | others):
            plan.ids.setdefault(fact.memory_id, _choose_id(owner, existing, fact.memory_id))
            plan.ids[fact.uuid] = _choose_id(owner, existing, fact.uuid)
    plan.element_ids = dict(plan.known_nodes)
    return plan


def _find_known_entity(owner: Owner, existing: ExistingData, entity: ExportedEntity) -> ExistingNode | None:
    """Return the user's entity for an exported one, by its id, its replacement id, or its name."""
    properties = entity.properties
    if properties["is_user"] and existing.self_entity is not None:
        return existing.self_entity
    by_id = existing.entities_by_id
    return (
        by_id.get(entity.key)
        or by_id.get(replacement_id(owner, entity.key))
        or existing.entities.get(properties["name_key"])
    )


def _plan_node(
    plan: ImportPlan,
    owner: Owner,
    existing: ExistingData,
    node: ExportedNode,
    known: ExistingNode | None,
) -> None:
    own_id = node.uuid
    if known is not None:
        plan.known_nodes[node.key] = known.element_id
        if own_id and known.uuid and own_id != known.uuid:
            plan.ids[own_id] = known.uuid
    elif own_id and own_id in existing.taken_ids:
        plan.ids[own_id] = _choose_id(owner, existing, own_id)


def _find_other_memories(outline: ExportOutline, existing: ExistingData) -> set[str]:
    """Return the export's memory ids that belong to other memories of the user, as callers may choose ids.

    The first versions of such memories differ in content and time.
    """
    first_versions = {memory_id: first for first, memory_id in existing.first_versions.items()}
    return {
        fact.memory_id
        for fact in outline.facts
        if fact.version == 1
        and (first := first_versions.get(fact.memory_id))
        and fact.content_hash != first.content_hash
        and fact.created_at != first.created_at
    }


def _find_known_memory(plan: ImportPlan, owner: Owner, existing: ExistingData, fact: Fact) -> str | None:
    """Return the id of the user's memory for a version, if it differs from the id in the export.

    It is the memory made by an earlier import, or the one that this memory was copied from.
    """
    replaced = replacement_id(owner, fact.memory_id)
    if replaced in existing.memory_ids:
        return replaced
    if fact.version > 1:
        return None
    return existing.first_versions.get(FirstVersion(fact.content_hash, *_find_ends(plan, fact), fact.created_at))


def _find_same_statement(plan: ImportPlan, existing: ExistingData, fact: Fact) -> str | None:
    """Return the id of the user's current memory with the same statement as a current version."""
    if not fact.active_hash:
        return None
    subject_id, object_id = _find_ends(plan, fact)
    return existing.current_statements.get(dedup_key(fact.content_hash, subject_id, fact.predicate, object_id))


def _find_ends(plan: ImportPlan, fact: Fact) -> tuple[str, str]:
    """Return the ids of a version's subject and object after replacement; the subject twice without an object."""
    subject_id, object_id = (plan.ids.get(key, key) for key in (fact.subject_id, fact.object_id or fact.subject_id))
    return subject_id, object_id


def _choose_id(owner: Owner, existing: ExistingData, id: str) -> str:
    """Return a replacement id; a random one if an earlier import's has moved to another user."""
    replaced = replacement_id(owner, id)
    return str(uuid.uuid4()) if replaced in existing.taken_ids else replaced


def with_ids(fact: Fact, ids: Mapping[str, str]) -> Fact:
    """Return a fact with ids replaced according to `ids`."""
    if not ids:
        return fact
    replaced = {name: replace_ids(getattr(fact, name), ids) for name in ID_PROPERTIES["Fact"]}
    subject_id = ids.get(fact.subject_id, fact.subject_id)
    object_id = replace_ids(fact.object_id, ids)
    return replace(fact, **replaced, subject_id=subject_id, object_id=object_id if object_id != subject_id else None)


def node_row(owner: Owner, node: ExportedNode, ids: Mapping[str, str]) -> Row:
    """Return the row that creates a node."""
    properties = node.to_graph(ids) | {"group_id": owner.group_id}
    if vector_property := VECTOR_PROPERTIES.get(node.label):
        properties["group_key"] = owner.group_key
        properties[vector_property] = pack_vector(properties.get(vector_property))
    if node.label == RecordLabel.EPISODIC:
        properties[FOLDED_TEXT] = join_folded_words(properties["content"], properties.get("speaker"))
    return {"key": node.key, "labels": list(node.labels), "properties": properties}


def version_row(owner: Owner, version: ExportedVersion, ids: Mapping[str, str], now: datetime) -> Row:
    """Return the row that creates a version, marked as current if it is at `now`."""
    fact = with_ids(to_fact(owner, version), ids).with_active_hash(now)
    marks = {name: value for name, value in version.properties.items() if name in FACT_MARKS}
    return {
        "subject_id": fact.subject_id,
        "object_id": fact.object_id or fact.subject_id,
        "properties": {**marks, **fact_to_properties(fact), "fact_embedding": pack_vector(version.vector)},
    }


def mentions_others(version: Row) -> bool:
    """Return whether a version mentions entities other than its subject and object."""
    return bool({*(version["properties"]["entity_ids"] or ())} - {version["subject_id"], version["object_id"]})


_OWNED_LINKS = frozenset({LinkType.HAS_ARCHIVE, LinkType.HAS_EPISODE, LinkType.MENTIONS, LinkType.NEXT_EPISODE})
"""Types of relationships with the owner's `group_id`."""


def link_row(owner: Owner, link: ExportedLink, node_ids: Mapping[str, str]) -> Row:
    """Return the row that creates a relationship between nodes; `node_ids` has their element ids by key."""
    properties = dict(link.properties)
    if link.type in _OWNED_LINKS:
        properties["group_id"] = owner.group_id
    return {
        "type": link.type.value,
        "start": node_ids[link.start],
        "end": node_ids[link.end],
        "properties": properties,
    }


@dataclass(slots=True)
class NewStatements:
    """The parts of new versions to compare, by place.

    `hashes` are those of current versions; equal ones mean equal statements.
    """

    single_valued: dict[int, Fact] = field(default_factory=dict)
    hashes: dict[int, str] = field(default_factory=dict)

    @property
    def slots(self) -> list[tuple[str, str]]:
        """The subjects and predicates of the single-valued versions."""
        return [(fact.subject_id, fact.predicate) for fact in self.single_valued.values()]


def find_new_statements(outline: ExportOutline, plan: ImportPlan, now: datetime) -> NewStatements:
    """Return the parts to compare of the versions that an import creates."""
    new = NewStatements()
    for index, outlined in enumerate(outline.facts):
        if not plan.is_new_memory(outlined.memory_id):
            continue
        fact = with_ids(outlined, plan.ids).with_active_hash(now)
        if fact.active_hash:
            new.hashes[index] = fact.active_hash
        if fact.single_valued:
            new.single_valued[index] = fact
    return new


def refuse_contradictions(new: NewStatements, stored: Mapping[tuple[str, str], Sequence[Fact]]) -> None:
    """Raise Conflict for new facts that cannot be valid together with others.

    `stored` are the user's believed single-valued facts by subject and predicate.
    """
    current: dict[tuple[str, str], list[Fact]] = defaultdict(list)
    for fact in new.single_valued.values():
        if fact.active_hash:
            current[fact.subject_id, fact.predicate].append(fact)
    errors: dict[int, str] = {}
    for index, fact in new.single_valued.items():
        pair = (fact.subject_id, fact.predicate)
        known = stored.get(pair, ())
        if rival := find_rival(fact, [*known, *current[pair]] if fact.active_hash else known):
            errors[index] = f"would be {describe_rival(fact, rival)}"
    statements = Counter(new.hashes.values())
    for index, active_hash in new.hashes.items():
        if statements[active_hash] > 1:
            errors.setdefault(index, "states the same as another memory of the import")
    if errors:
        raise Conflict(
            f"{len(errors)} statements contradict what the user has, or one another: see the list of errors, or "
            "import into another user.",
            errors=[
                {"loc": ["memories", index], "msg": errors[index]} for index in sorted(errors)[:MAX_REPORTED_PROBLEMS]
            ],
        )
