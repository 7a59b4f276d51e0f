"""Undoing a run: exactly, only what it did, for thirty days, and with later writes in sight."""

from __future__ import annotations

import uuid
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from graphmem.domain.entity import EntityIn
from graphmem.domain.memory import Memory
from graphmem.domain.proposals import Run, RunStatus
from graphmem.errors import Conflict, Gone, NotFound
from graphmem.store.rows import seconds_of
from tests.consolidation.conftest import Bench
from tests.consolidation.test_execute import DIET, current, entity_id, merge


async def diet(bench: Bench) -> tuple[list[Memory], Run]:
    memories = await bench.save("User is vegetarian", "User eats no dairy")
    return memories, await bench.execute(merge(memories, DIET))


async def patch(bench: Bench, memory_id: str, **changes: Any) -> Memory:
    return await bench.facts.change(bench.owner, memory_id, lambda ledger: ledger.amend(memory_id, changes))


async def status(bench: Bench, run_id: str) -> RunStatus:
    return (await bench.runs.get(bench.owner.tenant, run_id)).status


@pytest.mark.req("UMB-13")
async def test_undoing_restores_every_property_and_vector_and_can_itself_be_undone(bench: Bench) -> None:
    memories = await bench.save("User is vegetarian", "User eats no dairy", entities=[{"name": "Bob"}])
    before = await bench.everything()
    run = await bench.execute(merge(memories, DIET))
    during = await bench.everything()
    undone = await bench.undo(run.id)
    assert await bench.everything() == before
    assert await status(bench, run.id) is RunStatus.ROLLED_BACK
    record = await bench.runs.get(bench.owner.tenant, undone.rollback_id)
    assert (record.undoes, record.change_count) == (run.id, run.change_count)
    assert DIET in repr(record.changes), "what was believed meanwhile stays readable in the record"

    redone = await bench.undo(undone.rollback_id)
    assert await bench.everything() == during
    assert await status(bench, run.id) is RunStatus.SUCCEEDED
    await bench.undo(redone.rollback_id)
    assert await bench.everything() == before
    assert await status(bench, run.id) is RunStatus.ROLLED_BACK


async def test_a_run_is_undone_once(bench: Bench) -> None:
    _, run = await diet(bench)
    await bench.undo(run.id)
    with pytest.raises(Conflict):
        await bench.undo(run.id)


@pytest.mark.req("UMB-13")
async def test_a_run_can_be_undone_for_thirty_days(bench: Bench) -> None:
    _, first = await diet(bench)
    bench.clock.advance(timedelta(days=29))
    await bench.undo(first.id)
    memories = await bench.save("User likes tea", "User likes jazz")
    late = await bench.execute(merge(memories, "User likes tea and jazz"))
    bench.clock.advance(timedelta(days=31))
    with pytest.raises(Gone):
        await bench.undo(late.id)


async def test_reading_in_between_does_not_stand_in_the_way(bench: Bench) -> None:
    memories = await bench.save("User plans to visit Rome", "User studies Latin")
    run = await bench.execute({"action": "ASSOCIATE", "memory_ids": [each.id for each in memories]})
    hits = [{"memory_id": memories[0].id, "times": 3, "at": seconds_of(bench.clock())}]
    await bench.graph.execute("facts.reinforce", group_ids=[bench.owner.group_id], hits=hits)
    await bench.undo(run.id)
    read = await bench.facts.get(bench.owner, memories[0].id)
    assert read.associations == []
    assert read.access_count == 3


async def test_later_writes_around_it_do_not_stand_in_the_way_and_stay(bench: Bench) -> None:
    bob = {"name": "Bob", "type": "Person"}
    memories = await bench.save("User is vegetarian", "User eats no dairy", entities=[bob])
    run = await bench.execute(merge(memories, DIET))
    await bench.save("User met Bob in Rome", entities=[bob])
    await bench.undo(run.id)
    assert set(await current(bench)) == {"User is vegetarian", "User eats no dairy", "User met Bob in Rome"}
    bob_id = await entity_id(bench, "Bob")
    about = await bench.graph.fetch(
        "entities.facts_of", group_ids=[bench.owner.group_id], entity_id=bob_id, valid_at=bench.clock(),
        known_at=bench.clock() + timedelta(days=1), any_validity=False, limit=10,
    )  # fmt: skip
    assert len(about) == 3


async def test_later_writes_to_the_same_things_are_listed_and_nothing_happens(bench: Bench) -> None:
    _, run = await diet(bench)
    merged = (await current(bench))[DIET]
    await patch(bench, merged.id, importance=0.9)
    before = await bench.everything()
    with pytest.raises(Conflict) as caught:
        await bench.undo(run.id)
    assert {error["memory_id"] for error in caught.value.errors} == {merged.id}
    assert await bench.everything() == before
    assert await status(bench, run.id) is RunStatus.SUCCEEDED


async def test_force_overwrites_them_and_says_so(bench: Bench) -> None:
    memories = await bench.save("User is vegetarian", "User eats no dairy")
    before = await bench.everything()
    run = await bench.execute(merge(memories, DIET))
    merged = (await current(bench))[DIET]
    await patch(bench, merged.id, importance=0.9)
    later = await bench.everything()
    undone = await bench.undo(run.id, force=True)
    assert undone.conflicts
    assert await bench.everything() == before
    await bench.undo(undone.rollback_id)
    assert await bench.everything() == later


