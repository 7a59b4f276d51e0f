"""A worker dies in each step of a move: a graph with everything is in force, and another attempt ends the move.

A dead worker is one whose task does not reach the databases any more, not even to clean up.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import timedelta
from typing import Any

import pytest

from graphmem.app.bootstrap import Services
from graphmem.graph_memory import GraphMemory
from graphmem.models.embedder import Embedder
from graphmem.neo4j import placed_graph
from graphmem.neo4j.driver import Graph, Transaction
from graphmem.neo4j.placed_graph import PlacedGraph
from graphmem.placement.move import Move, MovePayload
from graphmem.runtime.errors import DatabaseUnavailable, Unavailable
from graphmem.runtime.settings import HOME_GRAPH, Settings
from graphmem.runtime.times import utc_now
from tests.placement.conftest import SECOND
from tests.placement.test_moves import count_nodes

JOB = "11111111-1111-4111-8111-111111111111"

_dies: ContextVar[bool] = ContextVar("dies", default=False)


@pytest.fixture(scope="module")
async def other_process(settings: Settings, graph: Graph, embedder: Embedder) -> AsyncIterator[Services]:
    """Services as in another process: with a table of locations of its own."""
    async with Services.open(settings, embedder=embedder, worker=False) as services:
        yield services


@contextmanager
def dying_after(query: str, times: int) -> Iterator[None]:
    """Let tasks that are marked reach no database after their query has run some times."""
    run, left = Transaction.run, times

    async def run_until_dead(self: Transaction, name: str, **parameters: Any) -> Any:
        nonlocal left
        if not _dies.get():
            return await run(self, name, **parameters)
        if left <= 0:
            raise DatabaseUnavailable("The worker is dead.")
        answer = await run(self, name, **parameters)
        left -= name == query
        return answer

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Transaction, "run", run_until_dead)
        yield


async def die(move: Move, query: str, times: int) -> None:
    async def work() -> None:
        _dies.set(True)
        await move.run()
        await move.erase()

    with dying_after(query, times), pytest.raises(DatabaseUnavailable, match="dead"):
        await asyncio.create_task(work())


def make_move(placed: PlacedGraph, tenant: str) -> Move:
    return Move(placed, utc_now, MovePayload(tenant=tenant, source=HOME_GRAPH, target=SECOND), JOB)


async def add(memory: GraphMemory, content: str) -> str:
    [result] = await memory.add("mara", content)
    assert result.memory is not None
    return result.memory.id


async def list_ids(memory: GraphMemory) -> set[str]:
    return {item.id for item in (await memory.memories("mara", limit=100)).items}


@pytest.mark.parametrize(
    ("query", "times", "lives_in"),
    [
        pytest.param("placements.begin", 1, HOME_GRAPH, id="begun", marks=pytest.mark.long),
        pytest.param("moves.create_nodes", 1, HOME_GRAPH, id="copying"),
        pytest.param("placements.set_barrier", 3, HOME_GRAPH, id="closed", marks=pytest.mark.long),
        pytest.param("placements.switch", 1, SECOND, id="switched"),
        pytest.param("moves.delete_nodes", 1, SECOND, id="erasing", marks=pytest.mark.long),
    ],
)
async def test_a_move_whose_worker_dies_ends_in_another_attempt(
    services: Services, other_process: Services, placed: PlacedGraph, tenant: str, query: str, times: int, lives_in: str
) -> None:
    memory, elsewhere = GraphMemory(services, tenant), GraphMemory(other_process, tenant)
    saved = {await add(memory, f"Mara has read book number {number}") for number in range(3)}
    await memory.add("jonas", "Jonas keeps hens")
    await die(make_move(placed, tenant), query, times)
    assert (await placed.locations.find(tenant)).graph == lives_in
    assert await list_ids(elsewhere) == saved

    # A barrier that the worker has left behind opens when its time is over.
    for process in (placed, other_process.components.placed):
        assert process
        process.clock = lambda: utc_now() + timedelta(minutes=1)
    saved |= {await add(memory, "Mara keeps bees"), await add(elsewhere, "Mara sells honey")}
    for process in (placed, other_process.components.placed):
        assert process
        process.clock = utc_now
    assert await list_ids(memory) == await list_ids(elsewhere) == saved

    move = make_move(placed, tenant)
    await move.run()
    await move.erase()
    assert (await placed.locations.find(tenant)).graph == SECOND
    assert await list_ids(memory) == await list_ids(elsewhere) == saved
    assert await count_nodes(placed.home, tenant) == {}
    saved.add(await add(elsewhere, "Mara is afraid of spiders"))
    assert await list_ids(memory) == saved


async def test_a_worker_that_slept_past_its_barrier_cannot_switch(
    services: Services, other_process: Services, placed: PlacedGraph, tenant: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A write has passed the ended barrier meanwhile: the attempt ends, and the next one takes the write along."""
    memory, elsewhere = GraphMemory(services, tenant), GraphMemory(other_process, tenant)
    saved = {await add(memory, "Mara keeps bees")}
    move = make_move(placed, tenant)
    name_target = Move._name_target

    async def sleep_first(self: Move, *given: Any) -> None:
        assert other_process.components.placed
        other_process.components.placed.clock = lambda: utc_now() + timedelta(minutes=1)
        saved.add(await add(elsewhere, "Mara sells honey"))
        await name_target(self, *given)

    monkeypatch.setattr(Move, "_name_target", sleep_first)
    with pytest.raises(DatabaseUnavailable, match="Another attempt"):
        await move.run()
    monkeypatch.undo()
    assert (await placed.locations.find(tenant)).graph == HOME_GRAPH
    await move.run()
    assert await list_ids(memory) == await list_ids(elsewhere) == saved


async def test_writes_at_a_closed_barrier_fail_when_it_lasts(
    services: Services, placed: PlacedGraph, tenant: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    memory = GraphMemory(services, tenant)
    saved = {await add(memory, "Mara keeps bees")}
    await die(make_move(placed, tenant), "placements.set_barrier", 3)
    monkeypatch.setattr(placed_graph, "HELD_SECONDS", 0.2)
    with pytest.raises(Unavailable, match="being moved"):
        await add(memory, "Mara sells honey")
    assert await list_ids(memory) == saved
