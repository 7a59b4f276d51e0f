"""A user's part of the graph as one document, and back in one transaction."""

from __future__ import annotations

import uuid
from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from neo4j.exceptions import ClientError
from pydantic import TypeAdapter

from graphmem.domain.export import Embedding, Export, Imported, Link, Node, Version, read_back, written
from graphmem.domain.fact import Fact
from graphmem.domain.identity import Owner
from graphmem.domain.times import Clock
from graphmem.errors import InvalidInput
from graphmem.store.driver import Graph, Row, Transaction
from graphmem.store.facts import FactStore
from graphmem.store.rows import fact_properties, group_key, read_fact

_FACT = TypeAdapter(Fact)

DERIVED = frozenset({"group_id", "group_key"})
"""Properties that follow from whose the node is."""

SHADOWS = frozenset({"valid_from", "valid_to", "known_from", "known_to", "fact_embedding"})
PASSING = frozenset({"group_id", "tenant", "user_id", "write_version", "last_write_at", "pending_job"})
"""Properties of the user's node and of messages that describe this database, not the user."""

VECTORS = {"Entity": "name_embedding", "Episodic": "content_embedding"}


@dataclass(slots=True)
class Plan:
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

    async def export(self, owner: Owner, embedding: Embedding) -> Export:
        """Return everything of a user in a stable order, read in one transaction."""

        async def work(transaction: Transaction) -> Export:
            group = {"group_id": owner.group_id}
            users = await transaction.run("transfer.user", **group)
            entities = await transaction.run("transfer.entities", **group)
            facts = await transaction.run("transfer.facts", **group)
            records = await transaction.run("transfer.records", **group)
            links = await transaction.run("transfer.links", **group)
            keys = _record_keys(records)
            return Export(
                user_id=owner.user_id,
                embedding=embedding,
                user=_kept(users[0]["user"], PASSING) if users else {},
                entities=[
                    Node(key=row["node"]["uuid"], labels=sorted(row["labels"]), properties=_kept(row["node"], DERIVED))
                    for row in entities
                ],
                memories=[
                    Version(
                        subject_id=row["subject_id"],
                        object_id=row["object_id"],
                        properties=_kept(row["fact"], DERIVED | SHADOWS),
                        vector=row["vector"],
                    )
                    for row in facts
                ],
                records=sorted(
                    (
                        Node(
                            key=keys[row["element_id"]],
                            labels=sorted(row["labels"]),
                            properties=_kept(row["properties"], DERIVED | PASSING),
                        )
                        for row in records
                    ),
                    key=lambda node: (node.labels, node.key),
                ),
                links=sorted(
                    (
                        Link(
                            type=row["type"],
                            start=keys.get(row["start"], row["start_uuid"]),
                            end=keys.get(row["end"], row["end_uuid"]),
                            properties=_kept(row["properties"], DERIVED),
                        )
                        for row in links
                    ),
                    key=lambda link: (link.type, link.start, link.end),
                ),
            )

        return await self._graph.read(work)

    async def import_(self, owner: Owner, export: Export, vectors_remade: bool) -> Imported:
        """Write an export into a user's graph, whole or not at all; what is there already stays as it is."""

        async def work(transaction: Transaction) -> Imported:
            now = await self._facts.lock(transaction, owner)
            plan = await self._plan(transaction, owner, export)
            nodes = [each for each in (*export.entities, *export.records) if each.key not in plan.known_nodes]
            created = await transaction.run(
                "transfer.create_nodes", rows=[_node_row(owner, each, plan.ids) for each in nodes]
            )
            places = {row["key"]: row["element_id"] for row in created}
            for row in await transaction.run("transfer.nodes", group_id=owner.group_id):
                places.setdefault(row["key"], row["element_id"])
            versions = [each for each in export.memories if each.properties.get("memory_id") not in plan.known_memories]
            rows = [_version_row(owner, each, plan.ids) for each in versions]
            if rows:
                await transaction.run("facts.create_rows", rows=rows)
            await transaction.run("transfer.create_links", rows=_link_rows(owner, export, plan, places))
            await transaction.run(
                "transfer.set_user", group_id=owner.group_id, properties=read_back(export.user, plan.ids)
            )
            latest = max([now, *(row["properties"]["known_from"] for row in rows)])
            await transaction.run("facts.stamp_user", group_id=owner.group_id, at=latest)
            changed = {old: new for old, new in plan.ids.items() if old != new}
            known = [each for each in (*export.entities, *export.records) if each.key in plan.known_nodes]
            return Imported(
                imported={**Counter(map(_kind, nodes)), "versions": len(rows)},
                unchanged={**Counter(map(_kind, known)), "versions": len(export.memories) - len(rows)},
                ids=changed,
                vectors_remade=vectors_remade,
            )

        try:
            return await self._graph.write(work)
        except ClientError as error:
            raise InvalidInput("The import holds a property that the graph cannot keep.") from error

    async def forget(self, transaction: Transaction, owner: Owner) -> dict[str, int]:
        """Erase every node and edge of a user; return how many there were of each kind."""
        await self._facts.lock(transaction, owner)
        facts = await transaction.run("transfer.erase_facts", group_id=owner.group_id)
        nodes = await transaction.run("transfer.erase_nodes", group_id=owner.group_id)
        return {"Fact": facts[0]["erased"], **{row["kind"]: row["erased"] for row in nodes}}

    async def residue(self, owner: Owner) -> int:
        """Return how many nodes and edges of a user are left anywhere."""
        rows = await self._graph.fetch(
            "transfer.residue", group_id=owner.group_id, user_id=owner.user_id, tenant=owner.tenant
        )
        return int(rows[0]["residue"])

    async def _plan(self, transaction: Transaction, owner: Owner, export: Export) -> Plan:
        """Decide which ids stay: those that are free, or belong to this user already."""
        held = (await transaction.run("transfer.identities", group_id=owner.group_id))[0]
        names, messages = dict(held["names"]), dict(held["messages"])
        statements, memories = dict(held["statements"]), set(held["memories"])
        plan = Plan(known_memories=set(memories))
        uuids = [each.key for each in export.entities]
        uuids += [each.properties["uuid"] for each in export.records if "uuid" in each.properties]
        uuids += [_text(each.properties, "uuid") for each in export.memories]
        taken = {row["id"]: row["group_id"] for row in await transaction.run("transfer.taken", ids=uuids)}
        for node in export.entities:
            self._place(plan, node, names.get(_text(node.properties, "name_key")), taken, owner)
        for node in export.records:
            key = node.properties.get("message_id") if "Episodic" in node.labels else None
            known = messages.get(key) if key else None
            if "Session" in node.labels and node.properties.get("session_id") in held["sessions"]:
                known = node.key
            self._place(plan, node, known, taken, owner)
        for each in export.memories:
            old, row_id = _text(each.properties, "memory_id"), _text(each.properties, "uuid")
            twin = statements.get(
                str(read_back(each.properties.get("active_hash"), {})).rsplit(":", 1)[0]
                + ":"
                + plan.ids.get(each.subject_id, each.subject_id)
            )
            if old in memories:
                continue
            if twin:
                plan.known_memories.add(old)
                plan.ids[old] = twin
            elif row_id in taken:
                plan.ids.setdefault(old, str(uuid.uuid4()))
                plan.ids[row_id] = str(uuid.uuid4())
        return plan

    @staticmethod
    def _place(plan: Plan, node: Node, known: str | None, taken: Mapping[str, str], owner: Owner) -> None:
        own = node.properties.get("uuid", node.key)
        if known is not None:
            plan.known_nodes[node.key] = known
            if known != own:
                plan.ids[own] = known
        elif taken.get(own):
            plan.ids[own] = str(uuid.uuid4())


