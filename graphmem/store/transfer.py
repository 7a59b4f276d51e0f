"""A user's part of the graph as one document, and back in one transaction."""

from __future__ import annotations

import uuid
from collections import Counter
from collections.abc import AsyncIterator, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from neo4j.exceptions import ClientError
from pydantic import TypeAdapter

from graphmem.domain.export import Export, Imported, Link, Node, Version, read_back, written
from graphmem.domain.fact import Fact
from graphmem.domain.identity import Owner
from graphmem.domain.progress import Tally
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

BATCH = 500
"""Nodes or edges read or written at a time."""

Section = tuple[str, Any]
"""The name of a part of an export, and an entry of it."""

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

    async def entries(self, owner: Owner) -> AsyncIterator[Section]:
        """Yield what belongs to a user, section by section in a stable order, as it is read in one transaction.

        First comes how many entries there are beside the links, then the properties of the user's own node.
        """
        group = {"group_id": owner.group_id}
        async with self._graph.reading() as transaction:
            yield "size", await transaction.value("transfer.size", **group)
            users = await transaction.run("transfer.user", **group)
            yield "user", _kept(users[0]["user"], PASSING) if users else {}
            async for row in transaction.stream("transfer.entities", **group):
                properties = _kept(row["node"], DERIVED)
                yield "entities", Node(key=row["node"]["uuid"], labels=sorted(row["labels"]), properties=properties)
            async for row in transaction.stream("transfer.facts", **group):
                yield "memories", _version(row)
            keys = _record_keys(await transaction.run("transfer.record_heads", **group))
            places = list(keys)
            for start in range(0, len(places), BATCH):
                part = places[start : start + BATCH]
                for row in await transaction.run("transfer.records", element_ids=part):
                    properties = _kept(row["properties"], DERIVED | PASSING)
                    yield (
                        "records",
                        Node(key=keys[row["element_id"]], labels=sorted(row["labels"]), properties=properties),
                    )
            for link in _links(await transaction.run("transfer.links", **group), keys):
                yield "links", link

    async def import_(self, owner: Owner, export: Export, vectors_remade: bool, tally: Tally) -> Imported:
        """Write an export into a user's graph, whole or not at all; what is there already stays as it is."""

        async def work(transaction: Transaction) -> Imported:
            now = await self._facts.lock(transaction, owner)
            plan = await self._plan(transaction, owner, export)
            nodes = [each for each in (*export.entities, *export.records) if each.key not in plan.known_nodes]
            tally.add(len(plan.known_nodes) + len(plan.known_memories))
            places: dict[str, str] = {}
            for part in _parts([_node_row(owner, each, plan.ids) for each in nodes]):
                created = await transaction.run("transfer.create_nodes", rows=part)
                places |= {row["key"]: row["element_id"] for row in created}
                tally.add(len(part))
            for row in await transaction.run("transfer.nodes", group_id=owner.group_id):
                places.setdefault(row["key"], row["element_id"])
            versions = [each for each in export.memories if each.properties.get("memory_id") not in plan.known_memories]
            rows = [_version_row(owner, each, plan.ids) for each in versions]
            for part in _parts(rows):
                await transaction.run("facts.create_rows", rows=part)
                tally.add(len(part))
            for part in _parts(_link_rows(owner, export, plan, places)):
                await transaction.run("transfer.create_links", rows=part)
                tally.add(len(part))
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


def _version(row: Row) -> Version:
    return Version(
        subject_id=row["subject_id"],
        object_id=row["object_id"],
        properties=_kept(row["fact"], DERIVED | SHADOWS),
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


def _links(rows: list[Row], keys: Mapping[str, str]) -> list[Link]:
    links = [
        Link(
            type=row["type"],
            start=keys.get(row["start"], row["start_uuid"]),
            end=keys.get(row["end"], row["end_uuid"]),
            properties=_kept(row["properties"], DERIVED),
        )
        for row in rows
    ]
    return sorted(links, key=lambda link: (link.type, link.start, link.end))


def _parts(rows: list[Row]) -> Iterator[list[Row]]:
    for start in range(0, len(rows), BATCH):
        yield rows[start : start + BATCH]


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
