"""The plan of an import: its source, its checks, and the entries and ids that the user already has. Pure."""

from __future__ import annotations

import sys
import uuid
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from itertools import chain, islice
from typing import Any, TypeVar

from graphmem.memories.fact import Fact, dedup_key, fact_from_row, fact_to_properties
from graphmem.memories.ledger import describe_rival, find_rival
from graphmem.neo4j.driver_values import Row
from graphmem.neo4j.schema import LinkType, RecordLabel
from graphmem.runtime.errors import Conflict, InvalidInput
from graphmem.runtime.field_types import JsonPath, Vector, content_hash, name_key
from graphmem.runtime.progress import ProgressCallback, ignore_progress
from graphmem.runtime.times import MICROSECOND
from graphmem.tenants.owners import Owner
from graphmem.tenants.trust import Effect, SourceKind, StatedKind, TrustOrder
from graphmem.text.folding import FOLDED_TEXT, join_folded_words
from graphmem.user_data.export_reader import ExportReader, ExportSource
from graphmem.user_data.export_schema import (
    FACT_MARKS,
    ID_PROPERTIES,
    EmbeddingInfo,
    ExportedEntity,
    ExportedLink,
    ExportedNode,
    ExportedRecord,
    ExportedVersion,
    ExportEntry,
    ExportHead,
    Identity,
    Section,
    replace_ids,
)

NodeT = TypeVar("NodeT", ExportedEntity, ExportedRecord)

MAX_REPORTED_PROBLEMS = 20
"""Problems that one refusal names at most."""

VECTOR_PROPERTIES: Mapping[str, str] = {"Entity": "name_embedding", RecordLabel.EPISODIC: "content_embedding"}
"""By label, the property of a node that holds its vector."""

REPORTED_BYTES = 1 << 20
"""Bytes between two reports of how much of a file has been read."""

Problem = tuple[JsonPath, str]
"""The place of an entry, and what is wrong with it as the end of a sentence."""


@dataclass(slots=True)
class ExportOutline:
    """What is kept of an export while it is imported: ids and times, without texts, vectors and most links.

    `count` is the number of its entries.
    """

    head: ExportHead
    entities: list[ExportedEntity] = field(default_factory=list)
    facts: list[Fact] = field(default_factory=list)
    records: list[ExportedRecord] = field(default_factory=list)
    session_links: list[ExportedLink] = field(default_factory=list)
    count: int = 0

    @property
    def nodes(self) -> list[ExportedNode]:
        """The entities and the records."""
        return [*self.entities, *self.records]

    @property
    def messages(self) -> Iterator[tuple[int, Mapping[str, Any]]]:
        """The places and the properties of the messages, in full or archived."""
        return ((index, record.properties) for index, record in enumerate(self.records) if record.is_message)

    @property
    def self_entity(self) -> ExportedEntity | None:
        """The entity that stands for the user, if the export has it."""
        return next((entity for entity in self.entities if entity.properties["is_user"]), None)


def read_outline(
    owner: Owner, source: ExportSource, on_read: ProgressCallback = ignore_progress, *, in_parts: bool = False
) -> ExportOutline:
    """Read a whole export and return its outline; raise InvalidInput for what is wrong in and between entries.

    If it will be written `in_parts`, all versions of a memory must follow one another. `on_read` gets the bytes read.
    """
    outline = ExportOutline(source.head)
    nodes: set[str] = set()
    finished_memories: set[str] = set()
    problems: list[Problem] = []
    memory_id, reported = None, 0
    for index, entry in source.entries():
        outline.count += 1
        problems += _find_vector_problem(index, entry, source.head.embedding)
        match entry:
            case ExportedVersion():
                fact = _outline_version(owner, entry)
                if fact.memory_id != memory_id:
                    if in_parts and fact.memory_id in finished_memories:
                        problems.append((("memories", index), "does not follow the other versions of its memory"))
                    finished_memories.add(fact.memory_id)
                    memory_id = fact.memory_id
                outline.facts.append(fact)
            case ExportedLink():
                if not {entry.start, entry.end} <= nodes:
                    problems.append((("links", index), "names a node that is not in the import"))
                elif entry.type is LinkType.HAS_EPISODE:
                    outline.session_links.append(entry)
            case ExportedEntity():
                nodes.add(entry.key)
                outline.entities.append(_without_texts(entry))
            case _:
                nodes.add(entry.key)
                outline.records.append(_without_texts(entry))
        if len(problems) >= MAX_REPORTED_PROBLEMS:
            break
        if isinstance(source, ExportReader) and source.bytes_read - reported >= REPORTED_BYTES:
            reported = source.bytes_read
            on_read(reported, source.size)
    refuse_problems(
        "The entries of the import do not fit together.", chain(problems, _find_structural_problems(outline))
    )
    if isinstance(source, ExportReader):
        on_read(source.size, source.size)
    return outline


