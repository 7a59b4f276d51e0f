"""Rollbacks: exact, limited to what the run did, for thirty days, and aware of later writes."""

from __future__ import annotations

import asyncio
import uuid
from datetime import timedelta
from typing import Any

import pytest

from graphmem.consolidation.models import ConsolidationRun, RollbackResult, RunStatus
from graphmem.memories.entity import EntityIn
from graphmem.memories.fact import RetrievalCount
from graphmem.memories.filters import FactFilters
from graphmem.memories.memory import Memory, MemoryIn, MemoryPatch
from graphmem.runtime.errors import Conflict, Gone, NotFound
from graphmem.user_data.forget import ForgetStore
from tests.consolidation.conftest import ConsolidationHarness
from tests.consolidation.test_execution import DIET, current, entity_id, verified_merge


async def diet(harness: ConsolidationHarness) -> tuple[list[Memory], ConsolidationRun]:
    memories = await harness.save("User is vegetarian", "User eats no dairy")
    return memories, await harness.execute(verified_merge(memories, DIET))


async def patch(harness: ConsolidationHarness, memory_id: str, **changes: Any) -> Memory:
    return await harness.facts.update_memory(
        harness.owner, memory_id, lambda ledger: ledger.amend(memory_id, MemoryPatch(**changes))
    )


async def status(harness: ConsolidationHarness, run_id: str) -> RunStatus:
    return (await harness.runs.get(harness.owner.tenant, run_id)).status


@pytest.mark.req("UMB-13")
async def test_a_rollback_restores_everything_and_can_be_rolled_back(harness: ConsolidationHarness) -> None:
    memories = await harness.save("User is vegetarian", "User eats no dairy", entities=[{"name": "Bob"}])
    before = await harness.graph_state()
    run = await harness.execute(verified_merge(memories, DIET))
    during = await harness.graph_state()
    undone = await harness.roll_back(run.id)
    assert await harness.graph_state() == before
    assert await status(harness, run.id) is RunStatus.ROLLED_BACK
    record = await harness.runs.get(harness.owner.tenant, undone.rollback_id)
    assert (record.undoes, record.change_count) == (run.id, run.change_count)
    assert DIET in repr(record.changes), "the record of the rollback shows what was believed meanwhile"

    redone = await harness.roll_back(undone.rollback_id)
    assert await harness.graph_state() == during
    assert await status(harness, run.id) is RunStatus.SUCCEEDED
    await harness.roll_back(redone.rollback_id)
    assert await harness.graph_state() == before
    assert await status(harness, run.id) is RunStatus.ROLLED_BACK


async def test_a_run_is_rolled_back_once(harness: ConsolidationHarness) -> None:
    _, run = await diet(harness)
    await harness.roll_back(run.id)
    with pytest.raises(Conflict):
        await harness.roll_back(run.id)


@pytest.mark.parametrize("force", [False, True])
async def test_of_several_rollbacks_at_once_one_takes_place(harness: ConsolidationHarness, force: bool) -> None:
    memories = await harness.save("User is vegetarian", "User eats no dairy")
    before = await harness.graph_state()
    run = await harness.execute(verified_merge(memories, DIET))
    outcomes = await asyncio.gather(*(harness.roll_back(run.id, force=force) for _ in range(4)), return_exceptions=True)
    assert sum(isinstance(outcome, Conflict) for outcome in outcomes) == 3, outcomes
    [done] = [outcome for outcome in outcomes if isinstance(outcome, RollbackResult)]
    assert (await harness.runs.get(harness.owner.tenant, run.id)).undone_by == done.rollback_id
    assert await harness.graph_state() == before


@pytest.mark.req("UMB-13")
async def test_a_run_can_be_rolled_back_for_thirty_days(harness: ConsolidationHarness) -> None:
    _, first = await diet(harness)
    harness.clock.advance(timedelta(days=29))
    await harness.roll_back(first.id)
    memories = await harness.save("User likes tea", "User likes jazz")
    late = await harness.execute(verified_merge(memories, "User likes tea and jazz"))
    harness.clock.advance(timedelta(days=31))
    with pytest.raises(Gone):
        await harness.roll_back(late.id)


