"""Which memories a run analyses, and which ones together."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphmem.consolidation.batch_planning import (
    ColdMemoryPolicy,
    ConsolidationCandidate,
    DiscoveryResult,
    discovery_score,
    find_neighbours,
    plan_batches,
)
from graphmem.consolidation.discovery import Discovery
from tests.consolidation.conftest import ConsolidationHarness

NOW = datetime(2026, 6, 1, 2, tzinfo=UTC)


def candidate(memory_id: str, direction: float = 0.0, **fields: Any) -> ConsolidationCandidate:
    known: dict[str, Any] = {
        "subject_id": "user",
        "scope": "profile",
        "domain": None,
        "entity_ids": frozenset({"user"}),
        "associations": 0,
        "created_at": NOW - timedelta(hours=1),
        "access_count": 0,
        "is_new": True,
        "considered_for_compression": False,
    }
    vector = np.array([np.cos(direction), np.sin(direction)], dtype=np.float32)
    return ConsolidationCandidate(memory_id=memory_id, vector=vector, **{**known, **fields})


def ids(found: DiscoveryResult) -> list[list[str]]:
    return [batch.memory_ids for batch in found.batches]


@pytest.mark.req("UMB-11")
@pytest.mark.parametrize(("size", "sizes"), [(0, []), (25, [25]), (26, [25, 1]), (60, [25, 25, 10])])
def test_memories_are_analysed_in_batches_of_25(size: int, sizes: list[int]) -> None:
    found = plan_batches([candidate(f"m{n}", n) for n in range(size)], NOW, 25, 400)
    assert [len(batch) for batch in ids(found)] == sizes


@pytest.mark.req("UMB-10")
def test_new_isolated_similar_and_overlapping_memories_score_higher() -> None:
    def best(first: ConsolidationCandidate, second: ConsolidationCandidate) -> bool:
        found = [first, second]
        near = find_neighbours(found)
        return discovery_score(found, 0, near[0], NOW) > discovery_score(found, 1, near[1], NOW)

    assert best(candidate("new"), candidate("old", created_at=NOW - timedelta(days=2)))
    assert best(candidate("alone"), candidate("linked", associations=5))
    alike = [candidate("a"), candidate("b", 0.1), candidate("c", 1.5)]
    near = find_neighbours(alike)
    assert discovery_score(alike, 0, near[0], NOW) > discovery_score(alike, 2, near[2], NOW)
    shared = [candidate("a", entity_ids=frozenset("xy")), candidate("b", entity_ids=frozenset("xy"))]
    apart = [candidate("a", entity_ids=frozenset("xy")), candidate("b", entity_ids=frozenset("vw"))]
    assert discovery_score(shared, 0, find_neighbours(shared)[0], NOW) > discovery_score(
        apart, 0, find_neighbours(apart)[0], NOW
    )


@pytest.mark.req("UMB-10")
def test_new_memories_are_batched_before_the_backlog() -> None:
    old = [candidate(f"old{n}", n, created_at=NOW - timedelta(days=3)) for n in range(2)]
    new = [candidate(f"new{n}", n + 0.5) for n in range(2)]
    assert set(ids(plan_batches([*old, *new], NOW, 2, 1))[0]) == {"new0", "new1"}
    assert {key for batch in ids(plan_batches([*old, *new], NOW, 2, 400)) for key in batch} == {
        "old0",
        "old1",
        "new0",
        "new1",
    }


@pytest.mark.req("UMB-16", "UMB-11")
def test_a_batch_groups_memories_by_subject_and_scope() -> None:
    mixed = [candidate(f"{who}{n}", 0.01 * n, subject_id=who) for n in range(3) for who in ("bob", "alice")]
    (batch,) = ids(plan_batches(mixed, NOW, 25, 400))
    people = [key.rstrip("012") for key in batch]
    assert people in (["bob"] * 3 + ["alice"] * 3, ["alice"] * 3 + ["bob"] * 3)


def test_a_new_memory_is_batched_with_similar_older_ones() -> None:
    older = [candidate("twin", 0.1, is_new=False), candidate("stranger", 2.0, is_new=False)]
    assert ids(plan_batches([candidate("new"), *older], NOW, 25, 400)) == [["new", "twin"]]
    other_place = candidate("else", 0.0, is_new=False, subject_id="bob")
    assert ids(plan_batches([candidate("new"), other_place], NOW, 25, 400)) == [["new"]]


@pytest.mark.req("UMB-17")
@pytest.mark.parametrize(
    ("days", "accesses", "chosen"), [(8, 2, True), (7, 2, False), (8, 3, False), (8, 0, True), (6, 0, False)]
)
def test_old_and_seldom_read_memories_may_be_compressed(days: int, accesses: int, chosen: bool) -> None:
    pair = [candidate(key, is_new=False, created_at=NOW - timedelta(days=days), access_count=accesses) for key in "ab"]
    found = plan_batches(pair, NOW, 25, 400)
    assert [(set(batch.memory_ids), batch.old) for batch in found.batches] == ([({"a", "b"}, True)] if chosen else [])


def test_the_cold_memory_policy_is_configurable() -> None:
    pair = [candidate(key, is_new=False, created_at=NOW - timedelta(days=3), access_count=1) for key in "ab"]
    assert plan_batches(pair, NOW, 25, 400).batches == []
    assert len(plan_batches(pair, NOW, 25, 400, ColdMemoryPolicy(timedelta(days=2), 2)).batches) == 1
    assert plan_batches(pair, NOW, 25, 400, ColdMemoryPolicy(timedelta(days=2), 1)).batches == []


@pytest.mark.req("UMB-17")
def test_an_old_memory_without_neighbours_is_left_alone_and_considered_once() -> None:
    old: dict[str, Any] = {"is_new": False, "created_at": NOW - timedelta(days=30)}
    assert plan_batches([candidate("a", 0.0, **old), candidate("b", 2.0, **old)], NOW, 25, 400) == DiscoveryResult(
        [], ["a", "b"]
    )
    assert plan_batches(
        [candidate(key, considered_for_compression=True, **old) for key in "ab"], NOW, 25, 400
    ) == DiscoveryResult([], [])


@pytest.mark.req("UMB-17")
def test_a_memory_considered_before_joins_a_similar_one_now() -> None:
    old: dict[str, Any] = {"is_new": False, "created_at": NOW - timedelta(days=30)}
    found = plan_batches(
        [candidate("before", considered_for_compression=True, **old), candidate("now", 0.1, **old)], NOW, 25, 400
    )
    assert ids(found) == [["now", "before"]]


@given(
    st.lists(st.tuples(st.floats(0, 6.2), st.booleans(), st.sampled_from("xyz"), st.integers(0, 40)), max_size=60),
    st.integers(2, 25),
)
def test_every_new_memory_is_in_exactly_one_batch(rows: list[tuple[float, bool, str, int]], size: int) -> None:
    found = [
        candidate(f"m{n}", direction, is_new=is_new, subject_id=who, created_at=NOW - timedelta(days=days))
        for n, (direction, is_new, who, days) in enumerate(rows)
    ]
    batches = plan_batches(found, NOW, size, 400).batches
    seen = [key for batch in batches for key in batch.memory_ids]
    assert len(seen) == len(set(seen))
    assert {memory.memory_id for memory in found if memory.is_new} <= set(seen)
    assert all(len(batch.memory_ids) <= size for batch in batches)


@pytest.mark.req("UMB-10")
async def test_discovery_finds_memories_no_run_has_considered(harness: ConsolidationHarness) -> None:
    memories = await harness.save("User likes tea", "User likes jazz", "User likes maps")
    await harness.save("User is allergic to nuts", immutable=True)
    discovery = Discovery(harness.graph, batch_size=25, max_batches=400)
    (batch,) = (await discovery.find_batches(harness.owner, harness.clock())).batches
    assert set(batch.memory_ids) == {memory.id for memory in memories}

    run_id, reviewed = await harness.propose({"action": "ASSOCIATE", "memory_ids": batch.memory_ids[:2]})
    await harness.executor.execute(harness.owner, run_id, reviewed, considered=batch.memory_ids)
    assert await discovery.find_batches(harness.owner, harness.clock()) == DiscoveryResult([], [])
    await harness.roll_back(run_id)
    assert await discovery.find_batches(harness.owner, harness.clock()) == DiscoveryResult([batch], [])


@pytest.mark.req("UMB-17")
async def test_a_user_with_cold_memories_is_due_once(harness: ConsolidationHarness) -> None:
    tenant, discovery = harness.owner.tenant, Discovery(harness.graph, batch_size=25, max_batches=400)
    memories = await harness.save("User likes tea", "User likes green tea")
    assert await discovery.find_owners(tenant, harness.clock()) == [harness.owner]
    run_id, reviewed = await harness.propose({"action": "ASSOCIATE", "memory_ids": [memory.id for memory in memories]})
    ids = [memory.id for memory in memories]
    await harness.executor.execute(harness.owner, run_id, reviewed, considered=ids)
    harness.clock.advance(timedelta(days=7))
    assert await discovery.find_owners(tenant, harness.clock()) == []
    harness.clock.advance(timedelta(days=1))
    assert await discovery.find_owners(tenant, harness.clock()) == [harness.owner]
    run_id, reviewed = await harness.propose({"action": "ASSOCIATE", "memory_ids": ids})
    await harness.executor.execute(harness.owner, run_id, reviewed, considered=ids, considered_for_compression=ids)
    assert await discovery.find_owners(tenant, harness.clock()) == []