def refuse_problems(detail: str, problems: Iterator[Problem]) -> None:
    """Raise InvalidInput that names the first of `problems`, unless there are none."""
    errors = [{"loc": list(path), "msg": message} for path, message in islice(problems, MAX_REPORTED_PROBLEMS)]
    if errors:
        raise InvalidInput(detail, errors=errors)


_NO_TEXTS: dict[str, Any] = {
    "fact": "",
    "search_text": None,
    "source_quote": None,
    "metadata": "{}",
    "content_data": None,
}
"""Properties of a version that no check of an import reads."""

_TEXTS_OF_NODES = frozenset(
    {"name_embedding", "summary", "attributes", "content_embedding", "content", "redacted", "rich_content"}
)
"""Properties of entities and records that no check of an import reads and that may be long."""


def _outline_version(owner: Owner, version: ExportedVersion) -> Fact:
    """Return what the checks of an import need of a version, in about a kilobyte."""
    stored = {**_stored_version(owner, version), **_NO_TEXTS}
    subject_id, object_id = sys.intern(version.subject_id), sys.intern(version.object_id)
    fact = fact_from_row({"fact": stored, "subject_id": subject_id, "object_id": object_id})
    return replace(fact, entity_ids=tuple(map(sys.intern, fact.entity_ids)))


def _without_texts(node: NodeT) -> NodeT:
    kept = {name: value for name, value in node.properties.items() if name not in _TEXTS_OF_NODES}
    return node.model_copy(update={"properties": kept})


def _find_structural_problems(outline: ExportOutline) -> Iterator[Problem]:
    """Yield what is wrong between entries: ids used twice, what is missing."""
    facts = outline.facts
    yield from _find_duplicates("entities", [entity.key for entity in outline.entities])
    yield from _find_duplicates("entities", [entity.properties["name_key"] for entity in outline.entities])
    yield from _find_duplicates("records", [record.key for record in outline.records])
    yield from _find_duplicates("records", [record.identity for record in outline.records])
    yield from _find_duplicates("memories", [fact.uuid for fact in facts])
    yield from _find_duplicates("memories", [(fact.memory_id, fact.version) for fact in facts])
    yield from _find_version_problems(facts)
    yield from _find_message_problems(outline)
    entities = {entity.key for entity in outline.entities}
    for index, fact in enumerate(facts):
        if not entities.issuperset(fact.end_ids):
            yield ("memories", index), "is about an entity that is not in the import"


def _find_duplicates(section: Section, keys: Sequence[object]) -> Iterator[Problem]:
    counts = Counter(keys)
    if len(counts) < len(keys):
        for index, key in enumerate(keys):
            if counts[key] > 1:
                yield (section, index), "has the same id as another entry"


