"""A user's part of the graph as one document, and back in one transaction."""

from __future__ import annotations

import uuid
from collections import Counter
from collections.abc import AsyncIterator, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from neo4j.exceptions import ClientError
from pydantic import TypeAdapter

from graphmem.domain.export import (
    ExportedNode,
    ExportedRelationship,
    ExportedVersion,
    ImportResult,
    UserExport,
    decode_property,
    encode_property,
)
from graphmem.domain.fact import Fact
from graphmem.domain.identity import Owner
from graphmem.domain.progress import ProgressCounter
from graphmem.domain.times import Clock
from graphmem.errors import InvalidInput
from graphmem.store.driver import Graph, Row, Transaction
from graphmem.store.fact_mapping import fact_from_row, fact_to_properties
from graphmem.store.facts import FactStore

_FACT = TypeAdapter(Fact)

OWNER_PROPERTIES = frozenset({"group_id", "group_key"})
"""Properties that follow from whose the node is."""

SHADOW_PROPERTIES = frozenset({"valid_from", "valid_to", "known_from", "known_to", "fact_embedding"})
TRANSIENT_PROPERTIES = frozenset({"group_id", "tenant", "user_id", "write_version", "last_write_at", "pending_job"})
"""Properties of the user's node and of messages that describe this database, not the user."""

BATCH_SIZE = 500
"""Nodes or edges read or written at a time."""

ExportEntry = tuple[str, Any]
"""The name of a part of an export, and an entry of it."""

VECTOR_PROPERTIES = {"Entity": "name_embedding", "Episodic": "content_embedding"}


@dataclass(slots=True)
class ImportPlan:
    """What an import will do: ids that change, and what is there already."""

    ids: dict[str, str] = field(default_factory=dict)
    known_nodes: dict[str, str] = field(default_factory=dict)
    known_memories: set[str] = field(default_factory=set)


