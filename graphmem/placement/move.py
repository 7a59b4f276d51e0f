"""The job that moves a tenant to another graph while it is in use: copying group by group, then switching."""

from __future__ import annotations

import asyncio
import hashlib
import logging
import math
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from itertools import groupby, islice
from operator import itemgetter
from typing import Any, Literal, NamedTuple, TypeVar

from pydantic import BaseModel, Field

from graphmem.jobs.job import JobAction, JobOutcome
from graphmem.jobs.kinds import JobKind, JobPayload, Steps
from graphmem.neo4j.driver import Graph, Transaction
from graphmem.neo4j.driver_values import Row
from graphmem.neo4j.placed_graph import (
    COUNTING,
    ENDED,
    LEASE_SECONDS,
    OPEN,
    TENANT_OF_WRITES,
    GraphLocation,
    MoveState,
    PlacedGraph,
)
from graphmem.runtime.errors import Conflict, DatabaseUnavailable, GraphmemError, JobStoreUnavailable, Unavailable
from graphmem.runtime.times import Clock, to_micros
from graphmem.tenants.owners import Owner

BATCH_SIZE = 500
"""Number of elements read or written at once."""

KEYS = {"User": "group_id", "EntityAlias": "key", "Session": "session_id", "ConsolidationRun": "id", "Webhook": "id"}
"""Nodes without a revision that are updated in place, because relationships end there, and their keys in a group."""

GROUPS_AT_ONCE = 8
"""Number of groups copied concurrently."""

T = TypeVar("T")

Key = tuple[Any, ...]
"""The identity of an element in every graph."""


class _Element(NamedTuple):
    """An element of one graph: its id there, and a state that differs when it has changed."""

    id: str
    state: Any


class _Link(NamedTuple):
    """A relationship without a revision; `start` and `end` are ids in one graph."""

    id: str
    type: str
    start: str
    end: str
    outside_key: list[str | None]
    properties: Row


@dataclass(slots=True)
class _Listing:
    """The elements of a group, or of the tenant as a whole, in one graph."""

    nodes: dict[Key, _Element]
    facts: dict[Key, _Element]
    links: dict[Key, _Link]

    @classmethod
    def from_row(cls, row: Row) -> _Listing:
        """Return the listing of a row that a listing query returned."""
        nodes: dict[Key, _Element] = {}
        seen: Counter[Key] = Counter()
        for node_id, labels, properties in row["plain"]:
            if not labels:
                continue  # deleted while being read
            content = _canonical((sorted(labels), properties))
            label = next((label for label in labels if label in KEYS), None)
            key: Key = (label, properties.get(KEYS[label])) if label else (labels[0], _digest(content))
            seen[key] += 1
            nodes[*key, seen[key]] = _Element(node_id, content)
        for node_id, label, uuid, state in row["versioned"]:
            nodes[label, uuid] = _Element(node_id, state)
        facts = {("RELATES_TO", uuid): _Element(fact_id, state) for fact_id, uuid, state in row["facts"]}
        keys = {node.id: key for key, node in nodes.items()}
        links = {}
        for link in map(_Link._make, row["links"]):
            end = keys.get(link.end) or tuple(link.outside_key)
            links[link.type, keys.get(link.start), end, repr(_canonical(link.properties))] = link
        return cls(nodes, facts, links)

    def describe(self) -> Mapping[Key, Any]:
        """Return what must be equal in both graphs: the keys and states of all elements."""
        states = {key: element.state for key, element in (*self.nodes.items(), *self.facts.items())}
        return states | dict.fromkeys(self.links)


@dataclass(slots=True)
class ElementDigest:
    """The number of elements of each kind in a group or tenant, and their order-independent digest."""

    counts: Counter[str] = field(default_factory=Counter)
    digest: int = 0

    @classmethod
    def of(cls, elements: Mapping[Key, Any]) -> ElementDigest:
        """Summarize elements by their keys and states."""
        digest = sum(int(_digest(item), 16) for item in elements.items())
        return cls(Counter(str(key[0]) for key in elements), digest % 2**128)

    @classmethod
    def total(cls, summaries: Iterable[ElementDigest]) -> ElementDigest:
        """Return the combined digest of several groups."""
        whole = cls()
        for summary in summaries:
            whole.counts += summary.counts
            whole.digest = (whole.digest + summary.digest) % 2**128
        return whole


