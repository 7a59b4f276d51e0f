"""Which memories a run analyses, and which ones together."""

from __future__ import annotations

from dataclasses import replace
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
from graphmem.consolidation.discovery import Discovery, find_similar_spellings, rank_similar_names
from graphmem.memories.entity import NamedEntity
from graphmem.memories.memory import MemoryIn
from graphmem.tenants.owners import Owner
from tests.consolidation.conftest import ConsolidationHarness

NOW = datetime(2026, 6, 1, 2, tzinfo=UTC)


def candidate(memory_id: str, direction: float = 0.0, **fields: Any) -> ConsolidationCandidate:
    known: dict[str, Any] = {
        "content": f"a statement called {memory_id}",
        "subject_id": "user",
        "predicate": "STATES",
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
@pytest.mark.parametrize(("size", "batches"), [(0, 0), (2, 1), (25, 1), (26, 2), (51, 3), (60, 3)])
def test_memories_are_analysed_in_batches_of_25(size: int, batches: int) -> None:
    found = ids(plan_batches([candidate(f"m{n}", n) for n in range(size)], NOW, 25, 400))
    assert len(found) == batches
    assert sum(map(len, found)) == size
    assert all(2 <= len(batch) <= 25 for batch in found)


@pytest.mark.req("UMB-11")
def test_memories_of_different_subjects_are_analysed_in_full_batches() -> None:
    apart = [candidate(f"m{n}", subject_id=f"s{n}", entity_ids=frozenset()) for n in range(60)]
    assert [len(batch) for batch in ids(plan_batches(apart, NOW, 25, 400))] == [25, 25, 10]
    assert [len(batch) for batch in ids(plan_batches(apart[:26], NOW, 25, 400))] == [24, 2]


@pytest.mark.req("UMB-11")
def test_thirteen_pairs_are_analysed_pair_by_pair() -> None:
    pairs = [
        candidate(f"{pair}{side}", 0.01 * (side == "b"), subject_id=f"s{pair}", entity_ids=frozenset())
        for pair in range(13)
        for side in "ab"
    ]
    found = ids(plan_batches(pairs, NOW, 25, 400))
    batch_of = {key: number for number, batch in enumerate(found) for key in batch}
    assert len(batch_of) == 26
    assert all(batch_of[f"{pair}a"] == batch_of[f"{pair}b"] for pair in range(13))


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
    assert ids(plan_batches([candidate("new"), other_place], NOW, 25, 400)) == [["new", "else"]]


@pytest.mark.req("UMB-11")
def test_one_hobby_of_four_nights_and_two_domains_stands_in_one_batch() -> None:
    hobby = [
        candidate(
            f"guitar{n}",
            1.2 * n,
            domain="music" if n % 2 else None,
            predicate=f"P{n}",
            entity_ids=frozenset({"user", "guitar"}),
            created_at=NOW - timedelta(days=n),
        )
        for n in range(4)
    ]
    family = [candidate(f"visits{n}", 3 * n, predicate="VISITED", domain=f"d{n}") for n in range(2)]
    fillers = [candidate(f"filler{n}", n, subject_id=f"s{n}", entity_ids=frozenset()) for n in range(70)]
    user = NamedEntity("user", "Ida", "Person", (), True)
    found = ids(plan_batches([*hobby, *fillers, *family], NOW, 25, 400, entities=[user]))
    for prefix in ("guitar", "visits"):
        assert len([batch for batch in found if any(key.startswith(prefix) for key in batch)]) == 1


def test_a_single_new_memory_is_batched_with_the_most_similar_older_one_or_waits() -> None:
    bob: dict[str, Any] = {"is_new": False, "subject_id": "bob", "entity_ids": frozenset({"bob"})}
    older = [candidate(f"old{n}", n, **bob) for n in range(2, 5)]
    assert ids(plan_batches([candidate("new", 1.6), *older], NOW, 25, 400)) == [["new", "old2"]]
    assert plan_batches([candidate("new")], NOW, 25, 400) == DiscoveryResult([], [])


def told(memory_id: str, content: str, subject: str, *others: str, is_new: bool = True) -> ConsolidationCandidate:
    """Return a memory that has no meaning in common with others."""
    direction = sum(map(ord, memory_id)) * 1.7
    entity_ids = frozenset({subject, *others})
    return candidate(memory_id, direction, content=content, subject_id=subject, entity_ids=entity_ids, is_new=is_new)


def batch_of(memory_id: str, found: DiscoveryResult) -> list[str]:
    return next((batch for batch in ids(found) if memory_id in batch), [])


def named(entity_id: str, *names: str, type: str = "Person", is_user: bool = False) -> NamedEntity:
    return NamedEntity(entity_id, names[0], type, names[1:], is_user)


@pytest.mark.req("UMB-14")
def test_an_alias_a_name_in_a_text_and_a_common_neighbour_bring_memories_into_one_batch() -> None:
    fillers = [told(f"filler{n}", f"thing {n} is blue", f"thing{n}") for n in range(30)]
    alias = [told("hal", "Hal rows", "hal", is_new=False), told("henry", "Henry Ode sings", "henry")]
    naming = [
        told("sparky", "Sparky rows", "sparky", is_new=False),
        told("robert", "Robert, whom everybody calls Sparky", "robert"),
    ]
    shared = [
        told("chair", "The chair of the rowing club is ill", "chair", "club", is_new=False),
        told("martin", "Martin leads the rowing club", "martin", "club"),
    ]
    entities = [named("hal", "Hal"), named("henry", "Henry Ode", "Hal"), named("sparky", "Sparky")]
    entities += [named("robert", "Robert"), named("club", "rowing club"), named("martin", "Martin")]
    candidates = [*alias, *naming, *shared, *fillers]
    found = plan_batches(candidates, NOW, 25, 400, entities=entities, similar=[("hal", "henry")])
    assert "hal" in batch_of("henry", found)
    assert "sparky" in batch_of("robert", found)
    assert "chair" in batch_of("martin", found)


def test_of_two_similar_names_the_memory_that_has_both_is_analysed() -> None:
    older = [told(f"old{n}", f"Frederick rows {n}", "frederick", is_new=False) for n in range(20)]
    evidence = told("both", "Frederick, whom everybody calls Fred", "frederick", is_new=False)
    candidates = [*older, evidence, told("new", "Fred sings", "fred")]
    entities = [named("fred", "Fred"), named("frederick", "Frederick")]
    found = plan_batches(candidates, NOW, 25, 400, entities=entities, similar=[("fred", "frederick")])
    assert "both" in batch_of("new", found)
    assert len(batch_of("new", found)) <= 5


def alike(*names: str, near: float = 0.0) -> list[set[str]]:
    """Return the pairs of names that may mean one entity; `near` is the similarity of all their vectors."""
    entities = [named(name, name) for name in names]
    pairs = dict.fromkeys(find_similar_spellings(entities, entities), near)
    pairs |= {(one.id, other.id): near for one in entities for other in entities}
    return [set(pair) for pair in rank_similar_names(entities, pairs)]


@pytest.mark.req("UMB-14")
def test_similar_names_are_ranked_and_identifiers_are_exact() -> None:
    assert alike("Fred", "Frederick", "Anna") == [{"Fred", "Frederick"}]
    assert alike("Fred Weber", "Frederik Weber", "Fred") == [{"Fred", "Fred Weber"}]
    apart = [("iPhone 14", "iPhone 15"), ("INV-20231", "INV-20232"), ("LH1400", "LH1401"), ("Weber 1", "Weber 2")]
    assert [pair for pair in apart if alike(*pair, near=0.99)] == []
    assert alike("LH 1400", "LH1400") == [{"LH 1400", "LH1400"}]
    many = [f"Anna {letter}ahl" for letter in "BDFGHKLMNPRSTVWZC"]
    assert alike(*many, "Anna") == [], "a name that so many share distinguishes none"


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
    assert [set(batch) for batch in ids(found)] == [{"now", "before"}]


PEOPLE = {"x": "Fred", "y": "Frederick", "z": "Fred Weber", "w": "Anna", "user": "Anna Weber"}


@given(
    st.lists(st.tuples(st.floats(0, 6.2), st.booleans(), st.sampled_from([*PEOPLE]), st.integers(0, 40)), max_size=60),
    st.integers(2, 25),
    st.integers(1, 10),
)
def test_every_new_memory_is_in_one_batch_with_another_or_waits(
    rows: list[tuple[float, bool, str, int]], size: int, max_batches: int
) -> None:
    found = [
        candidate(f"m{n}", direction, is_new=is_new, subject_id=who, created_at=NOW - timedelta(days=days))
        for n, (direction, is_new, who, days) in enumerate(rows)
    ]
    entities = [named(key, name, is_user=key == "user") for key, name in PEOPLE.items()]
    planned = plan_batches(found, NOW, size, max_batches, entities=entities, similar=[("x", "y"), ("x", "z")])
    seen = [key for batch in planned.batches for key in batch.memory_ids]
    new = {memory.memory_id for memory in found if memory.is_new}
    assert len(seen) == len(set(seen))
    assert all(2 <= len(batch.memory_ids) <= size for batch in planned.batches)
    assert len(planned.batches) <= max_batches
    assert new.isdisjoint(planned.isolated_ids)
    assert planned.batches or not new or len(found) < 2
    if len(found) <= size * max_batches // 2:
        # Only where no company is left, one new memory at most waits for the next run.
        assert len(new - set(seen)) <= 1


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


@pytest.mark.req("UMB-14", "UMB-11")
async def test_fred_of_one_night_and_frederick_of_the_next_stand_in_one_batch(harness: ConsolidationHarness) -> None:
    fred = {"subject": {"name": "Fred", "type": "Person"}, "predicate": "REPAIRS"}
    frederick = {"subject": {"name": "Frederick", "type": "Person"}, "predicate": "IS"}
    older = await harness.save("Fred repairs clocks", "Fred repairs violins", **fred)
    older += await harness.save(*(f"User visited town number {number}" for number in range(20)))
    run_id, reviewed = await harness.propose(
        {"action": "ASSOCIATE", "memory_ids": [memory.id for memory in older[2:4]]}
    )
    await harness.executor.execute(harness.owner, run_id, reviewed, considered=[memory.id for memory in older])
    harness.clock.advance(timedelta(days=1))
    [told] = await harness.save("Frederick, whom everybody calls Fred, is a beekeeper", **frederick)

    discovery = Discovery(harness.graph, batch_size=25, max_batches=400)
    (batch,) = (await discovery.find_batches(harness.owner, harness.clock())).batches
    assert set(batch.memory_ids) == {told.id, older[0].id, older[1].id}


SIMILAR = [
    ("Fred", "Frederick"),
    ("Peggy", "Margaret Hale"),
    ("Katrin Sommer", "Kathrin Sommer"),
    ("TSL", "Tanzschule Städtischer Lehrer"),
    ("Дмитрий", "Dmitriy"),
    ("Joséphine", "Josephine Morel"),
]


@pytest.mark.req("UMB-14", "UMB-11")
async def test_two_similar_names_stand_in_one_batch_whenever_they_were_told(harness: ConsolidationHarness) -> None:
    apart = []
    for number, pair in enumerate([*SIMILAR, *(pair[::-1] for pair in SIMILAR[:3])]):
        user = replace(harness, owner=Owner(harness.owner.tenant, f"user{number}"))
        [older] = await user.save("It is blue", subject={"name": pair[0]})
        run_id, reviewed = await user.propose(
            {"action": "CREATE_ENTITY", "name": "blue", "type": "Colour", "memory_ids": [older.id]}
        )
        await user.executor.execute(user.owner, run_id, reviewed, considered=[older.id])
        things = [{"name": f"thing{number}", "type": "Thing"} for number in range(12)]
        fillers = [{"content": f"Here is {thing['name']}", "subject": thing} for thing in things]
        await user.save_all([MemoryIn.model_validate(filler) for filler in fillers])
        [newer] = await user.save("It rows", subject={"name": pair[1]})
        found = await Discovery(user.graph, batch_size=10, max_batches=400).find_batches(user.owner, user.clock())
        if older.id not in batch_of(newer.id, found):
            apart.append(pair)
    assert apart == []


@pytest.mark.req("UMB-10")
async def test_a_user_with_one_memory_is_due_when_there_is_another(harness: ConsolidationHarness) -> None:
    discovery = Discovery(harness.graph, batch_size=25, max_batches=400)
    [first] = await harness.save("User likes tea")
    await harness.save("User is allergic to nuts", immutable=True)
    assert await discovery.find_owners(harness.owner.tenant, harness.clock()) == []
    assert await discovery.find_batches(harness.owner, harness.clock()) == DiscoveryResult([], [])
    [second] = await harness.save("User repairs bicycles")
    assert await discovery.find_owners(harness.owner.tenant, harness.clock()) == [harness.owner]
    (batch,) = (await discovery.find_batches(harness.owner, harness.clock())).batches
    assert set(batch.memory_ids) == {first.id, second.id}


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