class TransferStore:
    """Whole users: exported, imported, erased, looked for."""

    def __init__(self, graph: Graph, facts: FactStore, clock: Clock) -> None:
        self._graph = graph
        self._facts = facts
        self._clock = clock

    async def stream_entries(self, owner: Owner) -> AsyncIterator[ExportEntry]:
        """Yield what belongs to a user, section by section in a stable order, as it is read in one transaction.

        First comes how many entries there are beside the links, then the properties of the user's own node.
        """
        group = {"group_id": owner.group_id}
        async with self._graph.read_transaction() as transaction:
            yield "size", await transaction.fetch_value("transfer.count_entries", **group)
            users = await transaction.run("transfer.get_user", **group)
            yield "user", _exported_properties(users[0]["user"], TRANSIENT_PROPERTIES) if users else {}
            async for row in transaction.stream("transfer.stream_entities", **group):
                properties = _exported_properties(row["node"], OWNER_PROPERTIES)
                yield (
                    "entities",
                    ExportedNode(key=row["node"]["uuid"], labels=sorted(row["labels"]), properties=properties),
                )
            async for row in transaction.stream("transfer.stream_facts", **group):
                yield "memories", _version_from_row(row)
            keys = _record_keys(await transaction.run("transfer.list_record_keys", **group))
            element_ids = list(keys)
            for start in range(0, len(element_ids), BATCH_SIZE):
                part = element_ids[start : start + BATCH_SIZE]
                for row in await transaction.run("transfer.fetch_records", element_ids=part):
                    properties = _exported_properties(row["properties"], OWNER_PROPERTIES | TRANSIENT_PROPERTIES)
                    yield (
                        "records",
                        ExportedNode(key=keys[row["element_id"]], labels=sorted(row["labels"]), properties=properties),
                    )
            for link in _relationships_from_rows(await transaction.run("transfer.list_links", **group), keys):
                yield "links", link

    async def import_export(
        self, owner: Owner, export: UserExport, vectors_remade: bool, progress: ProgressCounter
    ) -> ImportResult:
        """Write an export into a user's graph, whole or not at all; what is there already stays as it is."""

        async def work(transaction: Transaction) -> ImportResult:
            now = await self._facts.lock_user(transaction, owner)
            plan = await self._plan_import(transaction, owner, export)
            nodes = [each for each in (*export.entities, *export.records) if each.key not in plan.known_nodes]
            progress.add(len(plan.known_nodes) + len(plan.known_memories))
            element_ids: dict[str, str] = {}
            for part in _split_batches([_node_row(owner, each, plan.ids) for each in nodes]):
                created = await transaction.run("transfer.create_nodes", rows=part)
                element_ids |= {row["key"]: row["element_id"] for row in created}
                progress.add(len(part))
            for row in await transaction.run("transfer.list_linkable_nodes", group_id=owner.group_id):
                element_ids.setdefault(row["key"], row["element_id"])
            versions = [each for each in export.memories if each.properties.get("memory_id") not in plan.known_memories]
            rows = [_version_row(owner, each, plan.ids) for each in versions]
            for part in _split_batches(rows):
                await transaction.run("facts.create_versions", rows=part)
                progress.add(len(part))
            for part in _split_batches(_relationship_rows(owner, export, plan, element_ids)):
                await transaction.run("transfer.create_links", rows=part)
                progress.add(len(part))
            await transaction.run(
                "transfer.set_user", group_id=owner.group_id, properties=decode_property(export.user, plan.ids)
            )
            latest = max([now, *(row["properties"]["known_from"] for row in rows)])
            await transaction.run("facts.set_last_write_time", group_id=owner.group_id, at=latest)
            changed = {old: new for old, new in plan.ids.items() if old != new}
            known = [each for each in (*export.entities, *export.records) if each.key in plan.known_nodes]
            return ImportResult(
                imported={**Counter(map(_node_kind, nodes)), "versions": len(rows)},
                unchanged={**Counter(map(_node_kind, known)), "versions": len(export.memories) - len(rows)},
                ids=changed,
                vectors_remade=vectors_remade,
            )

        try:
            return await self._graph.write(work)
        except ClientError as error:
            raise InvalidInput("The import holds a property that the graph cannot keep.") from error

    async def erase_user(self, transaction: Transaction, owner: Owner) -> dict[str, int]:
        """Erase every node and edge of a user; return how many there were of each kind."""
        await self._facts.lock_user(transaction, owner)
        facts = await transaction.run("transfer.erase_facts", group_id=owner.group_id)
        nodes = await transaction.run("transfer.erase_nodes", group_id=owner.group_id)
        return {"Fact": facts[0]["erased"], **{row["kind"]: row["erased"] for row in nodes}}

    async def count_residue(self, owner: Owner) -> int:
        """Return how many nodes and edges of a user are left anywhere."""
        rows = await self._graph.fetch(
            "transfer.count_residue", group_id=owner.group_id, user_id=owner.user_id, tenant=owner.tenant
        )
        return int(rows[0]["residue"])

    async def _plan_import(self, transaction: Transaction, owner: Owner, export: UserExport) -> ImportPlan:
        """Decide which ids stay: those that are free, or belong to this user already."""
        existing = (await transaction.run("transfer.list_identities", group_id=owner.group_id))[0]
        names, messages = dict(existing["names"]), dict(existing["messages"])
        statements, memories = dict(existing["statements"]), set(existing["memories"])
        plan = ImportPlan(known_memories=set(memories))
        uuids = [each.key for each in export.entities]
        uuids += [each.properties["uuid"] for each in export.records if "uuid" in each.properties]
        uuids += [_require_text(each.properties, "uuid") for each in export.memories]
        taken = {row["id"]: row["group_id"] for row in await transaction.run("transfer.find_taken_ids", ids=uuids)}
        for node in export.entities:
            self._plan_node(plan, node, names.get(_require_text(node.properties, "name_key")), taken, owner)
        for node in export.records:
            key = node.properties.get("message_id") if "Episodic" in node.labels else None
            known = messages.get(key) if key else None
            if "Session" in node.labels and node.properties.get("session_id") in existing["sessions"]:
                known = node.key
            self._plan_node(plan, node, known, taken, owner)
        for each in export.memories:
            old, row_id = _require_text(each.properties, "memory_id"), _require_text(each.properties, "uuid")
            existing_id = statements.get(
                str(decode_property(each.properties.get("active_hash"), {})).rsplit(":", 1)[0]
                + ":"
                + plan.ids.get(each.subject_id, each.subject_id)
            )
            if old in memories:
                continue
            if existing_id:
                plan.known_memories.add(old)
                plan.ids[old] = existing_id
            elif row_id in taken:
                plan.ids.setdefault(old, str(uuid.uuid4()))
                plan.ids[row_id] = str(uuid.uuid4())
        return plan

    @staticmethod
    def _plan_node(
        plan: ImportPlan, node: ExportedNode, known: str | None, taken: Mapping[str, str], owner: Owner
    ) -> None:
        own = node.properties.get("uuid", node.key)
        if known is not None:
            plan.known_nodes[node.key] = known
            if known != own:
                plan.ids[own] = known
        elif taken.get(own):
            plan.ids[own] = str(uuid.uuid4())


