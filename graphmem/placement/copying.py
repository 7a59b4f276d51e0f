"""Makes what one graph has of a tenant the same as in another, element by element, as often as asked.

Nodes with vectors are known by their ids, some others by a key, the rest by what they hold; so are relationships. What
is alike stays, what differs is replaced, what the source lacks is deleted. The work can therefore end anywhere and be
done again. Elements with vectors are listed with their revisions, so that a pass reads only those that have changed.
"""

from __future__ import annotations

import hashlib
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, NamedTuple

from graphmem.jobs.kinds import JobInterrupted
from graphmem.neo4j.driver import Graph, Row, Transaction
from graphmem.tenants.owners import Owner

BATCH_SIZE = 500
"""Nodes and relationships that are read or written at once."""

KEYS = {"User": "group_id", "EntityAlias": "key", "Session": "session_id", "ConsolidationRun": "id", "Webhook": "id"}
"""Labels of nodes without vectors that relationships or long lives tie to a place, and their keys within a group."""

EMBEDDED_LABELS = ("Entity", "Episodic")
"""Labels of nodes with vectors; their `uuid` is their key."""

Key = tuple[Any, ...]
"""What an element of one graph and one of the other have in common."""


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


class _Listed(NamedTuple):
    """A node or relationship of one graph: its id there, its revision, and what it holds where that was read."""

    id: str
    revision: int = 0
    row: Row | None = None