def _find_version_problems(facts: Sequence[Fact]) -> Iterator[Problem]:
    """Yield the versions that do not follow one another: numbered from 1, each believed when the one before it ends."""
    by_memory: dict[str, list[tuple[int, Fact]]] = defaultdict(list)
    for index, fact in enumerate(facts):
        by_memory[fact.memory_id].append((index, fact))
    for numbered in by_memory.values():
        numbered.sort(key=lambda entry: entry[1].version)
        earlier: Fact | None = None
        for index, fact in numbered:
            if fact.version != (earlier.version + 1 if earlier else 1):
                yield ("memories", index, "properties", "version"), "is not the one after an earlier version"
            elif earlier and earlier.expired_at != fact.created_at:
                yield ("memories", index, "properties", "created_at"), "is not when the earlier version ends"
            if fact.expired_at is not None and fact.expired_at <= fact.created_at:
                yield ("memories", index, "properties", "expired_at"), "is not after created_at"
            earlier = fact
        index, last = numbered[-1]
        if last.expired_at is not None and last.end_status is None:
            yield ("memories", index, "properties", "end_status"), "is needed where no later version follows"


def _find_message_problems(outline: ExportOutline) -> Iterator[Problem]:
    """Yield the messages that are not in exactly the session that they name, or share their position with another."""
    sessions: dict[str, set[str]] = defaultdict(set)
    for link in outline.session_links:
        sessions[link.end].add(link.start)
    names = {record.key: record.properties["session_id"] for record in outline.records if record.label == "Session"}
    positions: set[tuple[str, int]] = set()
    for index, message in outline.messages:
        if [names.get(key) for key in sessions[message["uuid"]]] != [message["session_id"]]:
            yield ("records", index), "is a message without a link HAS_EPISODE from its session alone"
        place = (message["session_id"], message["position"])
        if place in positions:
            yield ("records", index, "properties", "position"), "is that of another message of the session"
        positions.add(place)


def _find_vector_problem(index: int, entry: ExportEntry, embedding: EmbeddingInfo) -> Iterator[Problem]:
    """Yield the vector of an entry that is missing, of another length, or zero."""
    path: JsonPath
    match entry:
        case ExportedVersion():
            path, vector = ("memories", index, "vector"), entry.vector
        case ExportedLink():
            return
        case _:
            name = VECTOR_PROPERTIES.get(entry.label, "")
            path, vector = (entry.section, index, "properties", name), entry.properties.get(name)
    is_needed = isinstance(entry, ExportedVersion)
    if (vector is None and is_needed) or (
        vector is not None and not (len(vector) == embedding.dimension and any(vector))
    ):
        yield path, f"must be a vector of {embedding.dimension} numbers that are not all zero"


def find_misfits(outline: ExportOutline, existing: ExistingData) -> Iterator[Problem]:
    """Yield the entries that do not fit what the user has: lost references, and messages in the place of others."""
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
    """Yield the references of memories to none of the ids, which are those of the import and of the user.

    An id of neither may be another user's, and must not be stored.
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


CLOCK_TOLERANCE = timedelta(minutes=5)
"""How far known times may lie ahead of this machine's clock. Every later write of the user gets a later time."""

_KNOWN_TIMES = ("created_at", "first_created_at", "updated_at", "expired_at", "last_accessed_at")


def find_future_times(outline: ExportOutline, now: datetime) -> Iterator[Problem]:
    """Yield the known times of an export that are in the future."""
    for index, fact in enumerate(outline.facts):
        for name in _KNOWN_TIMES:
            time: datetime | None = getattr(fact, name)
            if time is not None and time > now + CLOCK_TOLERANCE:
                yield ("memories", index, "properties", name), "is in the future"


def rename_self_entity(outline: ExportOutline, user_id: str) -> None:
    """Give the user's own entity the id of the user that the export is imported for, instead of the exported user's.

    It is a name or an alias, by which every write finds the entity. Raises InvalidInput when another entity has the id
    as its name.
    """
    for index, entity in enumerate(outline.entities):
        keys = {entity.properties["name_key"], *entity.properties["alias_keys"]}
        if entity.properties["is_user"]:
            outline.entities[index] = with_user_id(entity, outline.head.user_id, user_id)
        elif name_key(user_id) in keys:
            message = "has the id of the user as a name, and is not the user: rename it, or import as another user"
            raise InvalidInput(
                "An entity of the import would be taken for the user.",
                errors=[{"loc": ["entities", index, "properties", "name"], "msg": message}],
            )


