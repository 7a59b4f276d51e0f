"""What stands is kept: bounded, for a time, and never past a write."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from graphmem.context.builder import CACHE_ENTRIES, CACHE_SECONDS, make_snapshot_cache
from graphmem.domain.memory import MemoryIn
from graphmem.metrics import CACHE_HIT_RATE
from graphmem.store.context import ContextStore
from graphmem.store.context_mapping import ContextSnapshot
from graphmem.store.driver import Graph, Row
from tests.conftest import FakeClock
from tests.context.conftest import ContextHarness


def make_snapshot(clock: FakeClock) -> ContextSnapshot:
    return ContextSnapshot("1", clock())


class QueryCountingGraph:
    """A graph that tells which queries were asked of it."""

    def __init__(self, graph: Graph) -> None:
        self._graph = graph
        self.query_names: list[str] = []

    async def fetch(self, name: str, **parameters: Any) -> list[Row]:
        self.query_names.append(name)
        return await self._graph.fetch(name, **parameters)


@pytest.mark.req("TRUE-25")
def test_the_cache_evicts_the_least_recently_used_of_a_thousand(clock: FakeClock) -> None:
    cache = make_snapshot_cache(clock)
    for number in range(CACHE_ENTRIES):
        cache["g", str(number), 60] = make_snapshot(clock)
    assert len(cache) == 1000
    assert cache.get(("g", "0", 60)) is not None
    cache["g", "1001st", 60] = make_snapshot(clock)
    assert len(cache) == 1000
    assert ("g", "0", 60) in cache, "it was used last"
    assert ("g", "1", 60) not in cache


@pytest.mark.req("TRUE-25")
def test_replacing_an_entry_of_a_full_cache_evicts_nothing(clock: FakeClock) -> None:
    cache = make_snapshot_cache(clock)
    for number in range(CACHE_ENTRIES):
        cache["g", str(number), 60] = make_snapshot(clock)
    cache["g", "500", 60] = make_snapshot(clock)
    assert all(("g", str(number), 60) in cache for number in range(CACHE_ENTRIES))


@pytest.mark.req("TRUE-25")
def test_a_cache_entry_expires_after_3600_seconds(clock: FakeClock) -> None:
    cache = make_snapshot_cache(clock)
    cache["g", "s", 60] = make_snapshot(clock)
    clock.advance(timedelta(seconds=CACHE_SECONDS - 1))
    assert cache.get(("g", "s", 60)) is not None
    clock.advance(timedelta(seconds=2))
    assert cache.get(("g", "s", 60)) is None
    assert len(cache) == 0


@pytest.mark.req("TRUE-25")
async def test_the_snapshot_takes_one_query_and_is_reused_until_a_write(
    harness: ContextHarness,
) -> None:
    await harness.save_memories("Mara is vegetarian")
    await harness.add_messages("s", "Hello", learn=True)
    counting_graph = QueryCountingGraph(harness.graph)
    store = ContextStore(counting_graph, harness.clock)  # type: ignore[arg-type]
    hour = timedelta(hours=1)
    first = await store.load_snapshot(harness.owner, "s", None, hour, 60)
    assert counting_graph.query_names == ["context.load_snapshot"]
    assert await store.load_snapshot(harness.owner, "s", first, hour, 60) is first
    await harness.add_messages("s", "Another")
    second = await store.load_snapshot(harness.owner, "s", first, hour, 60)
    assert [each.content for each in second.messages] == ["Hello", "Another"]
    assert counting_graph.query_names == ["context.load_snapshot"] * 3


@pytest.mark.req("TRUE-25")
async def test_the_next_context_includes_every_write(harness: ContextHarness) -> None:
    async def told() -> list[str]:
        return [each.content for each in (await harness.build_context("What about me?", session_id="s")).memories]

    assert await told() == []
    (memory,) = await harness.save_memories("Mara is vegetarian")
    assert await told() == ["Mara is vegetarian"]
    harness.clock.advance(timedelta(seconds=1))
    await harness.save_memories(MemoryIn(content="Mara is vegan", supersedes=[memory.id]))
    harness.clock.advance(timedelta(seconds=1))
    assert await told() == ["Mara is vegan"]
    await harness.save_memories(MemoryIn(content="Answer with care", scope="global", importance=0.8))
    assert set(await told()) == {"Mara is vegan", "Answer with care"}


@pytest.mark.req("TRUE-25")
async def test_a_cached_snapshot_drops_memories_as_they_expire(harness: ContextHarness) -> None:
    soon = harness.clock() + timedelta(minutes=10)
    await harness.save_memories(
        MemoryIn(content="Mara is away", expires_at=soon),
        MemoryIn(content="Mara works in Porto", invalid_at=soon),
        MemoryIn(content="Mara lives in Lisbon", valid_at=soon),
    )
    assert {each.content for each in (await harness.build_context("And me?")).memories} == {
        "Mara is away",
        "Mara works in Porto",
    }
    harness.clock.advance(timedelta(minutes=10))
    assert {each.content for each in (await harness.build_context("And me?")).memories} == {"Mara lives in Lisbon"}


@pytest.mark.req("TRUE-25", "TRUE-26")
async def test_the_hit_rate_is_measured(harness: ContextHarness) -> None:
    await harness.save_memories("Mara is vegetarian")
    for expected in (0.0, 1 / 2, 2 / 3):
        await harness.build_context("And me?", session_id="s")
        assert CACHE_HIT_RATE._value.get() == pytest.approx(expected)
