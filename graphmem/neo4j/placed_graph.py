"""One graph for all stores if tenants live in several: each operation goes to the current tenant's graph."""

from __future__ import annotations

import asyncio
import logging
import random
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from contextvars import ContextVar, Token
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, TypeVar

from graphmem.models.embedding_models import VectorState
from graphmem.neo4j.driver import Graph, StreamTransaction, Transaction
from graphmem.neo4j.driver_values import Row
from graphmem.runtime.errors import ConfigurationError, DatabaseUnavailable, Unavailable
from graphmem.runtime.settings import HOME_GRAPH
from graphmem.runtime.times import Clock, to_micros, utc_now


@dataclass(frozen=True, slots=True)
class _WorkContext:
    """A tenant, whichever graph it lives in, or a whole graph."""

    tenant: str | None = None
    graph: str | None = None


_scope: ContextVar[_WorkContext | None] = ContextVar("graphmem_tenant_scope", default=None)


def set_tenant(tenant: str) -> None:
    """Use a tenant for the rest of this task and for the tasks that it starts."""
    _scope.set(_WorkContext(tenant=tenant))


@contextmanager
def use_tenant(tenant: str) -> Iterator[None]:
    """Use a tenant in the block and in the tasks that it starts."""
    with _resetting(_scope.set(_WorkContext(tenant=tenant))):
        yield


@contextmanager
def use_graph(graph: str) -> Iterator[None]:
    """Use a whole graph in the block, for reads across many tenants.

    Writes for one tenant belong in a `use_tenant` block, so that moves include them.
    """
    with _resetting(_scope.set(_WorkContext(graph=graph))):
        yield


@contextmanager
def _resetting(token: Token[_WorkContext | None]) -> Iterator[None]:
    try:
        yield
    finally:
        _scope.reset(token)


def current_tenant() -> str | None:
    """Return the current tenant; None if there is none or a whole graph is used."""
    scope = _scope.get()
    return scope.tenant if scope else None


def current_graph() -> str | None:
    """Return the name of the graph that is used as a whole; None while a tenant is used."""
    scope = _scope.get()
    return scope.graph if scope else None


LEASE_SECONDS = 0.5
"""Seconds for which a process caches the locations it has read."""

HELD_SECONDS = 25.0
"""Seconds that a write waits at a closed barrier before it fails."""

PAUSE, MAX_PAUSE = 0.05, 0.2
"""Initial and maximum seconds between retries of a write that waits at a barrier."""

OPEN, COUNTING, ENDED = None, -1, 0
"""Values of a barrier's closing time for: open; open with writes counted; ended, so that writes ask the home graph."""

TENANT_OF_WRITES = "graphmem_tenant"
"""Transaction metadata entry with the tenant that the transaction writes for."""

T = TypeVar("T")

log = logging.getLogger(__name__)


class MoveState(StrEnum):
    """State of a move; a settled tenant is not moving."""

    SETTLED = "settled"
    COPYING = "copying"
    SWITCHING = "switching"


@dataclass(frozen=True, slots=True)
class GraphLocation:
    """The graph in which a tenant is read and written, and the target of its move.

    Each attempt to move the tenant has a larger `attempt` than earlier ones; `report` is the latest move's report, as
    JSON.
    """

    tenant: str
    graph: str = HOME_GRAPH
    state: MoveState = MoveState.SETTLED
    target: str | None = None
    job_id: str | None = None
    attempt: int = 0
    report: str | None = None

    @classmethod
    def from_row(cls, row: Mapping[str, Any]) -> GraphLocation:
        """Return the location of a stored row."""
        fields: Row = {**row, "state": MoveState(row["state"])}
        return cls(**fields)


class LocationTable:
    """The locations of all tenants, as last read by this process."""

    def __init__(self, home: Graph) -> None:
        self._home = home
        self._version = -1
        self._locations: dict[str, GraphLocation] = {}
        self._read_at = float("-inf")
        self._reading = asyncio.Lock()

    async def find(self, tenant: str) -> GraphLocation:
        """Return a tenant's location; a tenant that was never moved lives in the home graph."""
        asked_at = time.monotonic()
        await self._refresh(asked_at - LEASE_SECONDS)
        found = self._locations.get(tenant)
        if found is not None and found.state is MoveState.SWITCHING:
            await self._refresh(asked_at)
            found = self._locations.get(tenant)
        return found or GraphLocation(tenant)

    async def list_all(self) -> list[GraphLocation]:
        """Return the current locations, by tenant, without tenants that were never moved."""
        await self._refresh(time.monotonic())
        return sorted(self._locations.values(), key=lambda location: location.tenant)

    def expire(self) -> None:
        """Make the next operation reread the table."""
        self._read_at = float("-inf")

    async def _refresh(self, since: float) -> None:
        """Read the table unless the last read began at `since` or later."""
        async with self._reading:
            if self._read_at >= since:
                return
            started = time.monotonic()
            [row] = await self._home.fetch("placements.list_since", version=self._version)
            if row["locations"] is not None:
                found = map(GraphLocation.from_row, row["locations"])
                self._locations = {location.tenant: location for location in found}
            self._version, self._read_at = row["version"], started