def with_user_id(entity: ExportedEntity, old_id: str, new_id: str, vector: Vector | None = None) -> ExportedEntity:
    """Return the user's own entity of an export for another user: see `rename_self_entity`.

    `vector` is that of the new id.
    """
    properties = entity.properties
    aliases = [alias for alias in properties["aliases"] if name_key(alias) != name_key(old_id)]
    changes: dict[str, object] = {}
    if properties["name_key"] == name_key(old_id):
        changes |= {"name": new_id, "name_key": name_key(new_id), "name_embedding": vector}
    elif properties["name_key"] != name_key(new_id):
        aliases.append(new_id)
    aliases = [alias for alias in aliases if name_key(alias) != changes.get("name_key", properties["name_key"])]
    changes |= {
        "aliases": aliases,
        "alias_keys": [name_key(alias) for alias in aliases],
        "alias_text": " ".join(aliases),
    }
    return entity.model_copy(update={"properties": {**properties, **changes}})


_REPLACED_ID_NAMESPACE = uuid.UUID("b0c1de57-3c0f-4f0e-8a55-2f6f1c7f9d84")
"""Namespace of the ids that replace those in use."""


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
    """The user's data before the import."""

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

    latest_versions: Mapping[str, int] = field(default_factory=dict)
    """The number of the latest version by memory id."""

    entities_by_id: Mapping[str, ExistingNode] = field(default_factory=dict)
    first_versions: Mapping[FirstVersion, str] = field(default_factory=dict)
    """Memory ids by the first version."""

    messages: Mapping[tuple[str, int], str] = field(default_factory=dict)
    """Message ids by session and position."""


@dataclass(slots=True)
class ImportPlan:
    """The entries that stay as they are, and the ids that are replaced."""

    ids: dict[str, str] = field(default_factory=dict)
    known_nodes: dict[str, str] = field(default_factory=dict)
    """Element ids of the user's nodes by the key that the export gives them."""

    known_memory_ids: set[str] = field(default_factory=set)
    element_ids: dict[str, str] = field(default_factory=dict)
    """Element ids of all nodes of the import that exist, by key: those of `known_nodes` and those created since."""

    later_versions: set[int] = field(default_factory=set)
    """The places of versions that follow those which the user has of their memories; they are not imported."""

    def count_known(self, outline: ExportOutline) -> int:
        """Return how many entities, records and versions of an export the user has."""
        nodes = sum(not self.is_new_node(node) for node in outline.nodes)
        return nodes + sum(not self.is_new_memory(fact.memory_id) for fact in outline.facts)

    def is_new(self, entry: ExportEntry) -> bool:
        """Whether the import creates an entry; a link that exists is found by its ends."""
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
    """Return the id that takes the place of one in use: the same each time for one user, as imports are repeated."""
    return str(uuid.uuid5(_REPLACED_ID_NAMESPACE, f"{owner.group_id} {id}"))


def plan_import(owner: Owner, outline: ExportOutline, existing: ExistingData) -> ImportPlan:
    """Return what to write: ids stay when they are free; ids in use are replaced, or lead to the user's own entry."""
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
    """Return the user's entity that an exported one is: by its id, by that of an earlier import, or by its name."""
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
    """Return the memory ids of the export that are those of other memories of the user, as callers may choose ids.

    The first versions of such two say something else since another time.
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
    """Return the id of the user's memory that a version is of, if it has another id than in the export.

    That is the memory which an earlier import made, or the one that this memory was copied from.
    """
    replaced = replacement_id(owner, fact.memory_id)
    if replaced in existing.memory_ids:
        return replaced
    if fact.version > 1:
        return None
    return existing.first_versions.get(FirstVersion(fact.content_hash, *_find_ends(plan, fact), fact.created_at))


def _find_same_statement(plan: ImportPlan, existing: ExistingData, fact: Fact) -> str | None:
    """Return the id of the user's memory that states now what a version states now."""
    if not fact.active_hash:
        return None
    subject_id, object_id = _find_ends(plan, fact)
    return existing.current_statements.get(dedup_key(fact.content_hash, subject_id, fact.predicate, object_id))


