"""One graph for all stores where tenants live in several: each operation goes to the graph of its tenant.

A write first passes the gate of its tenant, a node of the graph it writes to. While a tenant moves, the gate has it
note which groups it changes; for the moment of the switch it has it wait; and once the tenant has left, the write goes
to the new graph. So nothing is written to a graph that the tenant has left, whatever a process believes.

A tenant of which users live in other graphs is divided (`neo4j.divided`), which its gate says as well.
"""

from __future__ import annotations

import asyncio
import logging
import random
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any, TypeVar

from graphmem.models.embedding_models import VectorState
from graphmem.neo4j.assignments import AssignmentTable, name_of_group
from graphmem.neo4j.divided import DividedTenant, GateClosed
from graphmem.neo4j.driver import Graph, StreamTransaction, Transaction
from graphmem.neo4j.driver_values import Row
from graphmem.neo4j.work import graph_of_work, tenant_of_work, working_in
from graphmem.runtime.errors import ConfigurationError, DatabaseUnavailable, Unavailable
from graphmem.runtime.settings import HOME_GRAPH

GATE_SECONDS = 25.0
"""Seconds that a write waits for a switch before it fails."""

GATE_PAUSE, MAX_GATE_PAUSE = 0.05, 0.2
"""Seconds between two questions whether a switch is over, at first and at most."""

TENANT_OF_WRITES = "graphmem_tenant"
"""The entry of the metadata of a transaction that names the tenant it writes for."""

T = TypeVar("T")

log = logging.getLogger(__name__)


class PlacedDatabase:
    """A graph beside the home graph; it is prepared when it first answers.

    `prepare` migrates it and checks its embedding model.
    """

    def __init__(self, name: str, graph: Graph, prepare: Callable[[Graph], Awaitable[None]]) -> None:
        self.name = name
        self.graph = graph
        self._prepare = prepare
        self._is_ready = False
        self._preparing = asyncio.Lock()

    async def open(self) -> Graph:
        """Return the graph, ready for use; raise DatabaseUnavailable or ConfigurationError, which name it."""
        if not self._is_ready:
            async with self._preparing, self.naming():
                if not self._is_ready:
                    await self.graph.verify_connectivity()
                    await self._prepare(self.graph)
                    self._is_ready = True
        return self.graph

    @asynccontextmanager
    async def naming(self) -> AsyncIterator[None]:
        """Have the errors of the block say which graph they are about."""
        try:
            yield
        except DatabaseUnavailable as error:
            detail = f"The graph {self.name!r} is unavailable: {error.detail}"
            raise type(error)(detail, retry_after=error.retry_after) from error
        except ConfigurationError as error:
            raise ConfigurationError(f"The graph {self.name!r} cannot be used: {error.detail}") from error


class _TenantDivided(Exception):
    """Rolls back a write whose tenant is divided, of which the process has not known."""