class PlacedDatabase:
    """A graph besides the home graph, prepared when it first answers.

    `prepare` migrates it and checks its embedding model.
    """

    def __init__(self, name: str, graph: Graph, prepare: Callable[[Graph], Awaitable[None]]) -> None:
        self.name = name
        self.graph = graph
        self._prepare = prepare
        self._is_ready = False
        self._preparing = asyncio.Lock()

    async def open(self) -> Graph:
        """Return the graph, ready for use; raise DatabaseUnavailable or ConfigurationError naming it."""
        if not self._is_ready:
            async with self._preparing, self.naming():
                if not self._is_ready:
                    await self.graph.verify_connectivity()
                    await self._prepare(self.graph)
                    self._is_ready = True
        return self.graph

    @asynccontextmanager
    async def naming(self) -> AsyncIterator[None]:
        """Make errors raised in the block name the graph."""
        try:
            yield
        except DatabaseUnavailable as error:
            detail = f"The graph {self.name!r} is unavailable: {error.detail}"
            raise type(error)(detail, retry_after=error.retry_after) from error
        except ConfigurationError as error:
            raise ConfigurationError(f"The graph {self.name!r} cannot be used: {error.detail}") from error


class _WritesHeld(Exception):
    """Rolls back a write at the barrier of an attempt to move its tenant; `has_ended` is true for an ended barrier."""

    def __init__(self, attempt: int, has_ended: bool) -> None:
        super().__init__()
        self.attempt = attempt
        self.has_ended = has_ended