class TenantCopy:
    """The copy of a tenant in `target`, made by an attempt at a move.

    Every write checks that the attempt is the latest one. Methods raise DatabaseUnavailable, and JobInterrupted
    once it is not.
    """

    def __init__(self, source: Graph, target: Graph, tenant: str, attempt: str) -> None:
        self._source = source
        self._target = target
        self._tenant = tenant
        self._attempt = attempt

    @property
    def _of_tenant(self) -> dict[str, str]:
        return {"tenant": self._tenant, "prefix": Owner(self._tenant, "").group_id}

    async def list_groups(self) -> list[str]:
        """Return the groups that either graph has."""
        found: set[str] = set()
        for graph in (self._source, self._target):
            found |= {row["group_id"] for row in await graph.fetch("moves.list_groups", tenant=self._tenant)}
        return sorted(found)

    async def copy_tenant(self) -> None:
        """Copy what belongs to the tenant as a whole."""
        source, target = [await _list_plain(graph, "moves.list_of_tenant", self._of_tenant) for graph in self._graphs]
        await self._copy_nodes(source, target)

    async def copy_nodes(self, group_id: str, *, changed_only: bool) -> None:
        """Copy the nodes of a group; with `changed_only`, of those with vectors only what has another revision."""
        group = {"group_id": group_id}
        source, target = [await _list_plain(graph, "moves.list_plain", group) for graph in self._graphs]
        await self._copy_nodes(source, target)
        known, there = [await _list_embedded(graph, group_id) for graph in self._graphs]
        for pair in self._changed_pairs(known, there, changed_only):
            await self._copy_nodes(
                *[await _read_nodes(graph, part) for graph, part in zip(self._graphs, pair, strict=True)]
            )
        await self._delete("moves.delete_nodes", [there[key].id for key in there.keys() - known.keys()])

    async def copy_edges(self, group_id: str, *, changed_only: bool) -> None:
        """Copy the relationships of a group, whose nodes have been copied."""
        source, target = [await _list_facts(graph, group_id) for graph in self._graphs]
        await self._delete("moves.delete_relationships", [target[key].id for key in target.keys() - source.keys()])
        for pair in self._changed_pairs(source, target, changed_only):
            rows, known = [await _read_facts(graph, part) for graph, part in zip(self._graphs, pair, strict=True)]
            new = {key: row for key, row in rows.items() if known.get(key, {}).get("content") != row["content"]}
            await self._delete("moves.delete_relationships", [known[key]["id"] for key in new if key in known])
            await self._create("moves.create_facts", [row["content"] for row in new.values()])
        await self._copy_links(group_id)

    async def describe(self, group_id: str) -> tuple[Side, Side]:
        """Return what both graphs have of a group; of what has vectors, ids and revisions."""
        sides = []
        for graph in self._graphs:
            side = Side()
            for listed in (await _list_plain(graph, "moves.list_plain", {"group_id": group_id})).values():
                for node in listed:
                    _add_node(side, node.row)
            for key, embedded in (await _list_embedded(graph, group_id)).items():
                side.add(key[0], key, embedded.revision)
            for key, fact in (await _list_facts(graph, group_id)).items():
                side.add("RELATES_TO", key, fact.revision)
            for link in await graph.fetch("moves.list_links", group_id=group_id):
                side.add(link["type"], link["end_uuid"], link["properties"])
            sides.append(side)
        return sides[0], sides[1]

    async def describe_tenant(self) -> tuple[Side, Side]:
        """Return what both graphs have of the tenant as a whole."""
        sides = []
        for graph in self._graphs:
            side = Side()
            for listed in (await _list_plain(graph, "moves.list_of_tenant", self._of_tenant)).values():
                for node in listed:
                    _add_node(side, node.row)
            sides.append(side)
        return sides[0], sides[1]

    @property
    def _graphs(self) -> tuple[Graph, Graph]:
        return self._source, self._target

    def _changed_pairs(
        self, source: Mapping[Key, _Listed], target: Mapping[Key, _Listed], changed_only: bool
    ) -> Iterator[tuple[dict[Key, _Listed], dict[Key, _Listed]]]:
        """Yield, in parts, what must be read of both graphs to see whether it is alike."""
        unread = [
            key
            for key, listed in source.items()
            if not changed_only or key not in target or target[key].revision != listed.revision
        ]
        for keys in _parts(unread):
            yield {key: source[key] for key in keys}, {key: target[key] for key in keys if key in target}

    async def _copy_nodes(
        self, source: Mapping[Key, Sequence[_Listed]], target: Mapping[Key, Sequence[_Listed]]
    ) -> None:
        """Make the nodes of the target those of the source, where both have been read."""
        surplus = [node for key, nodes in target.items() for node in nodes[len(source.get(key, ())) :]]
        await self._delete("moves.delete_nodes", [node.id for node in surplus])
        replaced, created = [], []
        for key, nodes in source.items():
            known = target.get(key, ())
            for position, node in enumerate(nodes):
                assert node.row is not None, "it has been read"
                if position >= len(known):
                    created.append({"key": "", "labels": node.row["labels"], "properties": node.row["properties"]})
                elif _node_content(known[position].row) != _node_content(node.row):
                    there = known[position].row
                    assert there is not None, "it has been read"
                    labels = node.row["labels"]
                    obsolete = [label for label in there["labels"] if label not in labels]
                    replaced.append(
                        {
                            "id": known[position].id,
                            "labels": labels,
                            "obsolete": obsolete,
                            "properties": node.row["properties"],
                        }
                    )
        for part in _parts(replaced):
            await self._write(("moves.clear_nodes", {"ids": [row["id"] for row in part]}))
        for part in _parts(replaced):
            await self._write(("moves.replace_nodes", {"rows": part}))
        for part in _parts(created):
            await self._write(("moves.create_nodes", {"rows": part}))

    async def _copy_links(self, group_id: str) -> None:
        """Make the relationships without vectors those of the source."""
        ids = await self._pair_nodes(group_id)
        rows = await self._source.fetch("moves.list_links", group_id=group_id)
        outside = {row["end_uuid"] for row in rows if row["end"] not in ids and row["end_uuid"]}
        if outside:
            source, target = [
                {row["uuid"]: row["id"] for row in await graph.fetch("moves.find_by_uuid", uuids=sorted(outside))}
                for graph in self._graphs
            ]
            ids |= {source[uuid]: target[uuid] for uuid in source.keys() & target.keys()}
        wanted: defaultdict[Key, list[Row]] = defaultdict(list)
        for row in rows:
            if row["end"] not in ids or row["start"] not in ids:
                continue  # it was created meanwhile, and is noted
            link = {"type": row["type"], "start": ids[row["start"]], "end": ids[row["end"]]}
            wanted[_link_key(link, row["properties"])].append({**link, "properties": row["properties"]})
        obsolete = []
        for row in await self._target.fetch("moves.list_links", group_id=group_id):
            links = wanted.get(_link_key(row, row["properties"]))
            if links:
                links.pop()
            else:
                obsolete.append(row["id"])
        await self._delete("moves.delete_relationships", obsolete)
        await self._create("moves.create_links", [link for links in wanted.values() for link in links])

    async def _pair_nodes(self, group_id: str) -> dict[str, str]:
        """Return the ids in the target of the nodes of a group, by their ids in the source."""
        ids: dict[str, str] = {}
        group = {"group_id": group_id}
        source, target = [await _list_plain(graph, "moves.list_plain", group) for graph in self._graphs]
        for key, nodes in source.items():
            ids |= {node.id: there.id for node, there in zip(nodes, target.get(key, ()), strict=False)}
        known, found = [await _list_embedded(graph, group_id) for graph in self._graphs]
        return ids | {known[key].id: found[key].id for key in known.keys() & found.keys()}

    async def _delete(self, query: str, ids: Iterable[str]) -> None:
        for part in _parts(ids):
            await self._write((query, {"ids": part}))

    async def _create(self, query: str, rows: Iterable[Row]) -> None:
        for part in _parts(rows):
            result = await self._write((query, {"rows": part}))
            if result[0]["created"] < len(part):
                # Nodes that were deleted meanwhile; what deleted them is noted, so that a later pass is complete.
                continue

    async def _write(self, query: tuple[str, dict[str, Any]]) -> list[Row]:
        name, parameters = query

        async def work(transaction: Transaction) -> list[Row]:
            if not await transaction.run("moves.check_copying", tenant=self._tenant, attempt=self._attempt):
                raise JobInterrupted("another worker goes on with the move")
            return await transaction.run(name, **parameters)

        return await self._target.write(work)