class TenantCopy:
    """A tenant's copy in `target`, made or erased by one attempt at a move.

    Methods raise DatabaseUnavailable, including when another attempt has begun.
    """

    def __init__(self, source: Graph, target: Graph, tenant: str, attempt: int) -> None:
        self._source = source
        self._target = target
        self._tenant = tenant
        self._attempt = attempt
        self._prefix = Owner(tenant, "").group_id
        self._equal: dict[str, tuple[tuple[str, int] | None, ElementDigest]] = {}
        self._of_tenant: ElementDigest | None = None

    async def catch_up(self) -> bool:
        """Copy the differences once; return whether both graphs are now equal, if nothing is written meanwhile."""
        states, there = await asyncio.gather(self._list_groups(self._source), self._list_groups(self._target))
        differing = [
            group_id
            for group_id in sorted({*states, *there, *self._equal})
            if group_id not in self._equal or self._equal[group_id][0] != states.get(group_id)
        ]
        # The tenant's own group first: relationships of the other groups end at its entities.
        are_equal = [await self._copy_group(group_id) for group_id in differing[:1]]
        for part in batches(differing[1:], GROUPS_AT_ONCE):
            are_equal += await asyncio.gather(*map(self._copy_group, part))
        self._of_tenant = await self._copy(None)
        return all(are_equal) and self._of_tenant is not None

    def summarize(self) -> ElementDigest:
        """Return the digest of both graphs, once they are equal."""
        return ElementDigest.total(filter(None, [self._of_tenant, *(summary for _, summary in self._equal.values())]))

    async def erase(self, graph: Graph) -> int:
        """Erase all data of the tenant in a graph; return the number of nodes erased."""
        erased = 0
        for group_id in (None, *await self._list_groups(graph)):
            if group_id is not None:  # let reads under the group's lock, such as exports, finish
                await self._lock(graph, group_id)
            nodes = (await self._list(graph, group_id)).nodes
            # The user node last: an interrupted erasure finds the rest through it.
            ids = [node.id for _, node in sorted(nodes.items(), key=lambda item: item[0][0] == "User")]
            for part in batches(ids):
                await self._write(graph, ("moves.delete_nodes", {"ids": part}))
            erased += len(ids)
        return erased

    async def _copy_group(self, group_id: str) -> bool:
        """Copy a group; return whether it is now equal in both graphs."""
        # All changes of a revision can be read once its write has released the lock.
        state = await self._lock(self._source, group_id)
        summary = await self._copy(group_id)
        if summary is None:
            self._equal.pop(group_id, None)
            return False
        self._equal[group_id] = state, summary
        return True

    async def _copy(self, group_id: str | None) -> ElementDigest | None:
        """Copy a group, or the data of the tenant as a whole; return None if the graphs still differ."""
        for may_copy in (True, False):
            source, target = await asyncio.gather(
                self._list(self._source, group_id), self._list(self._target, group_id)
            )
            if (elements := source.describe()) == target.describe():
                return ElementDigest.of(elements)
            if may_copy:
                await self._make_equal(source, target)
        return None

    async def _make_equal(self, source: _Listing, target: _Listing) -> None:
        """Write missing elements to the target, and remove elements that the source lacks."""
        ids = {node.id: target.nodes[key].id for key, node in source.nodes.items() if key in target.nodes}
        nodes, facts = _changed(source.nodes, target.nodes), _changed(source.facts, target.facts)
        obsolete = [("moves.delete_relationships", target.links[key].id) for key in target.links.keys() - source.links]
        replaced = set(facts)
        obsolete += [
            ("moves.delete_relationships", fact.id)
            for key, fact in target.facts.items()
            if key not in source.facts or source.facts[key].id in replaced
        ]
        obsolete += [("moves.delete_nodes", target.nodes[key].id) for key in target.nodes.keys() - source.nodes]
        obsolete += [("moves.free_names", ids[node_id]) for node_id in nodes if node_id in ids]
        for removed in batches(obsolete):
            found = groupby(removed, key=itemgetter(0))
            await self._write(
                self._target, *((query, {"ids": [element_id for _, element_id in rows]}) for query, rows in found)
            )
        for part in batches(nodes):
            rows = await _read(self._source, "moves.read_nodes", ids=part)
            known = [{**row, "id": ids[row["id"]]} for row in rows if row["id"] in ids]
            new = [{**row, "source_id": row["id"]} for row in rows if row["id"] not in ids]
            created = await self._write(
                self._target, ("moves.replace_nodes", {"rows": known}), ("moves.create_nodes", {"rows": new})
            )
            ids |= {row["source_id"]: row["id"] for row in created}
        for part in batches(facts):
            rows = await _read(self._source, "moves.read_facts", ids=part)
            await self._write(self._target, ("moves.create_facts", {"rows": rows}))
        missing = [link for key, link in source.links.items() if key not in target.links]
        ids |= await self._find_outside([link for link in missing if link.end not in ids])
        links = [
            {"type": link.type, "start": ids[link.start], "end": ids[link.end], "properties": link.properties}
            for link in missing
            if link.start in ids and link.end in ids
        ]
        for rows in batches(links):
            await self._write(self._target, ("moves.create_links", {"rows": rows}))

    async def _find_outside(self, links: Sequence[_Link]) -> dict[str, str]:
        """Return the target ids, by source id, of nodes in other groups where relationships end."""
        ids: dict[str, str] = {}
        for part in batches(links):
            by_key = {tuple(link.outside_key): link.end for link in part}
            rows = await _read(self._target, "moves.find_nodes", prefix=self._prefix, keys=list(map(list, by_key)))
            ids |= {by_key[tuple(row["key"])]: row["id"] for row in rows}
        return ids

    async def _list_groups(self, graph: Graph) -> dict[str, tuple[str, int]]:
        """Return the life and revision of each group in a graph."""
        rows = await _read(graph, "moves.list_groups", tenant=self._tenant)
        return {row["group_id"]: (row["life"], row["revision"]) for row in rows}

    async def _lock(self, graph: Graph, group_id: str) -> tuple[str, int] | None:
        """Wait until no read or write holds a group's lock; return its life and revision."""
        rows = await graph.execute("users.wait_for_writer", group_id=group_id)
        return (rows[0]["life"], rows[0]["revision"]) if rows else None

    async def _list(self, graph: Graph, group_id: str | None) -> _Listing:
        if group_id is None:
            [row] = await _read(graph, "moves.list_of_tenant", tenant=self._tenant, prefix=self._prefix)
        else:
            [row] = await _read(graph, "moves.list_group", group_id=group_id)
        return _Listing.from_row(row)

    async def _write(self, graph: Graph, *queries: tuple[str, Mapping[str, list[Any]]]) -> list[Row]:
        """Run queries in a transaction that later attempts wait for, and return the last query's rows."""

        async def write(transaction: Transaction) -> list[Row]:
            if not await transaction.run("placements.check_barrier", tenant=self._tenant, attempt=self._attempt):
                raise attempt_ended()
            rows = []
            for name, parameters in queries:
                rows = await transaction.run(name, **parameters) if any(parameters.values()) else []
            return rows

        return await graph.write(write, metadata={TENANT_OF_WRITES: self._tenant})