def _kept(properties: Mapping[str, Any], without: frozenset[str]) -> dict[str, Any]:
    return {
        key: written(value) for key, value in sorted(properties.items()) if key not in without and value is not None
    }


def _record_keys(records: list[Row]) -> dict[str, str]:
    """Return what names each record in an export: its own id, or its place among those of its kind."""
    keys: dict[str, str] = {}
    for row in sorted(
        records, key=lambda each: (sorted(each["labels"]), repr(sorted(each["properties"].items(), key=str)))
    ):
        properties = row["properties"]
        if "Session" in row["labels"]:
            keys[row["element_id"]] = f"session:{properties['session_id']}"
        else:
            keys[row["element_id"]] = str(properties.get("uuid") or properties.get("id") or f"record:{len(keys)}")
    return keys


def _text(properties: Mapping[str, Any], name: str) -> str:
    value = properties.get(name)
    if not isinstance(value, str):
        raise InvalidInput(f"The import lacks `{name}` where it is needed.")
    return value


def _kind(node: Node) -> str:
    return next((label for label in ("Entity", "Episodic", "Session") if label in node.labels), node.labels[0])


def _node_row(owner: Owner, node: Node, ids: Mapping[str, str]) -> Row:
    properties = read_back(node.properties, ids) | {"group_id": owner.group_id}
    if {"Entity", "Episodic"} & set(node.labels):
        properties["group_key"] = group_key(owner.group_id)
    return {"key": ids.get(node.key, node.key), "labels": node.labels, "properties": properties}


def _version_row(owner: Owner, version: Version, ids: Mapping[str, str]) -> Row:
    subject, target = ids.get(version.subject_id, version.subject_id), ids.get(version.object_id, version.object_id)
    stored = read_back(version.properties, ids) | {"group_id": owner.group_id}
    if stored.get("active_hash"):
        stored["active_hash"] = f"{stored['content_hash']}:{subject}"
    try:
        fact = read_fact({"fact": stored, "subject_id": subject, "object_id": target})
        properties = fact_properties(_FACT.validate_python(asdict(fact)))
    except (KeyError, TypeError, ValueError) as error:
        raise InvalidInput("A version in the import lacks something or has a value of the wrong kind.") from error
    return {"subject_id": subject, "object_id": target, "properties": properties | {"fact_embedding": version.vector}}


def _link_rows(owner: Owner, export: Export, plan: Plan, places: Mapping[str, str]) -> list[Row]:
    rows = []
    for link in export.links:
        start, end = (places.get(plan.ids.get(key, key)) for key in (link.start, link.end))
        if start is None or end is None:
            raise InvalidInput(f"A link of the import names a node that is not there: {link.start} or {link.end}.")
        properties = read_back(link.properties, plan.ids)
        if "group_id" in properties or link.type in {"MENTIONS", "HAS_EPISODE", "NEXT_EPISODE"}:
            properties["group_id"] = owner.group_id
        rows.append({"type": link.type, "start": start, "end": end, "properties": properties})
    return rows
