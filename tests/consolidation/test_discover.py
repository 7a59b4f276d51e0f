"""Which memories a night looks at, and in which company."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphmem.consolidation.discover import (
    SELDOM,
    Candidate,
    Discovery,
    Found,
    Seldom,
    neighbours,
    plan,
    score,
    users_with_work,
)
from tests.consolidation.conftest import Bench

NOW = datetime(2026, 6, 1, 2, tzinfo=UTC)


def candidate(memory_id: str, direction: float = 0.0, **fields: Any) -> Candidate:
    known: dict[str, Any] = {
        "subject_id": "user",
        "scope": "profile",
        "domain": None,
        "entity_ids": frozenset({"user"}),
        "associations": 0,
        "created_at": NOW - timedelta(hours=1),
        "access_count": 0,
        "fresh": True,
        "weighed": False,
    }
    vector = np.array([np.cos(direction), np.sin(direction)], dtype=np.float32)
    return Candidate(memory_id=memory_id, vector=vector, **{**known, **fields})


def ids(found: Found) -> list[list[str]]:
    return [batch.memory_ids for batch in found.batches]


@pytest.mark.req("UMB-11")
@pytest.mark.parametrize(("size", "sizes"), [(0, []), (25, [25]), (26, [25, 1]), (60, [25, 25, 10])])
def test_memories_are_analysed_in_batches_of_25(size: int, sizes: list[int]) -> None:
    found = plan([candidate(f"m{n}", n) for n in range(size)], NOW, 25, 400)
    assert [len(batch) for batch in ids(found)] == sizes


@pytest.mark.req("UMB-10")
def test_what_is_new_alone_alike_and_about_the_same_things_comes_first() -> None:
    def best(first: Candidate, second: Candidate) -> bool:
        found = [first, second]
        near = neighbours(found)
        return score(found, 0, near[0], NOW) > score(found, 1, near[1], NOW)

    assert best(candidate("new"), candidate("old", created_at=NOW - timedelta(days=2)))
    assert best(candidate("alone"), candidate("linked", associations=5))
    alike = [candidate("a"), candidate("b", 0.1), candidate("c", 1.5)]
    near = neighbours(alike)
    assert score(alike, 0, near[0], NOW) > score(alike, 2, near[2], NOW)
    shared = [candidate("a", entity_ids=frozenset("xy")), candidate("b", entity_ids=frozenset("xy"))]
    apart = [candidate("a", entity_ids=frozenset("xy")), candidate("b", entity_ids=frozenset("vw"))]
    assert score(shared, 0, neighbours(shared)[0], NOW) > score(apart, 0, neighbours(apart)[0], NOW)


def test_a_backlog_is_caught_up_with_after_what_is_new() -> None:
    old = [candidate(f"old{n}", n, created_at=NOW - timedelta(days=3)) for n in range(2)]
    new = [candidate(f"new{n}", n + 0.5) for n in range(2)]
    assert set(ids(plan([*old, *new], NOW, 2, 1))[0]) == {"new0", "new1"}
    assert {key for batch in ids(plan([*old, *new], NOW, 2, 400)) for key in batch} == {"old0", "old1", "new0", "new1"}


@pytest.mark.req("UMB-16", "UMB-11")
def test_memories_of_one_subject_and_scope_stand_together() -> None:
    mixed = [candidate(f"{who}{n}", 0.01 * n, subject_id=who) for n in range(3) for who in ("bob", "alice")]
    (batch,) = ids(plan(mixed, NOW, 25, 400))
    people = [key.rstrip("012") for key in batch]
    assert people in (["bob"] * 3 + ["alice"] * 3, ["alice"] * 3 + ["bob"] * 3)


def test_a_new_memory_brings_what_it_resembles_of_earlier_nights() -> None:
    older = [candidate("twin", 0.1, fresh=False), candidate("stranger", 2.0, fresh=False)]
    assert ids(plan([candidate("new"), *older], NOW, 25, 400)) == [["new", "twin"]]
    other_place = candidate("else", 0.0, fresh=False, subject_id="bob")
    assert ids(plan([candidate("new"), other_place], NOW, 25, 400)) == [["new"]]


@pytest.mark.req("UMB-17")
@pytest.mark.parametrize(
    ("days", "accesses", "chosen"), [(8, 2, True), (7, 2, False), (8, 3, False), (8, 0, True), (6, 0, False)]
)
def test_old_and_seldom_read_memories_may_be_compressed(days: int, accesses: int, chosen: bool) -> None:
    pair = [candidate(key, fresh=False, created_at=NOW - timedelta(days=days), access_count=accesses) for key in "ab"]
    found = plan(pair, NOW, 25, 400)
    assert [(set(batch.memory_ids), batch.old) for batch in found.batches] == ([({"a", "b"}, True)] if chosen else [])


def test_what_is_old_and_seldom_read_may_be_set_otherwise() -> None:
    pair = [candidate(key, fresh=False, created_at=NOW - timedelta(days=3), access_count=1) for key in "ab"]
    assert plan(pair, NOW, 25, 400).batches == []
    assert len(plan(pair, NOW, 25, 400, Seldom(timedelta(days=2), 2)).batches) == 1
    assert plan(pair, NOW, 25, 400, Seldom(timedelta(days=2), 1)).batches == []


@pytest.mark.req("UMB-17")
def test_an_old_memory_with_nothing_like_it_is_left_alone_and_none_is_weighed_twice() -> None:
    old = {"fresh": False, "created_at": NOW - timedelta(days=30)}
    assert plan([candidate("a", 0.0, **old), candidate("b", 2.0, **old)], NOW, 25, 400) == Found([], ["a", "b"])
    assert plan([candidate(key, weighed=True, **old) for key in "ab"], NOW, 25, 400) == Found([], [])


@pytest.mark.req("UMB-17")
def test_what_was_weighed_before_comes_along_with_what_resembles_it_now() -> None:
    old = {"fresh": False, "created_at": NOW - timedelta(days=30)}
    found = plan([candidate("before", weighed=True, **old), candidate("now", 0.1, **old)], NOW, 25, 400)
    assert ids(found) == [["now", "before"]]


@given(
    st.lists(st.tuples(st.floats(0, 6.2), st.booleans(), st.sampled_from("xyz"), st.integers(0, 40)), max_size=60),
    st.integers(2, 25),
)
def test_every_new_memory_is_looked_at_once(rows: list[tuple[float, bool, str, int]], size: int) -> None:
    found = [
        candidate(f"m{n}", direction, fresh=fresh, subject_id=who, created_at=NOW - timedelta(days=days))
        for n, (direction, fresh, who, days) in enumerate(rows)
    ]
    batches = plan(found, NOW, size, 400).batches
    seen = [key for batch in batches for key in batch.memory_ids]
    assert len(seen) == len(set(seen))
    assert {each.memory_id for each in found if each.fresh} <= set(seen)
    assert all(len(batch.memory_ids) <= size for batch in batches)


@pytest.mark.req("UMB-10")
async def test_discovery_finds_what_no_run_has_looked_at(bench: Bench) -> None:
    memories = await bench.save("User likes tea", "User likes jazz", "User likes maps")
    await bench.save("User is allergic to nuts", immutable=True)
    discovery = Discovery(bench.graph, batch_size=25, max_batches=400)
    (batch,) = (await discovery.find(bench.owner, bench.clock())).batches
    assert set(batch.memory_ids) == {each.id for each in memories}

    run_id, judged = await bench.propose({"action": "ASSOCIATE", "memory_ids": batch.memory_ids[:2]})
    await bench.executor.execute(bench.owner, run_id, judged, considered=batch.memory_ids)
    assert await discovery.find(bench.owner, bench.clock()) == Found([], [])
    await bench.undo(run_id)
    assert await discovery.find(bench.owner, bench.clock()) == Found([batch], [])


@pytest.mark.req("UMB-17")
async def test_old_memories_bring_a_user_back_into_the_night_once(bench: Bench) -> None:
    tenant = bench.owner.tenant
    memories = await bench.save("User likes tea", "User likes green tea")
    assert await users_with_work(bench.graph, tenant, bench.clock(), SELDOM) == [bench.owner]
    run_id, judged = await bench.propose({"action": "ASSOCIATE", "memory_ids": [each.id for each in memories]})
    ids = [each.id for each in memories]
    await bench.executor.execute(bench.owner, run_id, judged, considered=ids)
    bench.clock.advance(timedelta(days=7))
    assert await users_with_work(bench.graph, tenant, bench.clock(), SELDOM) == []
    bench.clock.advance(timedelta(days=1))
    assert await users_with_work(bench.graph, tenant, bench.clock(), SELDOM) == [bench.owner]
    run_id, judged = await bench.propose({"action": "ASSOCIATE", "memory_ids": ids})
    await bench.executor.execute(bench.owner, run_id, judged, considered=ids, weighed=ids)
    assert await users_with_work(bench.graph, tenant, bench.clock(), SELDOM) == []