async def _read(graph: Graph, query: str, **parameters: Any) -> list[Row]:
    """Run a read query that also finds users being erased: their erasure moves with them and continues there."""
    return await graph.execute(query, **parameters)


def attempt_ended() -> DatabaseUnavailable:
    """Return the error of an attempt that is no longer the latest; its job starts another one."""
    return DatabaseUnavailable(
        "Another attempt at the move has begun, or writes went on before it ended.", retry_after=1
    )


def _changed(source: Mapping[Key, _Element], target: Mapping[Key, _Element]) -> list[str]:
    """Return the source ids of elements that the target lacks or has in another state."""
    return [element.id for key, element in source.items() if key not in target or target[key].state != element.state]


def _canonical(value: Any) -> Any:
    """Return a value in a form independent of property order."""
    if isinstance(value, Mapping):
        return [(name, _canonical(item)) for name, item in sorted(value.items())]
    if isinstance(value, (list, tuple)):
        return [_canonical(item) for item in value]
    return value


def _digest(value: Any) -> str:
    return hashlib.blake2b(repr(value).encode(), digest_size=16).hexdigest()


def batches(items: Iterable[T], size: int = BATCH_SIZE) -> Iterator[list[T]]:
    """Yield items in lists of up to `size`."""
    remaining = iter(items)
    while batch := list(islice(remaining, size)):
        yield batch


BARRIER_TIME = timedelta(seconds=20)
"""How long a barrier stays closed after the process that closed it has ended."""

SWITCH_BUDGETS = (1.0, 3.0, 9.0)
"""Seconds that writes wait in each attempt to switch; then the attempt is given up and writes continue."""

QUICK_SECONDS = 0.25
"""Maximum seconds of a pass that is short enough for a switch."""

MARGIN_SECONDS = 0.1
"""Seconds to wait beyond the time for which other processes cache locations."""

log = logging.getLogger(__name__)


class MovePayload(JobPayload):
    """A tenant, and the graphs it moves between."""

    tenant: str
    source: str
    target: str

    @property
    def partition(self) -> str:
        """The partition of the tenant's jobs without a user, so that its moves run one after another."""
        return Owner(self.tenant, "").group_id