def _exported_properties(properties: Mapping[str, Any], without: frozenset[str]) -> dict[str, Any]:
    return {
        key: encode_property(value)
        for key, value in sorted(properties.items())
        if key not in without and value is not None
    }


def _version_from_row(row: Row) -> ExportedVersion:
    return ExportedVersion(
        subject_id=row["subject_id"],
        object_id=row["object_id"],
        properties=_exported_properties(row["fact"], OWNER_PROPERTIES | SHADOW_PROPERTIES),
        vector=row["vector"],
    )


def _record_keys(heads: list[Row]) -> dict[str, str]:
    """Return what names each record in an export, in the order they are written: its own id, else its place."""
    unnamed = [row for row in heads if row["key"] is None]
    unnamed.sort(key=lambda row: (sorted(row["labels"]), repr(sorted(row["properties"].items(), key=str))))
    for place, row in enumerate(unnamed):
        row["key"] = f"record:{place}"
    heads.sort(key=lambda row: (sorted(row["labels"]), row["key"]))
    return {row["element_id"]: row["key"] for row in heads}


def _relationships_from_rows(rows: list[Row], keys: Mapping[str, str]) -> list[ExportedRelationship]:
    links = [
        ExportedRelationship(
            type=row["type"],
            start=keys.get(row["start"], row["start_uuid"]),
            end=keys.get(row["end"], row["end_uuid"]),
            properties=_exported_properties(row["properties"], OWNER_PROPERTIES),
        )
        for row in rows
    ]
    return sorted(links, key=lambda link: (link.type, link.start, link.end))


def _split_batches(rows: list[Row]) -> Iterator[list[Row]]:
    for start in range(0, len(rows), BATCH_SIZE):
        yield rows[start : start + BATCH_SIZE]


def _require_text(properties: Mapping[str, Any], name: str) -> str:
    value = properties.get(name)
    if not isinstance(value, str):
        raise InvalidInput(f"The import lacks `{name}` where it is needed.")
    return value


def _node_kind(node: ExportedNode) -> str:
    return next((label for label in ("Entity", "Episodic", "Session") if label in node.labels), node.labels[0])


def _node_row(owner: Owner, node: ExportedNode, ids: Mapping[str, str]) -> Row:
    properties = decode_property(node.properties, ids) | {"group_id": owner.group_id}
    if {"Entity", "Episodic"} & set(node.labels):
        properties["group_key"] = owner.group_key
    return {"key": ids.get(node.key, node.key), "labels": node.labels, "properties": properties}


def _version_row(owner: Owner, version: ExportedVersion, ids: Mapping[str, str]) -> Row:
    subject, target = ids.get(version.subject_id, version.subject_id), ids.get(version.object_id, version.object_id)
    stored = decode_property(version.properties, ids) | {"group_id": owner.group_id}
    if stored.get("active_hash"):
        stored["active_hash"] = f"{stored['content_hash']}:{subject}"
    try:
        fact = fact_from_row({"fact": stored, "subject_id": subject, "object_id": target})
        properties = fact_to_properties(_FACT.validate_python(asdict(fact)))
    except (KeyError, TypeError, ValueError) as error:
        raise InvalidInput("A version in the import lacks something or has a value of the wrong kind.") from error
    return {"subject_id": subject, "object_id": target, "properties": properties | {"fact_embedding": version.vector}}


def _relationship_rows(owner: Owner, export: UserExport, plan: ImportPlan, element_ids: Mapping[str, str]) -> list[Row]:
    rows = []
    for link in export.links:
        start, end = (element_ids.get(plan.ids.get(key, key)) for key in (link.start, link.end))
        if start is None or end is None:
            raise InvalidInput(f"A link of the import names a node that is not there: {link.start} or {link.end}.")
        properties = decode_property(link.properties, plan.ids)
        if "group_id" in properties or link.type in {"MENTIONS", "HAS_EPISODE", "NEXT_EPISODE"}:
            properties["group_id"] = owner.group_id
        rows.append({"type": link.type, "start": start, "end": end, "properties": properties})
    return rows
