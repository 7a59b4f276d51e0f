"""What each action does to the graph: all of it in one go, and nothing where it may not."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from graphmem.domain.entity import EntityIn
from graphmem.domain.identity import Owner
from graphmem.domain.memory import Memory, MemoryIn, SourceIn, Status
from graphmem.domain.proposals import RunStatus, Verdict
from graphmem.domain.session import MessageIn, Role
from graphmem.domain.times import LATEST
from graphmem.errors import Conflict, NotFound
from graphmem.store.episode_rows import Turn
from graphmem.store.episodes import EpisodeStore
from tests.consolidation.conftest import Bench

BOB = {"name": "Bob", "type": "Person"}
DIET = "User is vegetarian and eats no dairy"


def merge(memories: list[Memory], content: str) -> dict[str, Any]:
    return {"action": "MERGE", "memory_ids": [each.id for each in memories], "content": content}


async def current(bench: Bench) -> dict[str, Memory]:
    page, _, _ = await bench.facts.page(
        bench.owner, valid_at=bench.clock(), known_at=LATEST, any_validity=False, types=None, tags=[], not_tags=[],
        domain=None, scope=None, entity_ids=None, keyword=None, session_id=None, min_importance=None,
        min_confidence=None, created_after=None, created_before=None, sort="created_at", direction=1, after_key=None,
        after_id=None, limit=200,
    )  # fmt: skip
    return {memory.content: memory for memory in page}


async def entity_id(bench: Bench, name: str) -> str:
    (found,) = await bench.entities.ids_named(bench.owner, name)
    return found


@pytest.mark.req("UMB-14", "UMB-15", "QUINN-26")
async def test_a_merge_says_all_and_its_sources_point_to_it(bench: Bench) -> None:
    acme = {"name": "Acme", "type": "Organization"}
    first = await bench.save("Bob works at Acme", subject=BOB, object=acme, predicate="WORKS_AT", confidence=0.8)
    second = await bench.save("Bob works in the Engineering department", subject=BOB, importance=0.9, tags=["work"])
    content = "Bob works at Acme in the Engineering department"
    run = await bench.execute(merge([*first, *second], content))

    assert run.status is RunStatus.SUCCEEDED
    assert [each.verdict for each in run.proposals] == [Verdict.EXECUTED]
    found = await current(bench)
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
        source = await bench.facts.get(bench.owner, memory.id)
        assert source.content == memory.content
        assert source.status is Status.SUPERSEDED
        assert source.superseded_by == merged.id
        *_, row = await bench.facts.history(bench.owner, memory.id)
        assert (row.ended_reason, row.ended_by) == ("merged", run.id)


async def test_a_merge_keeps_the_messages_of_all_its_sources(bench: Bench) -> None:
    episodes = EpisodeStore(bench.graph, bench.clock)
    turns = [Turn(MessageIn(id=f"m{n}", role=Role.USER, content=f"Turn {n}"), [0.1] * 384) for n in (1, 2)]
    await episodes.append(bench.owner, "s", turns, job_id=None)
    memories = await bench.save_all(
        [
            MemoryIn(content="User is vegetarian", source=SourceIn(message_ids=["m1"])),
            MemoryIn(content="User eats no dairy", source=SourceIn(message_ids=["m2"])),
        ]
    )
    await bench.execute(merge(memories, DIET))
    merged = (await current(bench))[DIET]
    assert merged.source.message_ids == ["m1", "m2"]
    assert merged.source.session_id == "s"
    edges = [set(found[4]["entity_edges"]) for found in (await bench.everything()).values() if "Episodic" in found[0]]
    assert edges[0] & edges[1], "both messages are tied to the merged fact"


async def test_a_merged_memory_holds_since_its_sources_do(bench: Bench) -> None:
    start = bench.clock().replace(year=2020)
    chess, sunday = await bench.save("User plays chess", "User plays on Sundays", valid_at=start)
    await bench.execute(merge([chess, sunday], "User plays chess on Sundays"))
    merged = (await current(bench))["User plays chess on Sundays"]
    assert merged.valid_at == start
    earlier = await bench.save("User plays chess in a club")
    await bench.execute(merge([merged, *earlier], "User plays chess on Sundays in a club"))
    assert (await current(bench))["User plays chess on Sundays in a club"].valid_at is None


async def test_a_merged_memory_is_not_reverted_one_by_one(bench: Bench) -> None:
    memories = await bench.save("User is vegetarian", "User eats no dairy")
    await bench.execute(merge(memories, DIET))
    key = memories[0].id
    with pytest.raises(Conflict, match="roll that run back"):
        await bench.facts.change(bench.owner, key, lambda ledger: ledger.revert(key), related=True)


@pytest.mark.req("UMB-14")
async def test_association_links_memories_and_changes_nothing_else(bench: Bench) -> None:
    plan, reason, other = await bench.save("User plans to visit Rome", "User studies Latin", "User likes tea")
    run = await bench.execute({"action": "ASSOCIATE", "memory_ids": [plan.id, reason.id]})
    assert run.change_count == 2
    found = await current(bench)
    assert found[plan.content].associations == [reason.id]
    assert found[reason.content].associations == [plan.id]
    assert found[other.content].associations == []
    assert found[plan.content].version == 1


@pytest.mark.req("UMB-14")
async def test_an_entity_gets_attributes_and_further_names(bench: Bench) -> None:
    await bench.save("Bob bakes bread", subject=BOB)
    bob = await entity_id(bench, "Bob")
    known = {"profession": "baker", "summary": "Bakes."}
    await bench.execute({"action": "UPDATE_ENTITY", "entity_id": bob, "set": known, "add_aliases": ["Bobby"]})
    entity = await bench.entities.get(bench.owner, bob)
    assert entity.attributes == {"profession": "baker"}
    assert (entity.summary, entity.aliases) == ("Bakes.", ["Bobby"])
    assert await entity_id(bench, "bobby") == bob


@pytest.mark.req("UMB-14")
async def test_linking_moves_everything_to_the_kept_entity_and_leaves_nothing_dangling(bench: Bench) -> None:
    fred, frederick = {"name": "Fred", "type": "Person"}, {"name": "Frederick", "type": "Person"}
    told = SourceIn(message_ids=["m"])
    turn = Turn(MessageIn(id="m", role=Role.USER, content="Fred likes tea"), [0.1] * 384)
    await EpisodeStore(bench.graph, bench.clock).append(bench.owner, "s", [turn], job_id=None)
    await bench.save("Fred likes tea", subject=fred, source=told)
    await bench.save("Frederick lives in Bonn", subject=frederick, object={"name": "Bonn", "type": "City"})
    await bench.save("User met Fred in 2019", object=fred)
    await bench.save("User had lunch with Fred", entities=[EntityIn(**fred)])
    keep, gone = await entity_id(bench, "Frederick"), await entity_id(bench, "Fred")

    run = await bench.execute({"action": "LINK_ENTITIES", "keep_id": keep, "merge_id": gone})
    assert run.proposals[0].verdict is Verdict.EXECUTED, run.proposals[0].reason
    entity = await bench.entities.get(bench.owner, keep)
    assert entity.aliases == ["Fred"]
    assert await entity_id(bench, "fred") == keep
    with pytest.raises(NotFound):
        await bench.entities.get(bench.owner, gone)
    about = await bench.facts.of_entity(
        bench.owner, keep, valid_at=bench.clock(), known_at=LATEST, any_validity=False, limit=20
    )
    assert len(about) == 4
    assert gone not in repr(await bench.everything())
    assert [found for found in (await bench.everything()).values() if found[1] == "MENTIONS" and found[3] == keep]
    await bench.save("Fred likes salt", subject=fred)
    assert await entity_id(bench, "Fred") == keep


async def test_what_is_said_of_both_names_is_said_once_afterwards(bench: Bench) -> None:
    for name in ("Fred", "Frederick"):
        await bench.save("likes tea", subject={"name": name, "type": "Person"})
    ids = [await entity_id(bench, name) for name in ("Frederick", "Fred")]
    await bench.execute({"action": "LINK_ENTITIES", "keep_id": ids[0], "merge_id": ids[1]})
    assert len(await current(bench)) == 1
    again = await bench.save("likes tea", subject={"name": "Fred", "type": "Person"})
    assert again[0].subject.id == ids[0]


@pytest.mark.req("UMB-14", "UMB-19")
async def test_what_memories_speak_of_becomes_an_entity(bench: Bench) -> None:
    first, second = await bench.save("User walks with Rex", "Rex is a beagle")
    run = await bench.execute(
        {"action": "CREATE_ENTITY", "name": "Rex", "type": "Animal", "memory_ids": [first.id, second.id]}
    )
    rex = await entity_id(bench, "Rex")
    assert run.proposals[0].result_id == rex
    about = await bench.facts.of_entity(
        bench.owner, rex, valid_at=bench.clock(), known_at=LATEST, any_validity=False, limit=20
    )
    assert {memory.id for memory in about} == {first.id, second.id}


@pytest.mark.req("QUINN-21")
async def test_an_immutable_memory_is_left_alone(bench: Bench) -> None:
    fixed = await bench.save("User is allergic to nuts", immutable=True)
    other = await bench.save("User eats no dairy")
    before = await bench.everything()
    run = await bench.execute(
        merge([*fixed, *other], "User is allergic to nuts and eats no dairy"),
        {"action": "ASSOCIATE", "memory_ids": [fixed[0].id, other[0].id]},
    )
    assert [each.verdict for each in run.proposals] == [Verdict.REFUSED] * 2
    assert await bench.everything() == before


@pytest.mark.req("UMB-16", "QUINN-41")
async def test_memories_of_another_user_do_not_exist_for_a_run(bench: Bench) -> None:
    mine = await bench.save("User likes tea")
    theirs = await replace(bench, owner=Owner(bench.owner.tenant, "noor")).save("User likes jazz")
    run = await bench.execute(merge([*mine, *theirs], "User likes tea and jazz"))
    assert run.proposals[0].verdict is Verdict.REFUSED
    assert theirs[0].id in (run.proposals[0].reason or "")


async def test_a_memory_is_merged_once_in_a_run(bench: Bench) -> None:
    one, two, three = await bench.save("User likes tea", "User likes jazz", "User likes maps")
    run = await bench.execute(
        merge([one, two], "User likes tea and jazz"), merge([two, three], "User likes jazz and maps")
    )
    assert [each.verdict for each in run.proposals] == [Verdict.EXECUTED, Verdict.REFUSED]
    assert set(await current(bench)) == {"User likes tea and jazz", "User likes maps"}


async def test_an_association_follows_a_merge_of_the_same_run(bench: Bench) -> None:
    one, two, three = await bench.save("User likes tea", "User likes jazz", "User plays the saxophone")
    run = await bench.execute(
        {"action": "ASSOCIATE", "memory_ids": [two.id, three.id]},
        {"action": "ASSOCIATE", "memory_ids": [one.id, two.id]},
        merge([one, two], "User likes tea and jazz"),
    )
    assert [each.verdict for each in run.proposals] == [Verdict.EXECUTED, Verdict.REFUSED, Verdict.EXECUTED]
    found = await current(bench)
    assert found["User plays the saxophone"].associations == [found["User likes tea and jazz"].id]


async def test_what_has_changed_since_it_was_proposed_is_left_alone(bench: Bench) -> None:
    memories = await bench.save("User is vegetarian", "User eats no dairy")
    run_id, judged = await bench.propose(merge(memories, DIET))
    changed = memories[0].id
    await bench.facts.change(bench.owner, changed, lambda ledger: ledger.amend(changed, {"importance": 0.9}))
    executed = await bench.executor.execute(bench.owner, run_id, judged)
    assert executed.judged[0].verdict is Verdict.STALE
    assert set(await current(bench)) == {each.content for each in memories}


async def test_a_run_that_would_take_too_much_is_given_up_whole(bench: Bench) -> None:
    memories = await bench.save(*(f"User likes {thing}" for thing in ("tea", "jazz", "maps", "rain", "salt", "clay")))
    before = await bench.everything()
    run_id, executed = await bench.try_out(
        merge(memories, "User likes tea, jazz, maps, rain, salt and clay"),
    )
    assert executed.status is RunStatus.ABORTED
    assert "6 of 6" in (executed.reason or "")
    assert await bench.everything() == before
    assert (await bench.runs.get(bench.owner.tenant, run_id)).changes == []


async def test_a_dry_run_tells_what_it_would_do_and_does_nothing(bench: Bench) -> None:
    memories = await bench.save("User is vegetarian", "User eats no dairy")
    before = await bench.everything()
    _, executed = await bench.try_out(merge(memories, DIET), dry_run=True)
    assert executed.status is RunStatus.SUCCEEDED
    assert DIET in {delta.after.properties["fact"] for delta in executed.deltas if delta.after and not delta.before}
    assert await bench.everything() == before


async def test_a_run_shows_what_it_changed_in_the_graph(bench: Bench) -> None:
    memories = await bench.save("User is vegetarian", "User eats no dairy")
    run = await bench.execute(merge(memories, DIET))
    kinds = {(change.kind, change.before is None, change.after is None) for change in run.changes}
    assert ("fact", False, False) in kinds
    assert ("fact", True, False) in kinds
    ended = [change for change in run.changes if change.before and change.after and change.kind == "fact"]
    assert {change.memory_id for change in ended} == {each.id for each in memories}
    assert all(change.before["fact"] == change.after["fact"] for change in ended if change.before and change.after)
    rows = await bench.graph.fetch("snapshots.changes", run_id=run.id, limit=100)
    assert len(rows) == run.change_count == len(run.changes)


async def test_no_secret_gets_in_by_way_of_consolidation(bench: Bench) -> None:
    await bench.save("Bob bakes bread", subject=BOB)
    bob = await entity_id(bench, "Bob")
    run = await bench.execute({"action": "UPDATE_ENTITY", "entity_id": bob, "set": {"mail": "bob@example.org"}})
    assert run.proposals[0].verdict is Verdict.REFUSED
    assert "example.org" not in (run.proposals[0].reason or "")
