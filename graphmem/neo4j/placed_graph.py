"""One graph for all stores where tenants live in several: each operation goes to the graph of the tenant in use."""

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
    """A tenant, wherever it lives, or everything in one graph."""

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
    """Use a whole graph in the block, for reads that concern many tenants.

    Writes for one of these tenants belong in a block of `use_tenant`, so that they take part in moves.
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
    """Return the tenant in use; None outside of one and while a whole graph is used."""
    scope = _scope.get()
    return scope.tenant if scope else None


def current_graph() -> str | None:
    """Return the name of the graph that is used as a whole; None while a tenant is used."""
    scope = _scope.get()
    return scope.graph if scope else None


LEASE_SECONDS = 0.5
"""Seconds for which a process relies on the locations it has read."""

HELD_SECONDS = 25.0
"""Seconds that a write waits at a closed barrier before it fails."""

PAUSE, MAX_PAUSE = 0.05, 0.2
"""Seconds between two tries of a write that waits at a barrier, at first and at most."""

OPEN, COUNTING, ENDED = None, -1, 0
"""Times until which a barrier is closed that say that it is open, that it is open and has writes counted, and that it
has ended, so that a write asks the home graph."""

TENANT_OF_WRITES = "graphmem_tenant"
"""The entry of the metadata of a transaction that names the tenant it writes for."""

T = TypeVar("T")

log = logging.getLogger(__name__)


class MoveState(StrEnum):
    """How far a move is; a settled tenant does not move."""

    SETTLED = "settled"
    COPYING = "copying"
    SWITCHING = "switching"


@dataclass(frozen=True, slots=True)
class GraphLocation:
    """The graph in which a tenant is read and written, and where a move takes it.

    Each try to move the tenant has a larger `attempt` than the ones before; `report` is what the latest move reported,
    as JSON.
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
        """Return a location as it is stored."""
        return cls(**{**row, "state": MoveState(row["state"])})


class LocationTable:
    """The locations of all tenants, as this process has read them last."""

    def __init__(self, home: Graph) -> None:
        self._home = home
        self._version = -1
        self._locations: dict[str, GraphLocation] = {}
        self._read_at = float("-inf")
        self._reading = asyncio.Lock()

    async def find(self, tenant: str) -> GraphLocation:
        """Return the location of a tenant; one that was never moved lives in the home graph."""
        asked_at = time.monotonic()
        await self._refresh(asked_at - LEASE_SECONDS)
        found = self._locations.get(tenant)
        if found is not None and found.state is MoveState.SWITCHING:
            await self._refresh(asked_at)
            found = self._locations.get(tenant)
        return found or GraphLocation(tenant)

    async def list_all(self) -> list[GraphLocation]:
        """Return the locations as they are now, by tenant; tenants that were never moved are left out."""
        await self._refresh(time.monotonic())
        return sorted(self._locations.values(), key=lambda location: location.tenant)

    def expire(self) -> None:
        """Have the next operation read the table."""
        self._read_at = float("-inf")

    async def _refresh(self, since: float) -> None:
        """Read the table unless that began at `since` or later."""
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
    """A graph next to the home graph; it is prepared when it first answers.

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


class _WritesHeld(Exception):
    """Rolls back a write at the barrier of an attempt to move its tenant; `has_ended` says that the barrier has."""

    def __init__(self, attempt: int, has_ended: bool) -> None:
        super().__init__()
        self.attempt = attempt
        self.has_ended = has_ended


class PlacedGraph(Graph):
    """The graphs in which tenants live, as one; its connections are those of `home` and the others.

    Work that names neither a tenant nor a graph raises RuntimeError: it would read or write in the wrong place.
    """

    def __init__(self, home: Graph, others: Mapping[str, PlacedDatabase], clock: Clock = utc_now) -> None:
        self.home = home
        self.others = others
        self.clock = clock
        self.locations = LocationTable(home)
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
        """Find the graph of the tenant or the graph in use; its errors name it."""
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

    # What stores call

    async def read(self, work: Callable[[Transaction], Awaitable[T]]) -> T:
        """Run `work` in one read transaction; after a transient error it runs again."""
        async with self._current() as graph:
            return await graph.read(work)

    async def write(
        self, work: Callable[[Transaction], Awaitable[T]], *, metadata: Mapping[str, Any] | None = None
    ) -> T:
        """Run `work` in one write transaction; after a transient error it is rolled back and runs again.

        While its tenant is switched to another graph, it waits, and then runs there.
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
        """Do a write of a tenant unless the barrier in this graph holds it."""
        rows = await transaction.run("placements.find_barrier", tenant=tenant, now=to_micros(self.clock()))
        state = rows[0]["state"] if rows else "open"
        if state == "open":
            return await work(transaction)
        if state != "counting":
            raise _WritesHeld(rows[0]["attempt"], has_ended=state == "ended")
        with transaction.collecting_groups() as groups:
            result = await work(transaction)
        # The move finds what has changed by the revisions of groups, which a write without their lock leaves alone.
        if unlocked := sorted(groups - transaction.revisions.keys()):
            await transaction.run("placements.count_write", group_ids=unlocked)
        return result

    async def _pass_ended_barrier(self, tenant: str, name: str, attempt: int) -> None:
        """Open an ended barrier, unless the tenant lives elsewhere; the attempt that has closed it cannot switch."""
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
        """Open a write transaction that is rolled back at its end, to read while a lock is held; it is not retried."""
        async with self._current() as graph, graph.discarded_transaction(timeout) as transaction:
            yield transaction

    async def vector_state(self, *, refresh: bool = False) -> VectorState | None:
        """Return which model the vectors are of, at most a second old, or None for a database without a schema."""
        # All graphs have vectors of one model; texts are embedded for work of any kind.
        if current_graph() is None and current_tenant() is None:
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
        """Raise DatabaseUnavailable unless the graph in use answers within `seconds` seconds."""
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
        with use_graph(name):
            results.append(await work())
    return results
