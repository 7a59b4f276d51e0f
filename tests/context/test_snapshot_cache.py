"""The snapshot cache: bounded in entries and time, and never stale after a write."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import pytest

from graphmem.context.builder import CACHE_ENTRIES, CACHE_SECONDS, SnapshotCache
from graphmem.context.models import ContextSnapshot
from graphmem.context.store import NO_VERSION, ContextStore
from graphmem.memories.memory import MemoryIn
from graphmem.neo4j.driver import Graph
from graphmem.runtime.metrics import CACHE_HIT_RATE
from graphmem.tenants.owners import Owner
from tests.conftest import FakeClock
from tests.context.conftest import ContextHarness

OWNER = Owner("default", "mara")


class SnapshotLoader:
    """A store whose user is never written to; it counts the snapshots it returns."""

    def __init__(self) -> None:
        self.loaded: list[str | None] = []

    async def load_snapshot(
        self,
        owner: Owner,
        session_id: str | None,
        *,
        place: Owner | None,
        message_limit: int,
        valid_until: datetime,
        cached_version: str,
    ) -> ContextSnapshot | None:
        if cached_version != NO_VERSION:
            return None
        self.loaded.append(session_id)
        return ContextSnapshot("1", valid_until)


class QueryCountingGraph:
    """A graph that records the names of the queries it is asked."""

    def __init__(self, graph: Graph) -> None:
        self._graph = graph
        self.query_names: list[str] = []

    async def fetch_value(self, name: str, **parameters: Any) -> Any:
        self.query_names.append(name)
        return await self._graph.fetch_value(name, **parameters)


async def fill_cache(clock: FakeClock) -> tuple[SnapshotCache, SnapshotLoader]:
    """Return a full cache and its store, which has forgotten what it loaded."""
    loader = SnapshotLoader()
    cache = SnapshotCache(loader, clock)  # pyrefly: ignore[bad-argument-type]
    for number in range(CACHE_ENTRIES):
        await cache.load(OWNER, str(number), 60, current_version="1")
    assert len(loader.loaded) == CACHE_ENTRIES == 1000
    loader.loaded.clear()
    return cache, loader


@pytest.mark.req("TRUE-25")
async def test_the_cache_evicts_the_least_recently_used_of_a_thousand(clock: FakeClock) -> None:
    cache, loader = await fill_cache(clock)
    for session_id in ("0", "1001st", "0", "2", "1"):
        await cache.load(OWNER, session_id, 60, current_version="1")
    assert loader.loaded == ["1001st", "1"]


@pytest.mark.req("TRUE-25")
async def test_replacing_an_entry_of_a_full_cache_evicts_nothing(clock: FakeClock) -> None:
    cache, loader = await fill_cache(clock)
    clock.advance(timedelta(seconds=CACHE_SECONDS))
    for number in range(CACHE_ENTRIES):
        await cache.load(OWNER, str(number), 60, current_version="1")
    loader.loaded.clear()
    for number in range(CACHE_ENTRIES):
        await cache.load(OWNER, str(number), 60, current_version="1")
    assert loader.loaded == []


@pytest.mark.req("TRUE-25")
@pytest.mark.parametrize(("seconds", "loads"), [(3599, 1), (3600, 2), (3601, 2)])
async def test_a_cache_entry_expires_after_3600_seconds(clock: FakeClock, seconds: int, loads: int) -> None:
    loader = SnapshotLoader()
    cache = SnapshotCache(loader, clock)  # pyrefly: ignore[bad-argument-type]
    await cache.load(OWNER, "s", 60, current_version="1")
    clock.advance(timedelta(seconds=seconds))
    await cache.load(OWNER, "s", 60, current_version="1")
    assert len(loader.loaded) == loads


@pytest.mark.req("TRUE-25")
async def test_the_snapshot_takes_one_query_and_is_reused_until_a_write(harness: ContextHarness) -> None:
    await harness.save_memories("Mara is vegetarian")
    await harness.add_messages("s", "Hello", learn=True)
    counting_graph = QueryCountingGraph(harness.graph)
    store = ContextStore(counting_graph, harness.clock)  # pyrefly: ignore[bad-argument-type]
    until = harness.clock() + timedelta(hours=1)
    first = await store.load_snapshot(harness.owner, "s", message_limit=60, valid_until=until)
    assert first is not None
    assert counting_graph.query_names == ["context.load_snapshot"]
    unchanged = await store.load_snapshot(
        harness.owner, "s", message_limit=60, valid_until=until, cached_version=first.version
    )
    assert unchanged is None
    await harness.add_messages("s", "Another")
    second = await store.load_snapshot(
        harness.owner, "s", message_limit=60, valid_until=until, cached_version=first.version
    )
    assert second is not None
    assert [message.content for message in second.messages] == ["Hello", "Another"]
    assert counting_graph.query_names == ["context.load_snapshot"] * 3


@pytest.mark.req("TRUE-25")
async def test_the_next_context_includes_every_write(harness: ContextHarness) -> None:
    async def contents() -> list[str]:
        context = await harness.build_context("What about me?", session_id="s")
        return [memory.content for memory in context.memories]

    assert await contents() == []
    (memory,) = await harness.save_memories("Mara is vegetarian")
    assert await contents() == ["Mara is vegetarian"]
    harness.clock.advance(timedelta(seconds=1))
    await harness.save_memories(MemoryIn(content="Mara is vegan", supersedes=[memory.id]))
    harness.clock.advance(timedelta(seconds=1))
    assert await contents() == ["Mara is vegan"]
    await harness.save_memories(MemoryIn(content="Answer with care", scope="global", importance=0.8))
    assert set(await contents()) == {"Mara is vegan", "Answer with care"}


@pytest.mark.req("TRUE-25")
async def test_a_cached_snapshot_drops_memories_as_they_expire(harness: ContextHarness) -> None:
    async def contents() -> set[str]:
        return {memory.content for memory in (await harness.build_context("And me?")).memories}

    soon = harness.clock() + timedelta(minutes=10)
    await harness.save_memories(
        MemoryIn(content="Mara is away", expires_at=soon),
        MemoryIn(content="Mara works in Porto", invalid_at=soon),
        MemoryIn(content="Mara lives in Lisbon", valid_at=soon),
    )
    assert await contents() == {"Mara is away", "Mara works in Porto"}
    harness.clock.advance(timedelta(minutes=10))
    assert await contents() == {"Mara lives in Lisbon"}


@pytest.mark.req("TRUE-25", "TRUE-26")
async def test_the_hit_rate_is_measured(harness: ContextHarness) -> None:
    await harness.save_memories("Mara is vegetarian")
    for expected in (0.0, 1 / 2, 2 / 3):
        await harness.build_context("And me?", session_id="s")
        assert CACHE_HIT_RATE.labels("context")._value.get() == pytest.approx(expected)