async def test_no_rollback_makes_an_earlier_value_valid_beside_a_later_one(harness: ConsolidationHarness) -> None:
    lives = {"predicate": "LIVES_IN", "single_valued": True}
    memories = await harness.save_all(
        [MemoryIn.model_validate({"content": "User is vegetarian", **lives}), MemoryIn(content="User eats no dairy")]
    )
    run = await harness.execute(verified_merge(memories, DIET))
    assert run.change_count
    await harness.save_all([MemoryIn.model_validate({"content": "User is vegan", **lives})])
    state = await harness.graph_state()
    with pytest.raises(Conflict, match="one value at a time"):
        await harness.roll_back(run.id, force=True)
    assert await harness.graph_state() == state


async def test_access_counters_do_not_conflict_with_a_rollback(harness: ConsolidationHarness) -> None:
    memories = await harness.save("User plans to visit Rome", "User studies Latin")
    run = await harness.execute({"action": "ASSOCIATE", "memory_ids": [memory.id for memory in memories]})
    await harness.facts.reinforce(harness.owner, {memories[0].id: RetrievalCount(3, harness.clock())})
    await harness.roll_back(run.id)
    read = await harness.facts.get(harness.owner, memories[0].id)
    assert read.associations == []
    assert read.access_count == 3


async def test_unrelated_later_writes_survive_a_rollback(harness: ConsolidationHarness) -> None:
    bob = {"name": "Bob", "type": "Person"}
    memories = await harness.save("User is vegetarian", "User eats no dairy", entities=[bob])
    run = await harness.execute(verified_merge(memories, DIET))
    await harness.save("User met Bob in Rome", entities=[bob])
    await harness.roll_back(run.id)
    assert set(await current(harness)) == {"User is vegetarian", "User eats no dairy", "User met Bob in Rome"}
    bob_id = await entity_id(harness, "Bob")
    filters = FactFilters(valid_at=harness.clock(), known_at=harness.clock() + timedelta(days=1))
    about = await harness.facts.list_entity_facts(harness.owner, bob_id, filters, limit=10)
    assert len(about) == 3


async def test_conflicting_later_writes_are_listed_and_abort_the_rollback(harness: ConsolidationHarness) -> None:
    _, run = await diet(harness)
    merged = (await current(harness))[DIET]
    await patch(harness, merged.id, importance=0.9)
    before = await harness.graph_state()
    with pytest.raises(Conflict) as caught:
        await harness.roll_back(run.id)
    assert {error["memory_id"] for error in caught.value.errors} == {merged.id}
    assert await harness.graph_state() == before
    assert await status(harness, run.id) is RunStatus.SUCCEEDED


async def test_force_overwrites_conflicts_and_reports_them(harness: ConsolidationHarness) -> None:
    memories = await harness.save("User is vegetarian", "User eats no dairy")
    before = await harness.graph_state()
    run = await harness.execute(verified_merge(memories, DIET))
    merged = (await current(harness))[DIET]
    await patch(harness, merged.id, importance=0.9)
    later = await harness.graph_state()
    undone = await harness.roll_back(run.id, force=True)
    assert undone.conflicts
    assert await harness.graph_state() == before
    await harness.roll_back(undone.rollback_id)
    assert await harness.graph_state() == later


async def test_a_forced_rollback_keeps_the_successor_of_a_merged_memory(harness: ConsolidationHarness) -> None:
    _, run = await diet(harness)
    merged = (await current(harness))[DIET]
    await harness.save("User eats everything again", supersedes=[merged.id])
    harness.clock.advance(timedelta(seconds=1))
    with pytest.raises(Conflict):
        await harness.roll_back(run.id)
    await harness.roll_back(run.id, force=True)
    found = await current(harness)
    assert set(found) == {"User is vegetarian", "User eats no dairy", "User eats everything again"}
    assert found["User eats everything again"].supersedes == []
    with pytest.raises(NotFound):
        await harness.facts.get(harness.owner, merged.id)


async def test_a_statement_saved_again_since_the_run_is_a_conflict(harness: ConsolidationHarness) -> None:
    memories, run = await diet(harness)
    (again,) = await harness.save("User is vegetarian")
    assert again.id != memories[0].id
    with pytest.raises(Conflict) as caught:
        await harness.roll_back(run.id)
    assert [error["memory_id"] for error in caught.value.errors] == [again.id]
    undone = await harness.roll_back(run.id, force=True)
    found = await current(harness)
    assert found["User is vegetarian"].id == memories[0].id
    assert (await harness.facts.get(harness.owner, again.id)).superseded_by == memories[0].id
    await harness.roll_back(undone.rollback_id)
    assert set(await current(harness)) == {DIET, "User is vegetarian"}