async def erase_tenant(graph: Graph, tenant: str) -> int:
    """Erase everything that a graph has of a tenant; return how many nodes there were."""
    of_tenant = {"tenant": tenant, "prefix": Owner(tenant, "").group_id}
    erased = 0
    groups = [row["group_id"] for row in await graph.fetch("moves.list_groups", tenant=tenant)]
    for group_id in groups:
        embedded = await _list_embedded(graph, group_id)
        plain = await _list_plain(graph, "moves.list_plain", {"group_id": group_id})
        users = [node.id for key, nodes in plain.items() if key[0] == "User" for node in nodes]
        others = [node.id for key, nodes in plain.items() if key[0] != "User" for node in nodes]
        # A read under the lock of the group, such as an export, comes to its end.
        await graph.execute("moves.lock_group", group_id=group_id)
        # The user comes last: it is what an interrupted erasure finds the rest by.
        for part in _parts([*(node.id for node in embedded.values()), *others, *users]):
            await graph.execute("moves.delete_nodes", ids=part)
            erased += len(part)
    rest = await _list_plain(graph, "moves.list_of_tenant", of_tenant)
    for part in _parts(node.id for nodes in rest.values() for node in nodes):
        await graph.execute("moves.delete_nodes", ids=part)
        erased += len(part)
    await graph.execute("placements.delete_all_changes", tenant=tenant)
    return erased


async def _list_plain(graph: Graph, query: str, parameters: Mapping[str, str]) -> dict[Key, list[_Listed]]:
    """Return nodes without vectors, read in full, by their keys."""
    found: defaultdict[Key, list[_Listed]] = defaultdict(list)
    for row in await graph.fetch(query, **parameters):
        found[_plain_key(row)].append(_Listed(row["id"], row=row))
    return dict(found)


def _plain_key(row: Row) -> Key:
    label = next((label for label in row["labels"] if label in KEYS), None)
    return (label, row["properties"].get(KEYS[label])) if label else ("", repr(_canonical(_node_content(row))))


async def _list_embedded(graph: Graph, group_id: str) -> dict[Key, _Listed]:
    rows = await graph.fetch_value("moves.list_embedded", group_id=group_id)
    return {(label, uuid): _Listed(node_id, revision) for node_id, label, uuid, revision in rows}


async def _read_nodes(graph: Graph, listed: Mapping[Key, _Listed]) -> dict[Key, list[_Listed]]:
    """Return nodes with what they hold; those that are gone are left out."""
    if not listed:
        return {}
    keys = {node.id: key for key, node in listed.items()}
    rows = await graph.fetch("moves.read_nodes", ids=list(keys))
    return {keys[row["id"]]: [_Listed(row["id"], row=row)] for row in rows}


async def _list_facts(graph: Graph, group_id: str) -> dict[Key, _Listed]:
    rows = await graph.fetch_value("moves.list_facts", group_id=group_id)
    return {(uuid,): _Listed(fact_id, revision) for fact_id, uuid, revision in rows}


async def _read_facts(graph: Graph, listed: Mapping[Key, _Listed]) -> dict[Key, Row]:
    """Return versions of memories with their ends; those that are gone are left out."""
    if not listed:
        return {}
    keys = {fact.id: key for key, fact in listed.items()}
    rows = await graph.fetch("moves.read_facts", ids=list(keys))
    return {
        keys[row["id"]]: {"id": row["id"], "content": {name: row[name] for name in ("start", "end", "properties")}}
        for row in rows
    }


def _node_content(row: Row | None) -> tuple[list[str], dict[str, Any]]:
    assert row is not None, "it has been read"
    return sorted(row["labels"]), row["properties"]


def _add_node(side: Side, row: Row | None) -> None:
    labels, properties = _node_content(row)
    side.add(next((label for label in (*EMBEDDED_LABELS, *KEYS) if label in labels), labels[0]), labels, properties)


def _link_key(link: Mapping[str, Any], properties: Mapping[str, Any]) -> Key:
    return link["type"], link["start"], link["end"], repr(_canonical(properties))


def _canonical(value: Any) -> Any:
    """Return a value in a form whose text does not depend on the order of properties."""
    if isinstance(value, Mapping):
        return [(name, _canonical(item)) for name, item in sorted(value.items())]
    return value


def _parts(items: Iterable[Any]) -> Iterator[list[Any]]:
    remaining = iter(items)
    while part := list(islice(remaining, BATCH_SIZE)):
        yield part
