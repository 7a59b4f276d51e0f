"""The entries of an export as what an import writes: facts, and rows of queries. Pure."""

from __future__ import annotations

import sys
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any, NamedTuple

from graphmem.memories.fact import FACT_FIELDS, Fact, fact_from_row, fact_to_properties
from graphmem.memories.ledger import describe_rival, find_rival
from graphmem.neo4j.driver_values import Row
from graphmem.neo4j.schema import LinkType
from graphmem.runtime.errors import Conflict
from graphmem.tenants.owners import Owner
from graphmem.user_data.export_document import MAX_REPORTED_PROBLEMS, AnyVersion, UserExport, VersionOutline
from graphmem.user_data.export_entries import (
    ExportedEntity,
    ExportedEpisode,
    ExportedLink,
    ExportedRecord,
    ExportedVersion,
    FactProperties,
    replace_ids,
)
from graphmem.user_data.import_plan import ImportPlan

ExportedNode = ExportedEntity | ExportedRecord

_OWNED_LINKS = frozenset({LinkType.HAS_ARCHIVE, LinkType.HAS_EPISODE, LinkType.MENTIONS, LinkType.NEXT_EPISODE})
"""Types of relationships that carry the owner's `group_id`."""

_MARKS = tuple(FactProperties.model_fields.keys() - {field.property_name for field in FACT_FIELDS})
"""Properties of maintenance and consolidation, for which a fact has no fields."""

_NO_TEXTS: dict[str, Any] = {
    "fact": "",
    "search_text": None,
    "source_quote": None,
    "metadata": "{}",
    "content_data": None,
}
"""Properties of a version that no check of an import reads."""


def outline_version(owner: Owner, version: ExportedVersion) -> VersionOutline:
    """Return what the checks of an import need of a version, in about a kilobyte."""
    stored = {**vars(version.properties), **_NO_TEXTS, "group_id": owner.group_id}
    subject_id, object_id = sys.intern(version.subject_id), sys.intern(version.object_id)
    fact = fact_from_row({"fact": stored, "subject_id": subject_id, "object_id": object_id})
    return VersionOutline(subject_id, object_id, replace(fact, entity_ids=tuple(map(sys.intern, fact.entity_ids))))


def imported_fact(owner: Owner, version: AnyVersion, ids: Mapping[str, str]) -> Fact:
    """Return a version of an export as a fact of an owner, with the ids that `ids` maps replaced."""
    subject_id = ids.get(version.subject_id, version.subject_id)
    object_id = ids.get(version.object_id, version.object_id)
    if isinstance(version, VersionOutline):
        fact = version.properties
        if not ids:
            return fact
        replaced = {name: replace_ids(getattr(fact, name), ids) for name in FactProperties.id_fields}
        return replace(
            fact, **replaced, subject_id=subject_id, object_id=object_id if object_id != subject_id else None
        )
    properties = version.properties.with_ids(ids) if ids else version.properties
    stored = {**vars(properties), "group_id": owner.group_id}
    return fact_from_row({"fact": stored, "subject_id": subject_id, "object_id": object_id})


def node_row(owner: Owner, node: ExportedNode, ids: Mapping[str, str]) -> Row:
    """Return the row that creates a node."""
    properties = node.properties.with_ids(ids).to_graph() | {"group_id": owner.group_id}
    if isinstance(node, ExportedEntity | ExportedEpisode):
        properties["group_key"] = owner.group_key
    return {"key": node.key, "labels": list(node.labels), "properties": properties}


def version_row(owner: Owner, version: ExportedVersion, ids: Mapping[str, str], now: datetime) -> Row:
    """Return the row that creates a version, which is current at `now` or not."""
    fact = imported_fact(owner, version, ids).with_active_hash(now)
    marks = {name: mark for name in _MARKS if (mark := getattr(version.properties, name)) is not None}
    return {
        "subject_id": fact.subject_id,
        "object_id": fact.object_id or fact.subject_id,
        "properties": {**marks, **fact_to_properties(fact), "fact_embedding": version.vector},
    }


def mentions_others(version: Row) -> bool:
    """Return whether a version mentions entities beside its subject and object."""
    return bool({*(version["properties"]["entity_ids"] or ())} - {version["subject_id"], version["object_id"]})


def link_row(owner: Owner, link: ExportedLink, node_ids: Mapping[str, str | int]) -> Row:
    """Return the row that creates a relationship between nodes, whose ids are given by their keys."""
    properties = link.properties.to_graph()
    if link.type in _OWNED_LINKS:
        properties["group_id"] = owner.group_id
    return {
        "type": link.type.value,
        "start": node_ids[link.start],
        "end": node_ids[link.end],
        "properties": properties,
    }


class NewFacts(NamedTuple):
    """What is kept of the versions that an import creates, by their places, until they are compared.

    `hashes` are those of the current ones, by which two that state the same are recognised.
    """

    single_valued: Mapping[int, Fact]
    hashes: Mapping[int, str]

    @classmethod
    def of(cls, owner: Owner, export: UserExport, plan: ImportPlan, now: datetime) -> NewFacts:
        """Return what is kept of an export."""
        single_valued: dict[int, Fact] = {}
        hashes: dict[int, str] = {}
        for index, version in enumerate(export.memories):
            if not plan.is_new_version(version):
                continue
            fact = imported_fact(owner, version, plan.ids).with_active_hash(now)
            if fact.active_hash:
                hashes[index] = fact.active_hash
            if fact.single_valued:
                single_valued[index] = fact
        return cls(single_valued, hashes)


def refuse_contradictions(new: NewFacts, stored: Mapping[tuple[str, str], Sequence[Fact]]) -> None:
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
