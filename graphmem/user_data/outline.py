"""The outline of an export kept during an import, and finding problems in and between its entries. Pure."""

from __future__ import annotations

import sys
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from itertools import chain, islice
from typing import Any, TypeVar

from graphmem.memories.fact import Fact, fact_from_row
from graphmem.neo4j.schema import LinkType, RecordLabel
from graphmem.runtime.errors import InvalidInput
from graphmem.runtime.field_types import JsonPath, Vector, content_hash, name_key
from graphmem.runtime.progress import ProgressCallback, ignore_progress
from graphmem.tenants.owners import Owner
from graphmem.user_data.export_reader import ExportReader, ExportSource
from graphmem.user_data.export_schema import (
    EmbeddingInfo,
    ExportedEntity,
    ExportedLink,
    ExportedNode,
    ExportedRecord,
    ExportedVersion,
    ExportEntry,
    ExportHead,
    Section,
)

NodeT = TypeVar("NodeT", ExportedEntity, ExportedRecord)

MAX_REPORTED_PROBLEMS = 20
"""Most problems named in one refusal."""

VECTOR_PROPERTIES: Mapping[str, str] = {"Entity": "name_embedding", RecordLabel.EPISODIC: "content_embedding"}
"""The property with a node's vector, by label."""

REPORTED_BYTES = 1 << 20
"""Bytes read between two progress reports."""

Problem = tuple[JsonPath, str]
"""The path of an entry, and its problem as the end of a sentence."""


@dataclass(slots=True)
class ExportOutline:
    """The parts of an export kept during an import: ids and times, without texts, vectors and most links.

    `count` is the number of entries.
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
        """The places and properties of the messages, in full or archived."""
        return ((index, record.properties) for index, record in enumerate(self.records) if record.is_message)

    @property
    def self_entity(self) -> ExportedEntity | None:
        """The entity that stands for the user, if the export has it."""
        return next((entity for entity in self.entities if entity.properties["is_user"]), None)


def read_outline(
    owner: Owner, source: ExportSource, on_read: ProgressCallback = ignore_progress, *, in_parts: bool = False
) -> ExportOutline:
    """Read a whole export and return its outline; raise InvalidInput for problems in and between entries.

    For an import `in_parts`, all versions of a memory must follow one another. `on_read` receives the number of bytes
    read.
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
    """Raise InvalidInput naming the first of `problems`, unless there are none."""
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
"""Properties of a version that no import check reads."""

_TEXTS_OF_NODES = frozenset(
    {"name_embedding", "summary", "attributes", "content_embedding", "content", "redacted", "rich_content"}
)
"""Properties of entities and records that no import check reads and that may be long."""


def _outline_version(owner: Owner, version: ExportedVersion) -> Fact:
    """Return the parts of a version that import checks need, in about a kilobyte."""
    stored = {**_stored_version(owner, version), **_NO_TEXTS}
    subject_id, object_id = sys.intern(version.subject_id), sys.intern(version.object_id)
    fact = fact_from_row({"fact": stored, "subject_id": subject_id, "object_id": object_id})
    return replace(fact, entity_ids=tuple(map(sys.intern, fact.entity_ids)))


def _without_texts(node: NodeT) -> NodeT:
    kept = {name: value for name, value in node.properties.items() if name not in _TEXTS_OF_NODES}
    return node.model_copy(update={"properties": kept})


def _find_structural_problems(outline: ExportOutline) -> Iterator[Problem]:
    """Yield problems between entries: duplicate ids and missing entries."""
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
    """Yield versions out of sequence: numbers start at 1, and each is believed from the end of the one before."""
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
    """Yield messages that are not linked to exactly their session, or share a position with another one."""
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
    """Yield an entry's vector if it is missing, zero or of another length."""
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


CLOCK_TOLERANCE = timedelta(minutes=5)
"""Most time that known times may be ahead of this machine's clock. Later writes of the user get later times."""

_KNOWN_TIMES = ("created_at", "first_created_at", "updated_at", "expired_at", "last_accessed_at")


def find_future_times(outline: ExportOutline, now: datetime) -> Iterator[Problem]:
    """Yield the known times of an export that are in the future."""
    for index, fact in enumerate(outline.facts):
        for name in _KNOWN_TIMES:
            time: datetime | None = getattr(fact, name)
            if time is not None and time > now + CLOCK_TOLERANCE:
                yield ("memories", index, "properties", name), "is in the future"


def rename_self_entity(outline: ExportOutline, user_id: str) -> None:
    """Rename the user's own entity from the exported user's id to that of the importing user.

    The id is its name or an alias, by which every write finds the entity. Raises InvalidInput if another entity has the
    id as a name.
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

    `vector` is the new id's.
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


def to_fact(owner: Owner, version: ExportedVersion) -> Fact:
    """Return an exported version as a fact of an owner."""
    stored = _stored_version(owner, version)
    return fact_from_row({"fact": stored, "subject_id": version.subject_id, "object_id": version.object_id})


def _stored_version(owner: Owner, version: ExportedVersion) -> dict[str, Any]:
    """Return a version's properties as stored for an owner; the hash is computed from the text."""
    text = version.properties["fact"]
    return {**version.properties, "group_id": owner.group_id, "content_hash": content_hash(text)}