async def test_a_forced_rollback_keeps_an_entity_referenced_since(harness: ConsolidationHarness) -> None:
    (memory,) = await harness.save("User walks with Rex")
    run = await harness.execute({"action": "CREATE_ENTITY", "name": "Rex", "type": "Animal", "memory_ids": [memory.id]})
    await harness.save("Rex is a beagle", subject={"name": "Rex"})
    with pytest.raises(Conflict):
        await harness.roll_back(run.id)
    await harness.roll_back(run.id, force=True)
    assert (await current(harness))["Rex is a beagle"].subject.name == "Rex"
    assert "Rex" not in {entity.name for entity in (await current(harness))["User walks with Rex"].entities}


async def test_rolling_back_a_link_restores_both_entities(harness: ConsolidationHarness) -> None:
    for name in ("Fred", "Frederick"):
        await harness.save(f"{name} likes tea", "likes rain", subject={"name": name, "type": "Person"})
    before = await harness.graph_state()
    ids = [await entity_id(harness, name) for name in ("Frederick", "Fred")]
    run = await harness.execute({"action": "LINK_ENTITIES", "keep_id": ids[0], "merge_id": ids[1]})
    (later,) = await harness.save("Fred likes salt", subject={"name": "Fred"})
    assert later.subject.id == ids[0]
    await harness.roll_back(run.id)
    after = await harness.graph_state()
    assert before.items() <= after.items()
    assert [key for key in after if key not in before] == [f"RELATES_TO{(await row_of(harness, later.id))}"]


async def test_a_rollback_never_takes_a_name_from_another_entity(harness: ConsolidationHarness) -> None:
    for name in ("Fred", "Frederick"):
        await harness.save(f"{name} likes tea", subject={"name": name, "type": "Person"})
    ids = [await entity_id(harness, name) for name in ("Frederick", "Fred")]
    run = await harness.execute({"action": "LINK_ENTITIES", "keep_id": ids[0], "merge_id": ids[1]})
    fred = EntityIn(name="Fred", type="Person")
    await harness.graph.write(
        lambda inside: harness.entities.create(inside, harness.owner, str(uuid.uuid4()), fred, None, harness.clock())
    )
    before = await harness.graph_state()
    with pytest.raises(Conflict, match="Fred"):
        await harness.roll_back(run.id, force=True)
    assert await harness.graph_state() == before


async def row_of(harness: ConsolidationHarness, memory_id: str) -> str:
    rows = await harness.graph.fetch("facts.list_versions", group_ids=[harness.owner.group_id], memory_id=memory_id)
    return str(rows[-1]["fact"]["uuid"])


async def test_forgetting_a_user_erases_before_images(harness: ConsolidationHarness) -> None:
    _, run = await diet(harness)
    erasure = await ForgetStore(harness.graph, harness.clock).begin(harness.owner)
    erased = (await erasure.end()).erased
    assert erased["Change"] + erased["ConsolidationRun"] == run.change_count + 1
    with pytest.raises(NotFound):
        await harness.runs.get(harness.owner.tenant, run.id)


async def test_an_erased_memory_leaves_no_image_and_the_rest_can_be_rolled_back(harness: ConsolidationHarness) -> None:
    memories, run = await diet(harness)
    erased, remaining = memories
    await harness.graph.write(lambda inside: harness.facts.erase_memory(inside, harness.owner, erased.id))
    await harness.graph.write(lambda inside: harness.runs.erase_memory(inside, harness.owner, erased.id))
    stored = (await harness.runs.get(harness.owner.tenant, run.id)).model_dump_json()
    assert erased.id not in stored
    assert 'User is vegetarian"' not in stored
    await harness.roll_back(run.id, force=True)
    assert set(await current(harness)) == {remaining.content}


@pytest.mark.req("UMB-13")
async def test_a_run_whose_changes_were_deleted_is_not_rolled_back(harness: ConsolidationHarness) -> None:
    _, run = await diet(harness)
    after = await harness.graph_state()
    # Maintenance ran with a shorter retention than the rollback knows.
    pruned = await harness.runs.delete_expired_changes(harness.owner, harness.clock() + timedelta(days=1))
    assert pruned == run.change_count
    with pytest.raises(Gone, match="GRAPHMEM_ROLLBACK_DAYS"):
        await harness.rollbacks.preview(harness.owner.tenant, run.id)
    with pytest.raises(Gone, match="GRAPHMEM_ROLLBACK_DAYS"):
        await harness.roll_back(run.id, force=True)
    assert await status(harness, run.id) is RunStatus.SUCCEEDED
    assert await harness.graph_state() == after