class PlacedGraph(Graph):
    """The graphs in which tenants live, as one; it has no connection of its own, but those of `home` and the others.

    Work that names neither a tenant nor a graph raises RuntimeError: it would read or write in the wrong place.
    """

    def __init__(self, home: Graph, others: Mapping[str, PlacedDatabase]) -> None:
        self.home = home
        self.others = others
        self.assignments = AssignmentTable(home)
        # Groups take their revisions with them from one graph to another.
        self.applied = home.applied
        for database in others.values():
            database.graph.applied = home.applied

    @property
    def names(self) -> list[str]:
        """The names of all graphs, the home first."""
        return [HOME_GRAPH, *self.others]

    async def open_named(self, name: str) -> Graph:
        """Return one of the graphs; raise ConfigurationError for an unknown one, DatabaseUnavailable for one away."""
        return self.home if name == HOME_GRAPH else await self._find_other(name).open()

    def _find_other(self, name: str) -> PlacedDatabase:
        if name not in self.others:
            raise ConfigurationError(
                f"There is no graph {name!r}, but tenants live there: add it to GRAPHMEM_PLACEMENTS again."
            )
        return self.others[name]

    @asynccontextmanager
    async def _current(self) -> AsyncIterator[Graph]:
        """Find the graph of the work that is done; its errors name it."""
        name = graph_of_work()
        if name is None:
            tenant = tenant_of_work()
            if tenant is None:
                raise RuntimeError("Work on one of several graphs must say for which tenant it is.")
            name = await self.assignments.find_graph(tenant)
        async with self._opened(name) as graph:
            yield graph

    @asynccontextmanager
    async def _opened(self, name: str) -> AsyncIterator[Graph]:
        """Open a graph; its errors name it."""
        if name == HOME_GRAPH:
            yield self.home
            return
        database = self._find_other(name)
        graph = await database.open()
        async with database.naming():
            yield graph

    async def _find_divided(self) -> DividedTenant | None:
        """Return the tenant of the work that is done, if it is divided."""
        tenant = tenant_of_work()
        if tenant is None or not await self.assignments.is_divided(tenant):
            return None
        return self._divide(tenant)

    def _divide(self, tenant: str) -> DividedTenant:
        return DividedTenant(tenant, self.assignments, self._opened)

    # What stores call

    async def part_by_graph(self, group_ids: Sequence[str]) -> list[list[str]]:
        """Return groups of the tenant parted by the graph in which they live; what is shared comes first."""
        if (divided := await self._find_divided()) is None:
            return [list(group_ids)]
        parts: dict[str, list[str]] = {}
        for group_id in sorted(group_ids, key=lambda group_id: ":" in name_of_group(group_id)):
            parts.setdefault(await divided.find_graph_of(group_id), []).append(group_id)
        return [*parts.values()]

    async def read(self, work: Callable[[Transaction], Awaitable[T]]) -> T:
        """Run `work` in one read transaction; after a transient error it runs again."""
        if divided := await self._find_divided():
            return await divided.read(work)
        async with self._current() as graph:
            return await graph.read(work)

    async def write(
        self, work: Callable[[Transaction], Awaitable[T]], *, metadata: Mapping[str, Any] | None = None
    ) -> T:
        """Run `work` in one write transaction; after a transient error it is rolled back and runs again.

        While its tenant or its user is switched to another graph, it waits, and runs there.
        """
        tenant = tenant_of_work()
        if tenant is None:
            async with self._current() as graph:
                return await graph.write(work, metadata=metadata)
        metadata = {**(metadata or {}), TENANT_OF_WRITES: tenant}
        is_divided = await self.assignments.is_divided(tenant)
        deadline, pause = time.monotonic() + GATE_SECONDS, GATE_PAUSE
        while True:
            try:
                if is_divided:
                    return await self._write_divided(tenant, work, metadata)
                async with self._current() as graph:
                    return await graph.write(
                        lambda transaction: _pass_gate(transaction, tenant, work), metadata=metadata
                    )
            except GateClosed:
                self.assignments.expire()
            except _TenantDivided:
                self.assignments.expire()
                is_divided = True
                continue
            if time.monotonic() > deadline:
                raise DatabaseUnavailable("The tenant is being moved to another graph: try again.", retry_after=1)
            await asyncio.sleep(pause * random.uniform(0.5, 1.5))
            pause = min(1.5 * pause, MAX_GATE_PAUSE)

    async def _write_divided(
        self, tenant: str, work: Callable[[Transaction], Awaitable[T]], metadata: Mapping[str, Any]
    ) -> T:
        result, revisions = await self._divide(tenant).write(work, metadata)
        for group_id, (life, revision) in revisions.items():
            self.applied.note(group_id, life, revision)
        return result

    async def execute(self, name: str, **parameters: Any) -> list[Row]:
        """Run one write query in its own transaction and return its rows."""
        return await self.write(lambda transaction: transaction.run(name, **parameters))

    async def fetch(self, name: str, **parameters: Any) -> list[Row]:
        """Run one read query and return its rows."""
        if divided := await self._find_divided():
            return await divided.fetch(name, parameters)
        async with self._current() as graph:
            return await graph.fetch(name, **parameters)

    async def fetch_value(self, name: str, **parameters: Any) -> Any:
        """Run one read query with one row and one column and return the value as the driver decodes it."""
        if divided := await self._find_divided():
            return await divided.fetch_value(name, parameters)
        async with self._current() as graph:
            return await graph.fetch_value(name, **parameters)

    async def fetch_value_from_any_member(self, name: str, **parameters: Any) -> Any:
        """Run one read query as `fetch_value` does, on any member of a cluster."""
        if divided := await self._find_divided():
            return await divided.fetch_value(name, parameters, from_any_member=True)
        async with self._current() as graph:
            return await graph.fetch_value_from_any_member(name, **parameters)

    @asynccontextmanager
    async def discarded_transaction(
        self,
        timeout: float,  # noqa: ASYNC109 - the server's
        group_id: str,
    ) -> AsyncIterator[StreamTransaction]:
        """Open a write transaction that is rolled back at its end, to read while a lock is held; it is not retried."""
        divided = await self._find_divided()
        opened = self._opened(await divided.find_graph_of(group_id)) if divided else self._current()
        async with opened as graph, graph.discarded_transaction(timeout, group_id) as transaction:
            yield transaction

    async def vector_state(self, *, refresh: bool = False) -> VectorState | None:
        """Return which model the vectors are of, at most a second old, or None for a database without a schema."""
        # All graphs have vectors of one model; texts are embedded for work of any kind.
        if graph_of_work() is None and tenant_of_work() is None:
            return await self.home.vector_state(refresh=refresh)
        async with self._current() as graph:
            return await graph.vector_state(refresh=refresh)

    def refresh_hidden(self) -> None:
        """Have the next read find out which users are being forgotten: one more is, or one no longer."""
        for graph in self._all():
            graph.refresh_hidden()

    async def apply_schema(self, statement: str) -> None:
        """Run one statement of a migration."""
        async with self._current() as graph:
            await graph.apply_schema(statement)

    # Whether they answer

    async def verify_connectivity(self) -> None:
        """Connect to the home graph."""
        await self.home.verify_connectivity()

    async def check_answering(self, seconds: float) -> None:
        """Raise DatabaseUnavailable unless the graph of the work answers within `seconds` seconds."""
        async with self._current() as graph:
            await graph.check_answering(seconds)

    async def check_server(self) -> None:
        """Raise DatabaseUnavailable unless the server of the work's graph is there."""
        async with self._current() as graph:
            await graph.check_server()

    @asynccontextmanager
    async def watch_others(self) -> AsyncIterator[None]:
        """Open a block in which others work on the graph; it ends as soon as the server is silent."""
        async with self._current() as graph, graph.watch_others():
            yield

    async def prepare_all(self) -> None:
        """Prepare every graph that answers; what one of the others lacks is logged, and it is tried again when used."""
        results = await asyncio.gather(*(database.open() for database in self.others.values()), return_exceptions=True)
        for error in results:
            if isinstance(error, Unavailable):
                log.warning("%s The tenants that live there get 503 until then.", error.detail)
            elif isinstance(error, BaseException):
                raise error

    async def close(self) -> None:
        """Close every connection."""
        await asyncio.gather(*(graph.close() for graph in self._all()))

    def _all(self) -> list[Graph]:
        return [self.home, *(database.graph for database in self.others.values())]


def graph_names(placed: PlacedGraph | None) -> list[str]:
    """Return the names of all graphs, the home first; where tenants live in one only, that of the home."""
    return placed.names if placed else [HOME_GRAPH]


async def run_in_each_graph(placed: PlacedGraph | None, work: Callable[[], Awaitable[T]]) -> list[T]:
    """Do work on one graph after the other, the home first, and return its results; the first error ends it."""
    results = []
    for name in graph_names(placed):
        with working_in(name):
            results.append(await work())
    return results


async def _pass_gate(transaction: Transaction, tenant: str, work: Callable[[Transaction], Awaitable[T]]) -> T:
    """Do a write of a tenant as its gate in this graph says."""
    rows = await transaction.run("placements.check_gates", names=[tenant])
    state = rows[0]["state"] if rows else None
    if state not in (None, "noting"):
        raise GateClosed
    if rows and rows[0]["is_divided"]:
        raise _TenantDivided
    if state is None:
        return await work(transaction)
    with transaction.collecting_groups() as groups:
        result = await work(transaction)
    await transaction.run("placements.note_changes", tenant=tenant, group_ids=sorted(groups) or [""])
    return result
