"""What the actions of a run do to the graph, and that a refused action changes nothing."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from graphmem.consolidation.models import ProposalVerdict, RunPhase, RunStatus
from graphmem.conversations.episode_store import EpisodeStore
from graphmem.conversations.session import MessageIn, MessageRole
from graphmem.conversations.stored import PreparedMessage
from graphmem.memories.entity import EntityIn
from graphmem.memories.filters import FactFilters
from graphmem.memories.memory import (
    Memory,
    MemoryIn,
    MemoryPatch,
    MemorySourceIn,
    MemoryStatus,
)
from graphmem.runtime.errors import Conflict, NotFound
from graphmem.tenants.owners import Owner
from tests.consolidation.conftest import ConsolidationHarness

BOB = {"name": "Bob", "type": "Person"}
DIET = "User is vegetarian and eats no dairy"


def merge(memories: list[Memory], content: str) -> dict[str, Any]:
    return {"action": "MERGE", "memory_ids": [memory.id for memory in memories], "content": content}


def verified_merge(memories: list[Memory], content: str) -> dict[str, Any]:
    return verified(merge(memories, content))


def verified(proposal: dict[str, Any]) -> dict[str, Any]:
    """Return a proposal of a person who has compared its words with the memories."""
    return {**proposal, "verified": True}


async def current(harness: ConsolidationHarness) -> dict[str, Memory]:
    page, _ = await harness.facts.list_page(harness.owner, FactFilters(valid_at=harness.clock()), limit=200)
    return {memory.content: memory for memory in page}


async def entity_id(harness: ConsolidationHarness, name: str) -> str:
    (found,) = await harness.entities.resolve_entity_ids(harness.owner, name)
    return found


@pytest.mark.req("UMB-14", "UMB-15", "QUINN-26")
async def test_a_merge_supersedes_its_sources(harness: ConsolidationHarness) -> None:
    acme = {"name": "Acme", "type": "Organization"}
    first = await harness.save("Bob works at Acme", subject=BOB, object=acme, predicate="WORKS_AT", confidence=0.8)
    second = await harness.save("Bob works in the Engineering department", subject=BOB, importance=0.9, tags=["work"])
    content = "Bob works at Acme in the Engineering department"
    run = await harness.execute(verified_merge([*first, *second], content))

    assert run.status is RunStatus.SUCCEEDED
    assert [proposal.verdict for proposal in run.proposals] == [ProposalVerdict.EXECUTED]
    found = await current(harness)
    assert list(found) == [content]
    merged = found[content]
    assert merged.id == run.proposals[0].result_id
    assert merged.subject.name == "Bob"
    assert merged.object is not None
    assert merged.object.name == "Acme"
    assert set(merged.supersedes) == {first[0].id, second[0].id}
    assert (merged.confidence, merged.importance, merged.tags) == (0.8, 0.9, ["work"])
    assert merged.source.kind == "consolidation"
    for memory in (*first, *second):
        source = await harness.facts.get(harness.owner, memory.id)
        assert source.content == memory.content
        assert source.status is MemoryStatus.SUPERSEDED
        assert source.superseded_by == merged.id
        *_, row = await harness.facts.get_history(harness.owner, memory.id)
        assert (row.ended_reason, row.ended_by) == ("merged", run.id)


async def test_a_merge_keeps_the_messages_of_all_its_sources(harness: ConsolidationHarness) -> None:
    episodes = EpisodeStore(harness.graph, harness.clock)
    turns = [
        PreparedMessage(MessageIn(id=f"m{n}", role=MessageRole.USER, content=f"Turn {n}"), [0.1] * 384) for n in (1, 2)
    ]
    await episodes.append_messages(harness.owner, "s", turns)
    memories = await harness.save_all(
        [
            MemoryIn(content="User is vegetarian", source=MemorySourceIn(message_ids=["m1"])),
            MemoryIn(content="User eats no dairy", source=MemorySourceIn(message_ids=["m2"])),
        ]
    )
    await harness.execute(verified_merge(memories, DIET))
    merged = (await current(harness))[DIET]
    assert merged.source.message_ids == ["m1", "m2"]
    assert merged.source.session_id == "s"
    edges = [
        set(found[4]["entity_edges"]) for found in (await harness.graph_state()).values() if "Episodic" in found[0]
    ]
    assert edges[0] & edges[1], "both messages list the merged fact"


async def test_a_source_without_a_start_holds_up_to_the_start_of_the_merged_memory(
    harness: ConsolidationHarness,
) -> None:
    start = harness.clock().replace(year=2020)
    chess, sunday = await harness.save("User plays chess", "User plays on Sundays", valid_at=start)
    await harness.execute(verified_merge([chess, sunday], "User plays chess on Sundays"))
    merged = (await current(harness))["User plays chess on Sundays"]
    assert merged.valid_at == start
    earlier = await harness.save("User plays chess in a club")
    await harness.execute(verified_merge([merged, *earlier], "User plays chess on Sundays in a club"))
    found = await current(harness)
    assert found["User plays chess on Sundays in a club"].valid_at == start
    assert "User plays chess in a club" not in found
    assert (await harness.facts.get(harness.owner, earlier[0].id)).invalid_at == start


async def test_a_contradiction_is_reported_and_left_alone(harness: ConsolidationHarness) -> None:
    deadlines = await harness.save("The report is due on 4 May 2026", "The report is due on 9 May 2026")
    run = await harness.execute(verified_merge(deadlines, "The report is due on 4 or 9 May 2026"))
    assert [set(reported.memory_ids) for reported in run.contradictions] == [{memory.id for memory in deadlines}]
    assert run.change_count == 0
    assert len(await current(harness)) == 2


async def test_a_merged_memory_is_not_reverted_one_by_one(harness: ConsolidationHarness) -> None:
    memories = await harness.save("User is vegetarian", "User eats no dairy")
    await harness.execute(verified_merge(memories, DIET))
    key = memories[0].id
    with pytest.raises(Conflict, match="roll that run back"):
        await harness.facts.update_memory(harness.owner, key, lambda ledger: ledger.revert(key))


@pytest.mark.req("UMB-14")
async def test_association_links_memories_and_changes_nothing_else(harness: ConsolidationHarness) -> None:
    plan, reason, other = await harness.save("User plans to visit Rome", "User studies Latin", "User likes tea")
    run = await harness.execute({"action": "ASSOCIATE", "memory_ids": [plan.id, reason.id]})
    assert run.change_count == 2
    found = await current(harness)
    assert found[plan.content].associations == [reason.id]
    assert found[reason.content].associations == [plan.id]
    assert found[other.content].associations == []
    assert found[plan.content].version == 1


@pytest.mark.req("UMB-14")
async def test_an_entity_gets_attributes_and_further_names(harness: ConsolidationHarness) -> None:
    await harness.save("Bob bakes bread", subject=BOB)
    bob = await entity_id(harness, "Bob")
    known = {"profession": "baker", "summary": "Bakes."}
    await harness.execute({"action": "UPDATE_ENTITY", "entity_id": bob, "set": known, "add_aliases": ["Bobby"]})
    entity = await harness.entities.get(harness.owner, bob)
    assert entity.attributes == {"profession": "baker"}
    assert (entity.summary, entity.aliases) == ("Bakes.", ["Bobby"])
    assert await entity_id(harness, "bobby") == bob


@pytest.mark.req("UMB-14")
async def test_linking_moves_all_relationships_to_the_kept_entity(harness: ConsolidationHarness) -> None:
    fred, frederick = {"name": "Fred", "type": "Person"}, {"name": "Frederick", "type": "Person"}
    source = MemorySourceIn(message_ids=["m"])
    turn = PreparedMessage(MessageIn(id="m", role=MessageRole.USER, content="Fred likes tea"), [0.1] * 384)
    await EpisodeStore(harness.graph, harness.clock).append_messages(harness.owner, "s", [turn])
    await harness.save("Fred likes tea", subject=fred, source=source)
    await harness.save("Frederick lives in Bonn", subject=frederick, object={"name": "Bonn", "type": "City"})
    await harness.save("User met Fred in 2019", object=fred)
    await harness.save("User had lunch with Fred", entities=[EntityIn(**fred)])
    keep, gone = await entity_id(harness, "Frederick"), await entity_id(harness, "Fred")

    run = await harness.execute({"action": "LINK_ENTITIES", "keep_id": keep, "merge_id": gone})
    assert run.proposals[0].verdict is ProposalVerdict.EXECUTED, run.proposals[0].reason
    entity = await harness.entities.get(harness.owner, keep)
    assert entity.aliases == ["Fred"]
    assert await entity_id(harness, "fred") == keep
    with pytest.raises(NotFound):
        await harness.entities.get(harness.owner, gone)
    about = await harness.facts.list_entity_facts(harness.owner, keep, FactFilters(valid_at=harness.clock()), limit=20)
    assert len(about) == 4
    assert gone not in repr(await harness.graph_state())
    assert [found for found in (await harness.graph_state()).values() if found[1] == "MENTIONS" and found[3] == keep]
    await harness.save("Fred likes salt", subject=fred)
    assert await entity_id(harness, "Fred") == keep


async def test_linking_deduplicates_statements_about_both_entities(harness: ConsolidationHarness) -> None:
    for name in ("Fred", "Frederick"):
        await harness.save("likes tea", subject={"name": name, "type": "Person"})
    ids = [await entity_id(harness, name) for name in ("Frederick", "Fred")]
    await harness.execute({"action": "LINK_ENTITIES", "keep_id": ids[0], "merge_id": ids[1]})
    assert len(await current(harness)) == 1
    again = await harness.save("likes tea", subject={"name": "Fred", "type": "Person"})
    assert again[0].subject.id == ids[0]


@pytest.mark.req("UMB-14", "UMB-19")
async def test_create_entity_links_the_memories_that_mention_it(harness: ConsolidationHarness) -> None:
    first, second = await harness.save("User walks with Rex", "Rex is a beagle")
    run = await harness.execute(
        {"action": "CREATE_ENTITY", "name": "Rex", "type": "Animal", "memory_ids": [first.id, second.id]}
    )
    rex = await entity_id(harness, "Rex")
    assert run.proposals[0].result_id == rex
    about = await harness.facts.list_entity_facts(harness.owner, rex, FactFilters(valid_at=harness.clock()), limit=20)
    assert {memory.id for memory in about} == {first.id, second.id}


@pytest.mark.req("QUINN-21")
async def test_an_immutable_memory_is_left_alone(harness: ConsolidationHarness) -> None:
    fixed = await harness.save("User is allergic to nuts", immutable=True)
    other = await harness.save("User eats no dairy")
    before = await harness.graph_state()
    run = await harness.execute(
        verified_merge([*fixed, *other], "User is allergic to nuts and eats no dairy"),
        {"action": "ASSOCIATE", "memory_ids": [fixed[0].id, other[0].id]},
    )
    assert [proposal.verdict for proposal in run.proposals] == [ProposalVerdict.REFUSED] * 2
    assert await harness.graph_state() == before


@pytest.mark.req("UMB-16", "QUINN-41")
async def test_a_run_cannot_touch_memories_of_another_user(harness: ConsolidationHarness) -> None:
    mine = await harness.save("User likes tea")
    theirs = await replace(harness, owner=Owner(harness.owner.tenant, "noor")).save("User likes jazz")
    run = await harness.execute(verified_merge([*mine, *theirs], "User likes tea and jazz"))
    assert run.proposals[0].verdict is ProposalVerdict.REFUSED
    assert theirs[0].id in (run.proposals[0].reason or "")


async def test_a_memory_is_merged_once_in_a_run(harness: ConsolidationHarness) -> None:
    one, two, three = await harness.save("User likes tea", "User likes jazz", "User likes maps")
    run = await harness.execute(
        verified_merge([one, two], "User likes tea and jazz"), verified_merge([two, three], "User likes jazz and maps")
    )
    assert [proposal.verdict for proposal in run.proposals] == [ProposalVerdict.EXECUTED, ProposalVerdict.REFUSED]
    assert set(await current(harness)) == {"User likes tea and jazz", "User likes maps"}


async def test_an_association_follows_a_merge_of_the_same_run(harness: ConsolidationHarness) -> None:
    one, two, three = await harness.save("User likes tea", "User likes jazz", "User plays the saxophone")
    run = await harness.execute(
        {"action": "ASSOCIATE", "memory_ids": [two.id, three.id]},
        {"action": "ASSOCIATE", "memory_ids": [one.id, two.id]},
        verified_merge([one, two], "User likes tea and jazz"),
    )
    assert [proposal.verdict for proposal in run.proposals] == [
        ProposalVerdict.EXECUTED,
        ProposalVerdict.REFUSED,
        ProposalVerdict.EXECUTED,
    ]
    found = await current(harness)
    assert found["User plays the saxophone"].associations == [found["User likes tea and jazz"].id]


async def test_a_proposal_whose_memories_changed_is_stale(harness: ConsolidationHarness) -> None:
    memories = await harness.save("User is vegetarian", "User eats no dairy")
    run_id, reviewed = await harness.propose(verified_merge(memories, DIET))
    changed = memories[0].id
    await harness.facts.update_memory(
        harness.owner, changed, lambda ledger: ledger.amend(changed, MemoryPatch(importance=0.9))
    )
    executed = await harness.executor.execute(harness.owner, run_id, reviewed)
    assert executed.proposals[0].verdict is ProposalVerdict.STALE
    assert set(await current(harness)) == {memory.content for memory in memories}


async def test_a_run_above_the_loss_limits_is_aborted(harness: ConsolidationHarness) -> None:
    memories = await harness.save(*(f"User likes {thing}" for thing in ("tea", "jazz", "maps", "rain", "salt", "clay")))
    before = await harness.graph_state()
    run_id, executed = await harness.run_proposals(
        verified_merge(memories, "User likes tea, jazz, maps, rain, salt and clay"),
    )
    assert executed.status is RunStatus.ABORTED
    assert "6 of 6" in (executed.reason or "")
    assert await harness.graph_state() == before
    assert (await harness.runs.get(harness.owner.tenant, run_id)).changes == []


async def test_a_dry_run_previews_changes_without_writing(harness: ConsolidationHarness) -> None:
    memories = await harness.save("User is vegetarian", "User eats no dairy")
    before = await harness.graph_state()
    _, executed = await harness.run_proposals(verified_merge(memories, DIET), dry_run=True)
    assert executed.status is RunStatus.SUCCEEDED
    assert DIET in {
        change.after.properties["fact"] for change in executed.changes if change.after and not change.before
    }
    assert await harness.graph_state() == before


async def test_a_run_shows_what_it_changed_in_the_graph(harness: ConsolidationHarness) -> None:
    memories = await harness.save("User is vegetarian", "User eats no dairy")
    run = await harness.execute(verified_merge(memories, DIET))
    kinds = {(change.kind, change.before is None, change.after is None) for change in run.changes}
    assert ("fact", False, False) in kinds
    assert ("fact", True, False) in kinds
    ended = [change for change in run.changes if change.before and change.after and change.kind == "fact"]
    assert {change.memory_id for change in ended} == {memory.id for memory in memories}
    assert all(
        change.before.properties["fact"] == change.after.properties["fact"]
        for change in ended
        if change.before and change.after
    )
    rows = await harness.graph.fetch("snapshots.list_changes", run_id=run.id, limit=100)
    assert len(rows) == run.change_count == len(run.changes)


async def test_proposals_with_secrets_are_refused(harness: ConsolidationHarness) -> None:
    await harness.save("Bob bakes bread", subject=BOB)
    bob = await entity_id(harness, "Bob")
    run = await harness.execute({"action": "UPDATE_ENTITY", "entity_id": bob, "set": {"mail": "bob@example.org"}})
    assert run.proposals[0].verdict is ProposalVerdict.REFUSED
    assert "example.org" not in (run.proposals[0].reason or "")


async def test_an_executed_run_ends_with_its_profiles_and_is_not_rolled_back_before(
    harness: ConsolidationHarness,
) -> None:
    memories = await harness.save("User is vegetarian", "User eats no dairy")
    run_id, reviewed = await harness.propose(verified_merge(memories, DIET))
    await harness.executor.execute(harness.owner, run_id, reviewed, curated=True, ends_run=False)
    run = await harness.runs.get(harness.owner.tenant, run_id)
    assert (run.status, run.phase, run.finished_at) == (RunStatus.RUNNING, RunPhase.EXECUTED, None)
    assert list(await current(harness)) == [DIET]
    for roll_back in (harness.roll_back, lambda key: harness.rollbacks.preview(harness.owner.tenant, key)):
        with pytest.raises(Conflict, match="not ended"):
            await roll_back(run_id)
    await harness.runs.end_failed(harness.owner.tenant, run_id, "the model is away", harness.clock())
    run = await harness.runs.get(harness.owner.tenant, run_id)
    assert (run.status, run.phase) == (RunStatus.SUCCEEDED, RunPhase.DONE)
    assert run.reason == "its profiles were not written: the model is away"
    assert (await harness.roll_back(run_id)).restored == run.change_count