MOVE_JOB = JobKind("move", MovePayload)
"""Moves a tenant to another graph."""


class SwitchReport(BaseModel):
    """The tenant's data in both graphs at the switch, as counts by kind and a digest, and how long writes waited."""

    counts: dict[str, int] = Field(default_factory=dict)
    digest: str = ""
    waited_ms: int = 0
    tries: int = 0


class MoveAction(JobAction):
    """A tenant that was moved; `digest` is the same in both graphs, `waited_ms` is how long its writes waited."""

    action: Literal["move"] = "move"
    tenant: str
    source: str
    target: str
    counts: dict[str, int]
    digest: str
    waited_ms: int
    tries: int
    erased: int


class MoveJob:
    """Handles move jobs."""

    def __init__(self, placed: PlacedGraph, clock: Clock) -> None:
        self._placed = placed
        self._clock = clock

    async def handle(self, payload: MovePayload, steps: Steps) -> JobOutcome:
        """Handle a job of kind `move`; if it fails, the tenant stays in the source."""
        move = Move(self._placed, self._clock, payload, steps.job_id)
        try:
            report = await steps.run_idempotent("move", move.run, SwitchReport)
        except (DatabaseUnavailable, JobStoreUnavailable):
            raise  # it continues later
        except GraphmemError:
            await move.give_up()
            raise
        erased = await steps.run_idempotent("erase", move.erase)
        done = MoveAction(
            tenant=payload.tenant, source=payload.source, target=payload.target, erased=erased, **report.model_dump()
        )
        return JobOutcome(actions=[done])