async def test_what_replaced_a_merged_memory_since_stays_when_forced(bench: Bench) -> None:
    _, run = await diet(bench)
    merged = (await current(bench))[DIET]
    await bench.save("User eats everything again", supersedes=[merged.id])
    bench.clock.advance(timedelta(seconds=1))
    with pytest.raises(Conflict):
        await bench.undo(run.id)
    await bench.undo(run.id, force=True)
    found = await current(bench)
    assert set(found) == {"User is vegetarian", "User eats no dairy", "User eats everything again"}
    assert found["User eats everything again"].supersedes == []
    with pytest.raises(NotFound):
        await bench.facts.get(bench.owner, merged.id)


async def test_the_same_statement_made_again_since_is_a_conflict(bench: Bench) -> None:
    memories, run = await diet(bench)
    (again,) = await bench.save("User is vegetarian")
    assert again.id != memories[0].id
    with pytest.raises(Conflict) as caught:
        await bench.undo(run.id)
    assert [error["memory_id"] for error in caught.value.errors] == [again.id]
    undone = await bench.undo(run.id, force=True)
    found = await current(bench)
    assert found["User is vegetarian"].id == memories[0].id
    assert (await bench.facts.get(bench.owner, again.id)).superseded_by == memories[0].id
    await bench.undo(undone.rollback_id)
    assert set(await current(bench)) == {DIET, "User is vegetarian"}


async def test_an_entity_others_have_built_on_stays_when_forced(bench: Bench) -> None:
    (memory,) = await bench.save("User walks with Rex")
    run = await bench.execute({"action": "CREATE_ENTITY", "name": "Rex", "type": "Animal", "memory_ids": [memory.id]})
    await bench.save("Rex is a beagle", subject={"name": "Rex"})
    with pytest.raises(Conflict):
        await bench.undo(run.id)
    await bench.undo(run.id, force=True)
    assert (await current(bench))["Rex is a beagle"].subject.name == "Rex"
    assert "Rex" not in {each.name for each in (await current(bench))["User walks with Rex"].entities}


async def test_undoing_a_link_gives_both_entities_back(bench: Bench) -> None:
    for name in ("Fred", "Frederick"):
        await bench.save(f"{name} likes tea", "likes rain", subject={"name": name, "type": "Person"})
    before = await bench.everything()
    ids = [await entity_id(bench, name) for name in ("Frederick", "Fred")]
    run = await bench.execute({"action": "LINK_ENTITIES", "keep_id": ids[0], "merge_id": ids[1]})
    (later,) = await bench.save("Fred likes salt", subject={"name": "Fred"})
    assert later.subject.id == ids[0]
    await bench.undo(run.id)
    after = await bench.everything()
    assert before.items() <= after.items()
    assert [key for key in after if key not in before] == [f"RELATES_TO{(await row_of(bench, later.id))}"]


async def test_a_name_given_to_another_entity_since_is_not_taken_back(bench: Bench) -> None:
    for name in ("Fred", "Frederick"):
        await bench.save(f"{name} likes tea", subject={"name": name, "type": "Person"})
    ids = [await entity_id(bench, name) for name in ("Frederick", "Fred")]
    run = await bench.execute({"action": "LINK_ENTITIES", "keep_id": ids[0], "merge_id": ids[1]})
    fred = EntityIn(name="Fred", type="Person")
    await bench.graph.write(
        lambda inside: bench.entities.create(inside, bench.owner, str(uuid.uuid4()), fred, None, bench.clock())
    )
    before = await bench.everything()
    with pytest.raises(Conflict, match="Fred"):
        await bench.undo(run.id, force=True)
    assert await bench.everything() == before


async def row_of(bench: Bench, memory_id: str) -> str:
    rows = await bench.graph.fetch("facts.versions", group_ids=[bench.owner.group_id], memory_id=memory_id)
    return str(rows[-1]["fact"]["uuid"])


async def test_forgetting_reaches_the_images(bench: Bench) -> None:
    _, run = await diet(bench)
    erased = await bench.graph.write(lambda inside: bench.snapshots.forget(inside, bench.owner))
    assert sum(erased.values()) == run.change_count + 1
    with pytest.raises(NotFound):
        await bench.runs.get(bench.owner.tenant, run.id)


async def test_a_memory_erased_for_good_is_gone_from_images_and_the_rest_can_be_undone(bench: Bench) -> None:
    memories, run = await diet(bench)
    erased, kept = memories
    await bench.facts.erase(bench.owner, erased.id, [bench.snapshots.erase_memory])
    told = (await bench.runs.get(bench.owner.tenant, run.id)).model_dump_json()
    assert erased.id not in told
    assert 'User is vegetarian"' not in told
    await bench.undo(run.id, force=True)
    assert set(await current(bench)) == {kept.content}


@pytest.mark.req("UMB-13")
async def test_images_are_erased_when_their_time_is_over(bench: Bench) -> None:
    bench.clock.now = datetime(2001, 1, 1, tzinfo=UTC)
    _, run = await diet(bench)
    bench.clock.advance(timedelta(days=31))
    before = bench.clock() - timedelta(days=30)
    pruned = await bench.graph.write(lambda inside: bench.snapshots.prune(inside, before))
    assert pruned >= run.change_count
    left = await bench.runs.get(bench.owner.tenant, run.id)
    assert (left.changes, left.proposals) == ([], [])
