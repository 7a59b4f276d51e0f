"""What stands is kept: bounded, for a time, and never past a write."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from graphmem.context.build import CACHE_ENTRIES, CACHE_SECONDS, standing_cache
from graphmem.domain.memory import MemoryIn
from graphmem.metrics import CACHE_HIT_RATE
from graphmem.store.context import ContextStore
from graphmem.store.context_rows import Standing
from graphmem.store.driver import Graph, Row
from tests.conftest import FakeClock
from tests.context.conftest import Ground


def standing(clock: FakeClock) -> Standing:
    return Standing("1", clock())


class Counted:
    """A graph that tells which queries were asked of it."""

    def __init__(self, graph: Graph) -> None:
        self._graph = graph
        self.asked: list[str] = []

    async def fetch(self, name: str, **parameters: Any) -> list[Row]:
        self.asked.append(name)
        return await self._graph.fetch(name, **parameters)


@pytest.mark.req("TRUE-25")
def test_the_cache_holds_a_thousand_and_the_least_recently_used_leaves(clock: FakeClock) -> None:
    cache = standing_cache(clock)
    for number in range(CACHE_ENTRIES):
        cache["g", str(number), 60] = standing(clock)
    assert len(cache) == 1000
    assert cache.get(("g", "0", 60)) is not None
    cache["g", "1001st", 60] = standing(clock)
    assert len(cache) == 1000
    assert ("g", "0", 60) in cache, "it was used last"
    assert ("g", "1", 60) not in cache


@pytest.mark.req("TRUE-25")
def test_setting_a_held_key_again_in_a_full_cache_evicts_nothing(clock: FakeClock) -> None:
    cache = standing_cache(clock)
    for number in range(CACHE_ENTRIES):
        cache["g", str(number), 60] = standing(clock)
    cache["g", "500", 60] = standing(clock)
    assert all(("g", str(number), 60) in cache for number in range(CACHE_ENTRIES))


@pytest.mark.req("TRUE-25")
def test_an_entry_is_kept_3600_seconds_and_gone_at_3601(clock: FakeClock) -> None:
    cache = standing_cache(clock)
    cache["g", "s", 60] = standing(clock)
    clock.advance(timedelta(seconds=CACHE_SECONDS - 1))
    assert cache.get(("g", "s", 60)) is not None
    clock.advance(timedelta(seconds=2))
    assert cache.get(("g", "s", 60)) is None
    assert len(cache) == 0


@pytest.mark.req("TRUE-25")
async def test_what_stands_is_read_in_one_round_trip_and_answered_as_held_until_something_is_written(
    ground: Ground,
) -> None:
    await ground.save("Mara is vegetarian")
    await ground.say("s", "Hello", learn=True)
    counted = Counted(ground.graph)
    store = ContextStore(counted, ground.clock)  # type: ignore[arg-type]
    hour = timedelta(hours=1)
    first = await store.standing(ground.owner, "s", None, hour, 60)
    assert counted.asked == ["context.standing"]
    assert await store.standing(ground.owner, "s", first, hour, 60) is first
    await ground.say("s", "Another")
    second = await store.standing(ground.owner, "s", first, hour, 60)
    assert [each.content for each in second.messages] == ["Hello", "Another"]
    assert counted.asked == ["context.standing"] * 3


@pytest.mark.req("TRUE-25")
async def test_every_write_is_seen_by_the_next_context(ground: Ground) -> None:
    async def told() -> list[str]:
        return [each.content for each in (await ground.ask("What about me?", session_id="s")).memories]

    assert await told() == []
    (memory,) = await ground.save("Mara is vegetarian")
    assert await told() == ["Mara is vegetarian"]
    ground.clock.advance(timedelta(seconds=1))
    await ground.save(MemoryIn(content="Mara is vegan", supersedes=[memory.id]))
    ground.clock.advance(timedelta(seconds=1))
    assert await told() == ["Mara is vegan"]
    await ground.save(MemoryIn(content="Answer with care", scope="global", importance=0.8))
    assert set(await told()) == {"Mara is vegan", "Answer with care"}


@pytest.mark.req("TRUE-25")
async def test_a_kept_context_does_not_outlive_what_it_tells(ground: Ground) -> None:
    soon = ground.clock() + timedelta(minutes=10)
    await ground.save(
        MemoryIn(content="Mara is away", expires_at=soon),
        MemoryIn(content="Mara works in Porto", invalid_at=soon),
        MemoryIn(content="Mara lives in Lisbon", valid_at=soon),
    )
    assert {each.content for each in (await ground.ask("And me?")).memories} == {"Mara is away", "Mara works in Porto"}
    ground.clock.advance(timedelta(minutes=10))
    assert {each.content for each in (await ground.ask("And me?")).memories} == {"Mara lives in Lisbon"}


@pytest.mark.req("TRUE-25", "TRUE-26")
async def test_the_hit_rate_is_measured(ground: Ground) -> None:
    await ground.save("Mara is vegetarian")
    for expected in (0.0, 1 / 2, 2 / 3):
        await ground.ask("And me?", session_id="s")
        assert CACHE_HIT_RATE._value.get() == pytest.approx(expected)