@dataclass(slots=True)
class Move:
    """A job's move of a tenant; each call of `run` is an attempt."""

    placed: PlacedGraph
    clock: Clock
    payload: MovePayload
    job_id: str

    async def run(self) -> SwitchReport:
        """Copy the tenant and switch it, unless an earlier attempt has; return the report."""
        location = await self._find_location()
        if location.graph == self.payload.target and location.job_id == self.job_id:
            return SwitchReport.model_validate_json(location.report or "{}")
        source, target = await self._open_graphs()
        await self._check_models(source, target)
        attempt = await self._begin()
        await self._set_barrier(source, attempt, COUNTING)
        # Processes that still expect the tenant there ask the home graph.
        await self._set_barrier(target, attempt, ENDED)
        # Again: a re-embedding that has begun meanwhile waits only for the moves it sees, and may have missed this one.
        await self._check_models(source, target)
        for graph in (source, target):
            await self._await_writers(graph)
        copy = TenantCopy(source, target, self.payload.tenant, attempt)
        await self._catch_up(copy)
        return await self._switch(copy, attempt, source, target)

    async def erase(self) -> int:
        """Erase the source; return the number of nodes erased."""
        await asyncio.sleep(2 * LEASE_SECONDS)
        location = await self._find_location()
        if self.payload.source in (location.graph, location.target):
            return 0  # a later move has returned or is returning the tenant
        source, target = await self._open_graphs()
        await self._set_barrier(source, location.attempt, ENDED)
        return await TenantCopy(source, target, self.payload.tenant, location.attempt).erase(source)

    async def give_up(self) -> None:
        """Leave the tenant where it is, and erase the copy."""
        rows = await self.placed.home.execute(
            "placements.give_up", tenant=self.payload.tenant, graph=self.payload.source, job_id=self.job_id
        )
        self.placed.locations.expire()
        if not rows:
            return
        attempt = rows[0]["attempt"]
        try:
            source, target = await self._open_graphs()
            await self._set_barrier(source, attempt, OPEN)
            await self._set_barrier(target, attempt, ENDED)
            await self._await_writers(target)
            await TenantCopy(source, target, self.payload.tenant, attempt).erase(target)
        except Unavailable as error:
            log.warning("A move was given up, and its copy is not erased yet: %s", error.detail)

    # Parts of an attempt

    async def _begin(self) -> int:
        """Return the number of this attempt; raise Conflict if the tenant lives elsewhere or is already moving."""
        rows = await self.placed.home.execute(
            "placements.begin",
            tenant=self.payload.tenant,
            graph=self.payload.source,
            target=self.payload.target,
            job_id=self.job_id,
            now=self.clock(),
        )
        self.placed.locations.expire()
        if not rows:
            raise Conflict(
                f"The tenant does not live in {self.payload.source!r} or moves already: list the placements, then ask "
                "again."
            )
        return int(rows[0]["attempt"])

    async def _switch(self, copy: TenantCopy, attempt: int, source: Graph, target: Graph) -> SwitchReport:
        """Hold the tenant's writes until everything is copied, then record the target as its location.

        Raises Conflict if every attempt takes too long.
        """
        # From now on, reads look up the location, so that none misses a write after the switch.
        await self._set_state(attempt, MoveState.SWITCHING)
        await asyncio.sleep(LEASE_SECONDS + MARGIN_SECONDS)
        for number, budget in enumerate(SWITCH_BUDGETS, 1):
            await copy.catch_up()
            started = time.monotonic()
            await self._set_barrier(source, attempt, to_micros(self.clock() + BARRIER_TIME))
            try:
                is_equal = await self._finish(copy, source, budget)
            except BaseException:
                await self._reopen(attempt, source)
                raise
            if is_equal:
                waited = round(1000 * (time.monotonic() - started))
                summary = copy.summarize()
                report = SwitchReport(
                    counts=dict(sorted(summary.counts.items())),
                    digest=f"{summary.digest:032x}",
                    waited_ms=waited,
                    tries=number,
                )
                await self._name_target(attempt, report)
                await self._set_barrier(target, attempt, OPEN)
                return report
            await self._set_barrier(source, attempt, COUNTING)
            log.info("a switch took too long and is tried again", extra={"seconds": budget})
        await self._set_state(attempt, MoveState.COPYING)
        raise Conflict(
            f"There are too many writes to switch within {SWITCH_BUDGETS[-1]:.0f} seconds: ask for the "
            "move when less is written."
        )

    async def _finish(self, copy: TenantCopy, source: Graph, seconds: float) -> bool:
        """Copy the remaining changes while writes wait; return whether both graphs are equal within `seconds`."""
        try:
            async with asyncio.timeout(seconds):
                await self._await_writers(source)
                while not await copy.catch_up():
                    pass
                return True
        except TimeoutError:
            return False

    async def _name_target(self, attempt: int, report: SwitchReport) -> None:
        """Switch the tenant. If the outcome is unknown, the barrier stays closed until it ends, which decides it."""
        rows = await self.placed.home.execute(
            "placements.switch",
            tenant=self.payload.tenant,
            attempt=attempt,
            report=report.model_dump_json(),
            now=self.clock(),
        )
        self.placed.locations.expire()
        if not rows:
            raise attempt_ended()

    async def _catch_up(self, copy: TenantCopy) -> None:
        """Copy recent writes until a pass is short, or not much shorter than the previous one."""
        last = math.inf
        while True:
            started = time.monotonic()
            await copy.catch_up()
            seconds = time.monotonic() - started
            if seconds < QUICK_SECONDS or seconds > last / 2:
                return
            last = seconds

    async def _reopen(self, attempt: int, source: Graph) -> None:
        try:
            await self._set_barrier(source, attempt, COUNTING)
            await self._set_state(attempt, MoveState.COPYING)
        except Unavailable as error:
            log.warning("A write barrier stays closed until its time is over: %s", error.detail)

    async def _find_location(self) -> GraphLocation:
        self.placed.locations.expire()
        return await self.placed.locations.find(self.payload.tenant)

    async def _open_graphs(self) -> tuple[Graph, Graph]:
        return await self.placed.open_named(self.payload.source), await self.placed.open_named(self.payload.target)

    async def _check_models(self, source: Graph, target: Graph) -> None:
        states = [await graph.vector_state(refresh=True) for graph in (source, target)]
        if any(state is None or state.next is not None for state in states) or states[0] != states[1]:
            raise Conflict("Both graphs must have vectors of one model, and no re-embedding under way.")

    async def _set_state(self, attempt: int, state: MoveState) -> None:
        rows = await self.placed.home.execute(
            "placements.set_state", tenant=self.payload.tenant, attempt=attempt, state=state.value
        )
        self.placed.locations.expire()
        if not rows:
            raise attempt_ended()

    async def _set_barrier(self, graph: Graph, attempt: int, until: int | None) -> None:
        """Set the time, in microseconds since 1970, until which a graph's barrier is closed."""
        if not await graph.execute("placements.set_barrier", tenant=self.payload.tenant, attempt=attempt, until=until):
            raise attempt_ended()

    async def _await_writers(self, graph: Graph) -> None:
        """Wait until the tenant's current writes have ended."""
        writers = await self._list_writers(graph)
        while writers:
            await asyncio.sleep(0.01)
            writers &= await self._list_writers(graph)

    async def _list_writers(self, graph: Graph) -> set[str]:
        return {row["id"] for row in await graph.execute("placements.list_writers", tenant=self.payload.tenant)}