def _find_ends(plan: ImportPlan, fact: Fact) -> tuple[str, str]:
    """Return the ids that the subject and the object of a version get; the subject twice where it has no object."""
    subject_id, object_id = (plan.ids.get(key, key) for key in (fact.subject_id, fact.object_id or fact.subject_id))
    return subject_id, object_id


def _choose_id(owner: Owner, existing: ExistingData, id: str) -> str:
    """Return an id in place of one in use; a random one where that of an earlier import has moved to another user."""
    replaced = replacement_id(owner, id)
    return str(uuid.uuid4()) if replaced in existing.taken_ids else replaced


def to_fact(owner: Owner, version: ExportedVersion) -> Fact:
    """Return a version of an export as a fact of an owner."""
    stored = _stored_version(owner, version)
    return fact_from_row({"fact": stored, "subject_id": version.subject_id, "object_id": version.object_id})


def _stored_version(owner: Owner, version: ExportedVersion) -> dict[str, Any]:
    """Return the properties of a version as an owner has them; its hash follows from the text, whatever it says."""
    text = version.properties["fact"]
    return {**version.properties, "group_id": owner.group_id, "content_hash": content_hash(text)}


def with_ids(fact: Fact, ids: Mapping[str, str]) -> Fact:
    """Return a fact with the ids that `ids` maps replaced."""
    if not ids:
        return fact
    replaced = {name: replace_ids(getattr(fact, name), ids) for name in ID_PROPERTIES["Fact"]}
    subject_id = ids.get(fact.subject_id, fact.subject_id)
    object_id = replace_ids(fact.object_id, ids)
    return replace(fact, **replaced, subject_id=subject_id, object_id=object_id if object_id != subject_id else None)


def node_row(owner: Owner, node: ExportedNode, ids: Mapping[str, str]) -> Row:
    """Return the row that creates a node."""
    properties = node.to_graph(ids) | {"group_id": owner.group_id}
    if node.label in VECTOR_PROPERTIES:
        properties["group_key"] = owner.group_key
    if node.label == RecordLabel.EPISODIC:
        properties[FOLDED_TEXT] = join_folded_words(properties["content"], properties.get("speaker"))
    return {"key": node.key, "labels": list(node.labels), "properties": properties}


def version_row(owner: Owner, version: ExportedVersion, ids: Mapping[str, str], now: datetime) -> Row:
    """Return the row that creates a version, which is current at `now` or not."""
    fact = with_ids(to_fact(owner, version), ids).with_active_hash(now)
    marks = {name: value for name, value in version.properties.items() if name in FACT_MARKS}
    return {
        "subject_id": fact.subject_id,
        "object_id": fact.object_id or fact.subject_id,
        "properties": {**marks, **fact_to_properties(fact), "fact_embedding": version.vector},
    }


def mentions_others(version: Row) -> bool:
    """Return whether a version mentions entities other than its subject and object."""
    return bool({*(version["properties"]["entity_ids"] or ())} - {version["subject_id"], version["object_id"]})


_OWNED_LINKS = frozenset({LinkType.HAS_ARCHIVE, LinkType.HAS_EPISODE, LinkType.MENTIONS, LinkType.NEXT_EPISODE})
"""Types of relationships that carry the owner's `group_id`."""


def link_row(owner: Owner, link: ExportedLink, node_ids: Mapping[str, str]) -> Row:
    """Return the row that creates a relationship between nodes, whose ids are given by their keys."""
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
    """What is compared of the versions that an import creates, by their places.

    `hashes` are those of the current ones, by which two that state the same are recognised.
    """

    single_valued: dict[int, Fact] = field(default_factory=dict)
    hashes: dict[int, str] = field(default_factory=dict)

    @property
    def slots(self) -> list[tuple[str, str]]:
        """The subjects and predicates of the single-valued ones."""
        return [(fact.subject_id, fact.predicate) for fact in self.single_valued.values()]


def find_new_statements(outline: ExportOutline, plan: ImportPlan, now: datetime) -> NewStatements:
    """Return what is compared of the versions that an import creates."""
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

    `stored` are the believed facts of the user by subject and predicate, of those that are single-valued.
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