class PlacedGraph(Graph):
    """The graphs in which tenants live, as one; it uses the connections of `home` and the others.

    Work without a tenant or graph raises RuntimeError, because it would read or write in the wrong place.
    """

    def __init__(self, home: Graph, others: Mapping[str, PlacedDatabase], clock: Clock = utc_now) -> None:
        self.home = home
        self.others = others
        self.clock = clock
        self.locations = LocationTable(home)
        # Groups keep their revisions when they move to another graph.
        self.applied = home.applied
        for database in others.values():
            database.graph.applied = home.applied

    @property
    def names(self) -> list[str]:
        """The names of all graphs, home first."""
        return [HOME_GRAPH, *self.others]

    async def open_named(self, name: str) -> Graph:
        """Return one of the graphs; raise ConfigurationError if it is unknown, DatabaseUnavailable if unavailable."""
        return self.home if name == HOME_GRAPH else await self._find_other(name).open()

    def _find_other(self, name: str) -> PlacedDatabase:
        if name not in self.others:
            raise ConfigurationError(
                f"There is no graph {name!r}, but tenants live there: add it to GRAPHMEM_PLACEMENTS again."
            )
        return self.others[name]

    @asynccontextmanager
    async def _current(self) -> AsyncIterator[Graph]:
        """Open the current tenant's graph or the current graph; its errors name it."""
        name = current_graph()
        if name is None:
            tenant = current_tenant()
            if tenant is None:
                raise RuntimeError("Work on several graphs must name its tenant.")
            name = (await self.locations.find(tenant)).graph
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

    # Called by stores

    async def read(self, work: Callable[[Transaction], Awaitable[T]]) -> T:
        """Run `work` in one read transaction; retry after a transient error."""
        async with self._current() as graph:
            return await graph.read(work)

    async def write(
        self, work: Callable[[Transaction], Awaitable[T]], *, metadata: Mapping[str, Any] | None = None
    ) -> T:
        """Run `work` in one write transaction; after a transient error, roll back and retry.

        While its tenant is being switched to another graph, it waits and then runs there.
        """
        tenant = current_tenant()
        if tenant is None:
            async with self._current() as graph:
                return await graph.write(work, metadata=metadata)
        metadata = {**(metadata or {}), TENANT_OF_WRITES: tenant}
        deadline, pause = time.monotonic() + HELD_SECONDS, PAUSE
        while True:
            name = (await self.locations.find(tenant)).graph
            try:
                async with self._opened(name) as graph:
                    return await graph.write(
                        lambda transaction: self._pass_barrier(transaction, tenant, work), metadata=metadata
                    )
            except _WritesHeld as held:
                self.locations.expire()
                if held.has_ended:
                    await self._pass_ended_barrier(tenant, name, held.attempt)
            if time.monotonic() > deadline:
                raise DatabaseUnavailable("The tenant is being moved to another graph: try again.", retry_after=1)
            await asyncio.sleep(pause * random.uniform(0.5, 1.5))
            pause = min(1.5 * pause, MAX_PAUSE)

    async def _pass_barrier(
        self, transaction: Transaction, tenant: str, work: Callable[[Transaction], Awaitable[T]]
    ) -> T:
        """Run a tenant's write unless the barrier in this graph holds it."""
        rows = await transaction.run("placements.find_barrier", tenant=tenant, now=to_micros(self.clock()))
        state = rows[0]["state"] if rows else "open"
        if state == "open":
            return await work(transaction)
        if state != "counting":
            raise _WritesHeld(rows[0]["attempt"], has_ended=state == "ended")
        with transaction.collecting_groups() as groups:
            result = await work(transaction)
        # The move detects changes by group revisions, which a write without the group's lock does not change.
        if unlocked := sorted(groups - transaction.revisions.keys()):
            await transaction.run("placements.count_write", group_ids=unlocked)
        return result

    async def _pass_ended_barrier(self, tenant: str, name: str, attempt: int) -> None:
        """Open an ended barrier unless the tenant lives elsewhere; the attempt that closed it can no longer switch."""
        rows = await self.home.execute("placements.withdraw", tenant=tenant, graph=name, attempt=attempt)
        if (rows[0]["graph"] if rows else HOME_GRAPH) == name:
            async with self._opened(name) as graph:
                await graph.execute("placements.set_barrier", tenant=tenant, attempt=attempt, until=OPEN)

    async def execute(self, name: str, **parameters: Any) -> list[Row]:
        """Run one write query in its own transaction and return its rows."""
        return await self.write(lambda transaction: transaction.run(name, **parameters))

    async def fetch(self, name: str, **parameters: Any) -> list[Row]:
        """Run one read query and return its rows."""
        async with self._current() as graph:
            return await graph.fetch(name, **parameters)

    async def fetch_value(self, name: str, **parameters: Any) -> Any:
        """Run one read query with one row and one column and return the value as the driver decodes it."""
        async with self._current() as graph:
            return await graph.fetch_value(name, **parameters)

    async def fetch_value_from_any_member(self, name: str, **parameters: Any) -> Any:
        """Run one read query as `fetch_value` does, on any member of a cluster."""
        async with self._current() as graph:
            return await graph.fetch_value_from_any_member(name, **parameters)

    @asynccontextmanager
    async def discarded_transaction(self, timeout: float) -> AsyncIterator[StreamTransaction]:  # noqa: ASYNC109 - the server's
        """Open a write transaction for reading under a lock; it is rolled back at its end and not retried."""
        async with self._current() as graph, graph.discarded_transaction(timeout) as transaction:
            yield transaction

    async def vector_state(self, *, refresh: bool = False) -> VectorState | None:
        """Return which model the vectors belong to, at most a second old, or None for a database without a schema."""
        # All graphs use one model, and texts are also embedded without a tenant or graph.
        if current_graph() is None and current_tenant() is None:
            return await self.home.vector_state(refresh=refresh)
        async with self._current() as graph:
            return await graph.vector_state(refresh=refresh)

    def refresh_hidden(self) -> None:
        """Make the next read look up who is being forgotten, after a user was added or removed."""
        for graph in self._all():
            graph.refresh_hidden()

    async def apply_schema(self, statement: str) -> None:
        """Run one statement of a migration."""
        async with self._current() as graph:
            await graph.apply_schema(statement)

    # Availability

    async def verify_connectivity(self) -> None:
        """Connect to the home graph."""
        await self.home.verify_connectivity()

    async def check_answering(self, seconds: float) -> None:
        """Raise DatabaseUnavailable unless the current graph answers within `seconds` seconds."""
        async with self._current() as graph:
            await graph.check_answering(seconds)

    async def check_server(self) -> None:
        """Raise DatabaseUnavailable unless the current graph's server is present."""
        async with self._current() as graph:
            await graph.check_server()

    @asynccontextmanager
    async def watch_others(self) -> AsyncIterator[None]:
        """Wait for others' work on the graph; raise DatabaseUnavailable if the server stops answering."""
        async with self._current() as graph, graph.watch_others():
            yield

    async def prepare_all(self) -> None:
        """Prepare every graph that answers; log the errors of the others, which are retried on use."""
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
    """Return the names of all graphs, home first; only the home's if tenants live in a single graph."""
    return placed.names if placed else [HOME_GRAPH]


async def run_in_each_graph(placed: PlacedGraph | None, work: Callable[[], Awaitable[T]]) -> list[T]:
    """Run `work` on one graph after another, home first, and return the results; stop at the first error."""
    results = []
    for name in graph_names(placed):
        with use_graph(name):
            results.append(await work())
    return results
