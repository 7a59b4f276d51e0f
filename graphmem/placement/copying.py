"""Makes what one graph has of a tenant or a user the same as in another, group by group, as often as asked.

Nodes with vectors are known by their ids, some others by a key, the rest by what they hold; so are relationships. What
is alike stays, what differs is replaced, what the source lacks is deleted. The work can therefore end anywhere and be
done again. Elements with vectors are listed with their revisions, so that a pass reads only those that have changed.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections import Counter, defaultdict
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, NamedTuple, TypeVar

from graphmem.jobs.kinds import JobInterrupted
from graphmem.neo4j.assignments import name_of_group, tenant_of_name
from graphmem.neo4j.driver import Graph, Transaction
from graphmem.neo4j.driver_values import Row
from graphmem.neo4j.placed_graph import TENANT_OF_WRITES
from graphmem.tenants.owners import Owner

BATCH_SIZE = 500
"""Nodes and relationships that are read or written at once."""

KEYS = {"User": "group_id", "EntityAlias": "key", "Session": "session_id", "ConsolidationRun": "id", "Webhook": "id"}
"""Labels of nodes without vectors that relationships or long lives tie to a place, and their keys within a group."""

EMBEDDED_LABELS = ("Entity", "Episodic")
"""Labels of nodes with vectors; their `uuid` is their key."""

Key = tuple[Any, ...]
"""What an element of one graph and one of the other have in common."""

T = TypeVar("T")


@dataclass(slots=True)
class MovedData:
    """What a move takes to another graph: everything of a tenant, or one user's; `name` is that of their place.

    `group_id` is that of the user once it is known; the name alone does not tell it.
    """

    name: str
    group_id: str | None = None

    @property
    def tenant(self) -> str:
        """The tenant, or that of the user."""
        return tenant_of_name(self.name)

    @property
    def is_user(self) -> bool:
        """Whether only a user moves."""
        return self.name != self.tenant

    async def list_groups(self, graph: Graph) -> list[str]:
        """Return the groups that a graph has of it."""
        if self.group_id is not None:
            return [self.group_id]
        rows = await graph.fetch("moves.list_groups", tenant=self.tenant)
        groups = [str(row["group_id"]) for row in rows]
        if not self.is_user:
            return groups
        self.note(group_id for group_id in groups if name_of_group(group_id) == self.name)
        return [self.group_id] if self.group_id else []

    def note(self, group_ids: Iterable[str]) -> None:
        """Remember the group of the user."""
        if self.is_user:
            self.group_id = next(iter(group_ids), self.group_id)

    async def list_beside_groups(self, graph: Graph) -> _NodesByKey:
        """Return the nodes that belong to no group, or to the user and to the tenant as a whole, by their keys."""
        if not self.is_user:
            rows = await graph.fetch("moves.list_of_tenant", tenant=self.tenant, prefix=Owner(self.tenant, "").group_id)
        elif groups := await self.list_groups(graph):
            rows = await graph.fetch("moves.list_of_user", group_id=groups[0])
        else:
            rows = []
        return _by_key(_StoredNode(row["id"], row["labels"], row["properties"]) for row in rows)

    async def list_parts(self, graph: Graph) -> frozenset[tuple[str, str]]:
        """Return the ids of runs over all users and of their parts."""
        if self.is_user:
            return frozenset()  # its runs are no parts any more: runs over all users name them
        rows = await graph.fetch("moves.list_parts", tenant=self.tenant)
        return frozenset((row["run_id"], part_id) for row in rows for part_id in row["part_ids"])


@dataclass(slots=True)
class Side:
    """What one graph has of a group or of a tenant, as numbers by kind and as a digest."""

    counts: Counter[str] = field(default_factory=Counter)
    digest: int = 0

    def add(self, kind: str, *content: Any) -> None:
        """Add an element; the order of elements does not matter."""
        text = repr((kind, *map(_canonical, content)))
        self.counts[kind] += 1
        self.digest = (self.digest + int.from_bytes(hashlib.blake2b(text.encode(), digest_size=16).digest())) % 2**128

    @classmethod
    def of(cls, listed: _NodesByKey) -> Side:
        """Return the numbers and the digest of nodes in full."""
        side = cls()
        for nodes in listed.values():
            for node in nodes:
                side.add(_kind(node), *node.content)
        return side

    def add_all(self, other: Side) -> None:
        """Add the elements of another side."""
        self.counts += other.counts
        self.digest = (self.digest + other.digest) % 2**128


class _StoredNode(NamedTuple):
    """A node of one graph that was read: its id there, its labels and its properties."""

    id: str
    labels: list[str]
    properties: dict[str, Any]

    @property
    def content(self) -> tuple[list[str], dict[str, Any]]:
        return sorted(self.labels), self.properties

    @property
    def key(self) -> Key:
        """What it is known by where it has no vector."""
        label = next((label for label in self.labels if label in KEYS), None)
        return (label, self.properties.get(KEYS[label])) if label else ("", repr(_canonical(self.content)))


_NodesByKey = Mapping[Key, Sequence[_StoredNode]]


class _Versioned(NamedTuple):
    """An element with a vector that was listed: its id in one graph, and its revision."""

    id: str
    revision: int


class _Link(NamedTuple):
    """A relationship without a vector; `start` and `end` are ids in one graph."""

    id: str
    type: str
    start: str
    end: str
    end_uuid: str | None
    properties: dict[str, Any]

    def key(self, start: str, end: str) -> Key:
        """What it is known by between two nodes."""
        return self.type, start, end, repr(_canonical(self.properties))


@dataclass(frozen=True, slots=True)
class _Listing:
    """What one graph has of a group."""

    plain: _NodesByKey
    embedded: Mapping[Key, _Versioned]
    facts: Mapping[Key, _Versioned]
    links: Sequence[_Link]

    @classmethod
    async def of(cls, graph: Graph, group_id: str) -> _Listing:
        """List a group."""
        [row] = await graph.fetch("moves.list_group", group_id=group_id)
        return cls(
            _by_key(_StoredNode(*columns) for columns in row["plain"]),
            {(label, uuid): _Versioned(node_id, revision) for node_id, label, uuid, revision in row["embedded"]},
            {("RELATES_TO", uuid): _Versioned(fact_id, revision) for fact_id, uuid, revision in row["facts"]},
            [_Link(*columns) for columns in row["links"]],
        )

    def describe(self) -> Side:
        """Return its numbers and its digest; of what has vectors, ids and revisions count."""
        side = Side.of(self.plain)
        for key, element in (*self.embedded.items(), *self.facts.items()):
            side.add(key[0], key, element.revision)
        for link in self.links:
            side.add(link.type, link.end_uuid, link.properties)
        return side


@dataclass(frozen=True, slots=True)
class _ListingBesideGroups:
    """What one graph has beside groups; `parts` are the ids of runs over all users and of their parts."""

    nodes: _NodesByKey
    parts: frozenset[tuple[str, str]]

    @classmethod
    async def of(cls, graph: Graph, moved: MovedData) -> _ListingBesideGroups:
        """List it."""
        return cls(await moved.list_beside_groups(graph), await moved.list_parts(graph))

    def describe(self) -> Side:
        """Return its numbers and its digest."""
        side = Side.of(self.nodes)
        for part in self.parts:
            side.add("PART", *part)
        return side


class DataCopy:
    """The copy in `target` of what moves, made by an attempt at a move.

    Every write checks that the attempt is the latest one. Methods raise DatabaseUnavailable, and JobInterrupted
    once it is not.
    """

    def __init__(self, source: Graph, target: Graph, moved: MovedData, attempt: str) -> None:
        self._source = source
        self._target = target
        self._moved = moved
        self._attempt = attempt

    async def list_groups(self) -> list[str]:
        """Return the groups that either graph has; that of the tenant itself, whose entities all refer to, first."""
        found = [await self._moved.list_groups(graph) for graph in (self._source, self._target)]
        return sorted({group_id for groups in found for group_id in groups})

    async def copy_beside_groups(self) -> None:
        """Copy what belongs to no group, or to the user and to the tenant as a whole."""
        source, target = await self._list_beside_groups()

        async def write(writer: _Writer) -> None:
            await writer.copy_nodes(source.nodes, target.nodes)
            await writer.create_parts(source.parts - target.parts)

        await self._write(write)

    async def copy_group(self, group_id: str, *, changed_only: bool) -> None:
        """Copy a group; with `changed_only`, of what has vectors only what has another revision.

        Relationships to nodes of other groups that have not been copied yet are left out.
        """
        source, target = await self._list_group(group_id)
        nodes = list(_changed_parts(source.embedded, target.embedded, changed_only))
        facts = list(_changed_parts(source.facts, target.facts, changed_only))
        known = {node.id: target.embedded[key].id for key, node in source.embedded.items() if key in target.embedded}
        outside = await self._pair_outside(source)
        # The last parts, which are all there is of a small change, are written in one transaction with the rest.
        for part in nodes[:-1]:
            known |= await self._copy_nodes_of(part)
        last_nodes = await self._read_nodes(nodes[-1]) if nodes else ({}, {})
        for_facts: list[tuple[dict[Key, Row], dict[Key, Row], Mapping[Key, str]]] = []
        if len(facts) == 1:
            for_facts = [await self._read_facts(facts[0])]

        async def write(writer: _Writer) -> None:
            ids = known | await writer.copy_nodes(source.plain, target.plain)
            ids |= await writer.copy_nodes(*last_nodes)
            await writer.delete("moves.delete_nodes", _surplus(source.embedded, target.embedded))
            await writer.delete("moves.delete_relationships", _surplus(source.facts, target.facts))
            for read in for_facts:
                await writer.copy_facts(*read)
            await writer.copy_links(source.links, target.links, outside | ids)
            await writer.link_changes(group_id)

        await self._write(write)
        for part in facts if len(facts) > 1 else []:
            read = await self._read_facts(part)
            await self._write(lambda writer, read=read: writer.copy_facts(*read))  # type: ignore[misc]

    async def describe(self, group_id: str) -> tuple[Side, Side]:
        """Return what both graphs have of a group."""
        source, target = await self._list_group(group_id)
        return source.describe(), target.describe()

    async def describe_beside_groups(self) -> tuple[Side, Side]:
        """Return what both graphs have beside groups."""
        source, target = await self._list_beside_groups()
        return source.describe(), target.describe()

    async def _list_group(self, group_id: str) -> tuple[_Listing, _Listing]:
        return await asyncio.gather(_Listing.of(self._source, group_id), _Listing.of(self._target, group_id))

    async def _list_beside_groups(self) -> tuple[_ListingBesideGroups, _ListingBesideGroups]:
        return await asyncio.gather(
            _ListingBesideGroups.of(self._source, self._moved), _ListingBesideGroups.of(self._target, self._moved)
        )

    async def _pair_outside(self, source: _Listing) -> dict[str, str]:
        """Return the ids in the target, by those in the source, of nodes of other groups that relationships end at."""
        inside = {node.id for node in source.embedded.values()}
        uuids = sorted({link.end_uuid for link in source.links if link.end_uuid and link.end not in inside})
        if not uuids:
            return {}
        there, here = await asyncio.gather(_find_by_uuid(self._target, uuids), _find_by_uuid(self._source, uuids))
        return {here[uuid]: there[uuid] for uuid in here.keys() & there.keys()}

    async def _read_nodes(self, part: _ChangedPart) -> tuple[_NodesByKey, _NodesByKey]:
        return await asyncio.gather(_read_nodes(self._source, part.source), _read_nodes(self._target, part.target))

    async def _copy_nodes_of(self, part: _ChangedPart) -> dict[str, str]:
        read = await self._read_nodes(part)
        return await self._write(lambda writer: writer.copy_nodes(*read))

    async def _read_facts(self, part: _ChangedPart) -> tuple[dict[Key, Row], dict[Key, Row], Mapping[Key, str]]:
        facts, found = await asyncio.gather(
            _read_facts(self._source, part.source), _read_facts(self._target, part.target)
        )
        return facts, found, part.target

    async def _write(self, work: Callable[[_Writer], Awaitable[T]]) -> T:
        """Change the target in one transaction, which a later attempt at the move waits for."""

        async def write(transaction: Transaction) -> T:
            if not await transaction.run("moves.check_copying", tenant=self._moved.name, attempt=self._attempt):
                raise JobInterrupted("another worker goes on with the move")
            return await work(_Writer(transaction))

        return await self._target.write(write, metadata={TENANT_OF_WRITES: self._moved.tenant})


class _ChangedPart(NamedTuple):
    """The ids in both graphs, by key, of elements that must be read to see whether they are alike."""

    source: dict[Key, str]
    target: dict[Key, str]


def _changed_parts(
    source: Mapping[Key, _Versioned], target: Mapping[Key, _Versioned], changed_only: bool
) -> Iterator[_ChangedPart]:
    unread = [
        key
        for key, listed in source.items()
        if not changed_only or key not in target or target[key].revision != listed.revision
    ]
    for keys in _parts(unread):
        yield _ChangedPart(
            {key: source[key].id for key in keys}, {key: target[key].id for key in keys if key in target}
        )


class _Writer:
    """Changes the target within a transaction."""

    def __init__(self, transaction: Transaction) -> None:
        self._transaction = transaction

    async def copy_nodes(self, source: _NodesByKey, target: _NodesByKey) -> dict[str, str]:
        """Make the nodes of the target those of the source; return their ids there by their ids in the source."""
        await self.delete(
            "moves.delete_nodes",
            (node.id for key, nodes in target.items() for node in nodes[len(source.get(key, ())) :]),
        )
        ids: dict[str, str] = {}
        replaced, created = [], []
        for key, nodes in source.items():
            known = target.get(key, ())
            for node, there in zip(nodes, known, strict=False):
                ids[node.id] = there.id
                if there.content != node.content:
                    obsolete = [label for label in there.labels if label not in node.labels]
                    replaced.append({**_to_row(node), "id": there.id, "obsolete": obsolete})
            created += [{**_to_row(node), "key": node.id} for node in nodes[len(known) :]]
        for part in _parts(replaced):
            await self._transaction.run("moves.clear_nodes", ids=[row["id"] for row in part])
        for part in _parts(replaced):
            await self._transaction.run("moves.replace_nodes", rows=part)
        for part in _parts(created):
            rows = await self._transaction.run("moves.create_nodes", rows=part)
            ids |= {row["key"]: row["id"] for row in rows}
        return ids

    async def copy_facts(self, facts: Mapping[Key, Row], found: Mapping[Key, Row], there: Mapping[Key, str]) -> None:
        """Make versions of memories in the target, whose ids are `there`, those of the source."""
        new = {key: row for key, row in facts.items() if found.get(key) != row}
        await self.delete("moves.delete_relationships", [there[key] for key in new if key in found])
        for part in _parts(new.values()):
            await self._transaction.run("moves.create_facts", rows=part)

    async def copy_links(self, source: Sequence[_Link], target: Sequence[_Link], ids: Mapping[str, str]) -> None:
        """Make the relationships without vectors those of the source, between nodes whose ids are known."""
        wanted: defaultdict[Key, list[Row]] = defaultdict(list)
        for link in source:
            if link.start in ids and link.end in ids:
                start, end = ids[link.start], ids[link.end]
                row = {"type": link.type, "start": start, "end": end, "properties": link.properties}
                wanted[link.key(start, end)].append(row)
        obsolete = []
        for link in target:
            if rows := wanted.get(link.key(link.start, link.end)):
                rows.pop()
            else:
                obsolete.append(link.id)
        await self.delete("moves.delete_relationships", obsolete)
        for part in _parts(row for rows in wanted.values() for row in rows):
            await self._transaction.run("moves.create_links", rows=part)

    async def create_parts(self, parts: Iterable[tuple[str, str]]) -> None:
        """Make runs the parts of runs over all users."""
        for part in _parts(parts):
            rows = [{"run_id": run_id, "part_id": part_id} for run_id, part_id in part]
            await self._transaction.run("moves.create_parts", rows=rows)

    async def link_changes(self, group_id: str) -> None:
        """Link the changes of a group to the runs that made them."""
        await self._transaction.run("moves.link_changes", group_id=group_id)

    async def delete(self, query: str, ids: Iterable[str]) -> None:
        """Delete elements."""
        for part in _parts(ids):
            await self._transaction.run(query, ids=part)


async def erase_data(graph: Graph, moved: MovedData) -> int:
    """Erase everything that a graph has of what moved; return how many nodes there were."""
    erased = 0
    groups = await moved.list_groups(graph)
    # A user comes last: it is what an interrupted erasure finds the rest by.
    beside = await moved.list_beside_groups(graph)
    for part in _parts(node.id for nodes in beside.values() for node in nodes):
        await graph.execute("moves.delete_nodes", ids=part)
        erased += len(part)
    for group_id in groups:
        listing = await _Listing.of(graph, group_id)
        # A read under the lock of the group, such as an export, comes to its end.
        await graph.execute("moves.lock_group", group_id=group_id)
        plain = [node for nodes in listing.plain.values() for node in nodes]
        plain.sort(key=lambda node: "User" in node.labels)
        for part in _parts([*(node.id for node in listing.embedded.values()), *(node.id for node in plain)]):
            await graph.execute("moves.delete_nodes", ids=part)
            erased += len(part)
    await graph.execute("placements.delete_all_changes", tenant=moved.name)
    return erased


async def _read_nodes(graph: Graph, ids: Mapping[Key, str]) -> _NodesByKey:
    """Return nodes with what they hold; those that are gone are left out."""
    rows = await graph.fetch("moves.read_nodes", ids=list(ids.values())) if ids else []
    keys = {node_id: key for key, node_id in ids.items()}
    return {keys[row["id"]]: [_StoredNode(row["id"], row["labels"], row["properties"])] for row in rows}


async def _read_facts(graph: Graph, ids: Mapping[Key, str]) -> dict[Key, Row]:
    """Return versions of memories with the ids of the entities they connect; those that are gone are left out."""
    rows = await graph.fetch("moves.read_facts", ids=list(ids.values())) if ids else []
    keys = {fact_id: key for key, fact_id in ids.items()}
    return {keys[row["id"]]: {name: row[name] for name in ("start", "end", "properties")} for row in rows}


async def _find_by_uuid(graph: Graph, uuids: Sequence[str]) -> dict[str, str]:
    return {row["uuid"]: row["id"] for row in await graph.fetch("moves.find_by_uuid", uuids=list(uuids))}


def _by_key(nodes: Iterable[_StoredNode]) -> _NodesByKey:
    found: defaultdict[Key, list[_StoredNode]] = defaultdict(list)
    for node in nodes:
        found[node.key].append(node)
    return dict(found)


def _surplus(source: Mapping[Key, _Versioned], target: Mapping[Key, _Versioned]) -> list[str]:
    """Return the ids of what only the target has."""
    return [target[key].id for key in target.keys() - source.keys()]


def _kind(node: _StoredNode) -> str:
    return next((label for label in KEYS if label in node.labels), node.labels[0])


def _to_row(node: _StoredNode) -> Row:
    return {"labels": node.labels, "properties": node.properties}


def _canonical(value: Any) -> Any:
    """Return a value in a form whose text does not depend on the order of properties."""
    if isinstance(value, Mapping):
        return [(name, _canonical(item)) for name, item in sorted(value.items())]
    if isinstance(value, list | tuple):
        return [_canonical(item) for item in value]
    return value


def _parts(items: Iterable[Any]) -> Iterator[list[Any]]:
    remaining = iter(items)
    while part := list(islice(remaining, BATCH_SIZE)):
        yield part