@dataclass(frozen=True, slots=True)
class Importer:
    """Who imports an export, and when: the key and what it speaks as, in a space also the member.

    `order` is that of the tenant; `members` are the name keys of the other members of the space.
    """

    key: str | None
    kind: StatedKind
    order: TrustOrder
    now: datetime
    member: str | None = None
    members: Set[str] = frozenset()

    def own_kind(self, stated: SourceKind) -> SourceKind:
        """Return the source that a statement gets: an import where the caller may not claim the stated one."""
        if stated != "operator" and self.order.permits(Effect.QUOTE_AS, self.kind, stated):
            return stated
        return "import" if self.order.permits(Effect.QUOTE_AS, self.kind, "import") else self.kind


KNOWN_TIMES = ("created_at", "first_created_at", "updated_at", "expired_at")
"""The properties of entries that say when something became known, or was known no longer."""


@dataclass(slots=True)
class ClaimedExport:
    """The entries of an export with the importer as who wrote them; what they say stays.

    What a member imports into a space is known since the import: its known times become the last microseconds before
    that, in the order in which they were.
    """

    source: ExportSource
    importer: Importer
    _known_at: dict[datetime, datetime] = field(init=False)

    def __post_init__(self) -> None:
        if self.importer.member is None:
            self._known_at = {}
            return
        times = {time for _, entry in self.source.entries() for time in _known_times(entry).values()}
        first = self.importer.now - len(times) * MICROSECOND
        self._known_at = {time: first + place * MICROSECOND for place, time in enumerate(sorted(times))}

    @property
    def head(self) -> ExportHead:
        """The header."""
        return self.source.head

    def entries(self) -> Iterator[tuple[int, ExportEntry]]:
        """Yield every entry with its place in its section."""
        for place, entry in self.source.entries():
            yield place, self._claim(entry)

    def _claim(self, entry: ExportEntry) -> ExportEntry:
        match entry:
            case ExportedVersion():
                changes = self._claim_version(entry.properties)
            case ExportedEntity():
                changes = self._claim_entity(entry.properties)
            case ExportedRecord():
                changes = self._claim_record(entry)
            case _:
                return entry
        known = {name: self._known_at.get(time, time) for name, time in _known_times(entry).items()}
        return entry.model_copy(update={"properties": {**entry.properties, **known, **changes}})

    def _claim_version(self, stored: Mapping[str, Any]) -> dict[str, Any]:
        importer = self.importer
        kind, trusted_as = importer.own_kind(stored["source_kind"]), stored.get("trusted_as")
        changes: dict[str, Any] = {"source_kind": kind, "actor": importer.key}
        if trusted_as is not None:
            changes["trusted_as"] = importer.own_kind(trusted_as)
        if stored.get("ended_actor") is not None:
            changes["ended_actor"] = importer.key
        return changes if importer.member is None else changes | {"speaker": importer.member}

    def _claim_entity(self, stored: Mapping[str, Any]) -> dict[str, Any]:
        """Leave to other members of a space their names, and who they are."""
        members = self.importer.members
        is_member = name_key(stored["name"]) in members
        kept = [alias for alias in stored["aliases"] if not is_member and name_key(alias) not in members]
        own = {"summary": ""} if is_member else {}
        return own | {
            "aliases": kept,
            "alias_keys": [name_key(alias) for alias in kept],
            "alias_text": " ".join(kept),
        }

    def _claim_record(self, record: ExportedRecord) -> dict[str, Any]:
        member = self.importer.member
        if member is None or record.label not in (RecordLabel.EPISODIC, RecordLabel.SESSION):
            return {}
        named = {"speaker": member} if record.properties.get("role") == "user" else {}
        return {"author": member, **named}


def _known_times(entry: ExportEntry) -> dict[str, datetime]:
    if isinstance(entry, ExportedLink):
        return {}
    found = {name: entry.properties.get(name) for name in KNOWN_TIMES}
    return {name: time for name, time in found.items() if isinstance(time, datetime)}
