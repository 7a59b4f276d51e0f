"""Memories on a real Neo4j: concurrent writers, atomic batches, isolation of users."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Any
from zoneinfo import ZoneInfo

import numpy as np
import pytest

from graphmem.memories.entity import EntityIn
from graphmem.memories.entity_store import EntityStore
from graphmem.memories.fact import RetrievalCount
from graphmem.memories.fact_store import FactStore
from graphmem.memories.filters import FactFilters, SortOrder
from graphmem.memories.memory import (
    Memory,
    MemoryIn,
    MemoryPatch,
    SaveResult,
)
from graphmem.memories.new_memory import NewMemory
from graphmem.memories.related import COMPARED_PER_STATEMENT, MAX_RELATED
from graphmem.neo4j.driver import Graph
from graphmem.runtime.errors import Conflict, NotFound
from graphmem.runtime.field_types import name_key
from graphmem.runtime.times import utc_now
from graphmem.tenants.owners import Owner

VECTOR = [0.6, 0.8] + [0.0] * 382


@pytest.fixture
def facts(graph: Graph) -> FactStore:
    return FactStore(graph, EntityStore(graph), utc_now)


async def save(facts: FactStore, owner: Owner, *statements: dict[str, Any]) -> list[SaveResult]:
    memories = [NewMemory(MemoryIn(**statement), VECTOR) for statement in statements]
    return await facts.save(owner, memories, {}, "test")


async def save_one(facts: FactStore, owner: Owner, statement: dict[str, Any]) -> Memory:
    [result] = await save(facts, owner, statement)
    assert result.memory
    return result.memory


async def list_contents(
    facts: FactStore, owner: Owner, *, valid_at: datetime | None = None, any_validity: bool = False
) -> list[str]:
    filters = FactFilters(valid_at=valid_at or utc_now() + timedelta(seconds=1), any_validity=any_validity)
    memories, _ = await facts.list_page(owner, filters, sort=SortOrder.CREATED_AT, limit=200)
    return [memory.content for memory in memories]


@pytest.mark.req("UMB-19", "UMB-03")
async def test_a_memory_is_linked_to_and_found_by_its_entities(facts: FactStore, owner: Owner) -> None:
    statement = {
        "content": "Mara and Bob climb in Kullaberg",
        "object": {"name": "Kullaberg", "type": "Place"},
        "entities": [{"name": "Bob", "type": "Person"}],
    }
    memory = await save_one(facts, owner, statement)
    assert {entity.name for entity in memory.entities} == {"mara", "Kullaberg", "Bob"}
    for entity in memory.entities:
        about = await facts.list_entity_facts(owner, entity.id, FactFilters(valid_at=utc_now()), limit=10)
        assert [fact.id for fact in about] == [memory.id], entity.name


async def test_32_concurrent_writers_on_5_entities_create_5_nodes(facts: FactStore, graph: Graph, owner: Owner) -> None:
    names = ["Zoë", "BOB", "bob", "Straße", "STRASSE", "Ｌｕｎｄ", "lund", "Nils  Holm", "nils holm", "ZOË"]
    await asyncio.gather(
        *(
            save(facts, owner, {"content": f"met number {i}", "object": {"name": names[i % len(names)]}})
            for i in range(32)
        )
    )
    entities, _ = await EntityStore(graph).list_page(owner, text=None, type=None, after=None, limit=200)
    keys = sorted(name_key(entity.name) for entity in entities if not entity.is_user)
    assert keys == ["bob", "lund", "nils holm", "strasse", "zoë"]
    assert len(await list_contents(facts, owner)) == 32


async def test_20_concurrent_supersessions_leave_one_current(facts: FactStore, owner: Owner) -> None:
    first = await save_one(facts, owner, {"content": "works at Acme", "predicate": "WORKS_AT"})

    async def replace(number: int) -> bool:
        try:
            await save(
                facts,
                owner,
                {"content": f"works at Number {number}", "predicate": "WORKS_AT", "supersedes": [first.id]},
            )
        except Conflict:
            return False
        return True

    assert sum(await asyncio.gather(*(replace(number) for number in range(20)))) == 1
    assert len(await list_contents(facts, owner)) == 1


async def test_20_concurrent_single_valued_writers_leave_one_current(facts: FactStore, owner: Owner) -> None:
    statements = [
        {"content": f"lives in {i}", "predicate": "LIVES_IN", "single_valued": True, "object": {"name": f"City {i}"}}
        for i in range(20)
    ]
    await asyncio.gather(*(save(facts, owner, statement) for statement in statements))
    assert len(await list_contents(facts, owner)) == 1
    assert len(await list_contents(facts, owner, any_validity=True)) == 20


async def test_concurrent_duplicates_become_one_fact(facts: FactStore, owner: Owner) -> None:
    results = await asyncio.gather(*(save(facts, owner, {"content": "Likes  tea."}) for _ in range(10)))
    assert sorted(result[0].action for result in results) == ["insert"] + ["reinforce"] * 9
    assert len(await list_contents(facts, owner)) == 1


async def test_a_batch_is_saved_atomically(facts: FactStore, owner: Owner) -> None:
    with pytest.raises(NotFound):
        await save(facts, owner, {"content": "good"}, {"content": "bad", "supersedes": ["no-such-id"]})
    assert await list_contents(facts, owner) == []


async def test_memories_of_one_batch_can_supersede_each_other(facts: FactStore, owner: Owner) -> None:
    years = [datetime(year, 1, 1, tzinfo=UTC) for year in (2024, 2020, 2022)]
    statements = [
        {"content": f"lives in {at.year}", "predicate": "LIVES_IN", "single_valued": True, "valid_at": at}
        for at in years
    ]
    await save(facts, owner, *statements)
    assert await list_contents(facts, owner, valid_at=datetime(2023, 1, 1, tzinfo=UTC)) == ["lives in 2022"]
    assert await list_contents(facts, owner) == ["lives in 2024"]


@pytest.mark.req("QUINN-05")
async def test_global_memories_are_visible_to_their_tenant_only(facts: FactStore, owner: Owner) -> None:
    await save(facts, owner, {"content": "the office closes at six", "scope": "global"})
    assert await list_contents(facts, Owner(owner.tenant, "somebody else")) == ["the office closes at six"]
    assert await list_contents(facts, Owner("another", "somebody else")) == []


@pytest.mark.req("QUINN-41", "CASH-16")
async def test_users_with_similar_ids_are_isolated(facts: FactStore, tenant: str) -> None:
    owners = [Owner(tenant, name) for name in ("mara", "Mara", "mara:1", "mara 1", "ma*", "mära")]
    for number, user in enumerate(owners):
        await save(facts, user, {"content": f"secret number {number}"})
    for number, user in enumerate(owners):
        assert await list_contents(facts, user) == [f"secret number {number}"]


async def test_an_erased_memory_leaves_no_version_and_no_reference(
    facts: FactStore, graph: Graph, owner: Owner
) -> None:
    job = {"predicate": "WORKS_AT", "single_valued": True}
    old = await save_one(facts, owner, {"content": "works at Acme", **job})
    new = await save_one(facts, owner, {"content": "works at NewCo", **job})
    assert new.supersedes == [old.id]
    erased = await graph.write(lambda transaction: facts.erase_memory(transaction, owner, old.id))
    assert erased.versions == 2
    with pytest.raises(NotFound):
        await facts.get(owner, old.id)
    assert (await facts.get(owner, new.id)).supersedes == []


async def test_a_feeling_expires_after_two_weeks(facts: FactStore, owner: Owner) -> None:
    memory = await save_one(facts, owner, {"content": "is stressed about the deadline", "type": "feeling"})
    assert memory.expires_at
    assert memory.expires_at - memory.created_at == pytest.approx(timedelta(days=14), abs=timedelta(seconds=1))
    assert await list_contents(facts, owner, valid_at=memory.expires_at - timedelta(seconds=1)) == [memory.content]
    assert await list_contents(facts, owner, valid_at=memory.expires_at) == []


async def test_concurrent_corrections_lose_none(facts: FactStore, owner: Owner) -> None:
    key = (await save_one(facts, owner, {"content": "likes tea"})).id

    async def correct(number: int) -> None:
        await facts.update_memory(owner, key, lambda ledger: ledger.amend(key, MemoryPatch(importance=number / 20)))

    await asyncio.gather(*(correct(number) for number in range(20)))
    history = await facts.get_history(owner, key)
    assert [row.version for row in history] == list(range(1, 22))
    assert sorted(row.importance for row in history[1:]) == [number / 20 for number in range(20)]
    assert all(before.expired_at == after.created_at for before, after in pairwise(history))


async def test_a_correction_that_duplicates_another_memory_is_refused(facts: FactStore, owner: Owner) -> None:
    await save(facts, owner, {"content": "likes tea"})
    key = (await save_one(facts, owner, {"content": "likes coffee"})).id
    changes = MemoryPatch(content="likes tea")
    with pytest.raises(Conflict, match="already current"):
        await facts.update_memory(owner, key, lambda ledger: ledger.amend(key, changes), vector=VECTOR)
    assert (await facts.get(owner, key)).content == "likes coffee"


async def test_times_of_any_zone_are_stored_as_the_same_instant(facts: FactStore, owner: Owner) -> None:
    tokyo = datetime(2026, 1, 1, 9, tzinfo=ZoneInfo("Asia/Tokyo"))
    await save(facts, owner, {"content": "likes tea", "valid_at": datetime(2026, 1, 1, tzinfo=UTC)})
    assert await list_contents(facts, owner, valid_at=tokyo) == ["likes tea"]
    assert await list_contents(facts, owner, valid_at=tokyo - timedelta(seconds=1)) == []


@pytest.mark.req("UMB-08", "UMB-09")
async def test_strength_falls_with_time_and_a_retrieval_adds_to_what_is_left(graph: Graph, owner: Owner) -> None:
    now = [utc_now()]
    facts = FactStore(graph, EntityStore(graph), lambda: now[0])
    read = await save_one(facts, owner, {"content": "Mara likes tea"})
    unread = await save_one(facts, owner, {"content": "Mara likes rain"})

    async def strengths() -> dict[str, float]:
        filters = FactFilters(valid_at=now[0])
        memories, _ = await facts.list_page(owner, filters, sort=SortOrder.CREATED_AT, limit=200)
        return {memory.id: memory.strength for memory in memories}

    assert await strengths() == {read.id: 0.5, unread.id: 0.5}
    now[0] += timedelta(days=69.31)
    assert await strengths() == pytest.approx({read.id: 0.25, unread.id: 0.25}, abs=1e-4)
    await facts.reinforce(owner, {read.id: RetrievalCount(1, now[0])})
    assert await strengths() == pytest.approx({read.id: 0.3, unread.id: 0.25}, abs=1e-4)
    now[0] += timedelta(days=69.31)
    assert await strengths() == pytest.approx({read.id: 0.15, unread.id: 0.125}, abs=1e-4)


async def test_related_memories_are_the_same_whether_all_are_compared_or_those_near(
    facts: FactStore, owner: Owner
) -> None:
    """One statement about an entity with many versions is searched near; with a second one, all are compared."""
    rng = np.random.default_rng(7)
    topics = rng.normal(size=(COMPARED_PER_STATEMENT // 5 + 1, len(VECTOR)))

    def about_mara(content: str, topic: int, distance: float) -> NewMemory:
        vector = topics[topic] + distance * rng.normal(size=len(VECTOR))
        return NewMemory(MemoryIn(content=content, subject=EntityIn(name="Mara")), vector.tolist())

    known = [
        about_mara(f"Mara does {number} of {topic}", topic, 0.3) for topic in range(len(topics)) for number in range(5)
    ]
    await facts.save(owner, known, {}, None)
    [near] = await facts.save(owner, [about_mara("Mara does more of 3", 3, 0.1)], {}, None)
    again = [about_mara("Mara does yet more of 3", 3, 0.1), about_mara("Mara does more of 4", 4, 0.1)]
    compared, other = await facts.save(owner, again, {}, None)
    assert near.memory
    assert len(near.related) == len(compared.related) == len(other.related) == MAX_RELATED
    assert {*compared.related} - {near.memory.id} < {*near.related}
    assert {*other.related}.isdisjoint(near.related)


@pytest.mark.req("QUINN-27")
async def test_a_new_name_with_the_former_one_among_its_aliases_renames_the_entity(
    facts: FactStore, graph: Graph, owner: Owner
) -> None:
    def about(content: str, name: str, *aliases: str) -> dict[str, Any]:
        return {"content": content, "subject": {"name": name, "type": "Person", "aliases": list(aliases)}}

    first = await save_one(facts, owner, about("Bea Lund plays chess", "Bea Lund"))
    second = await save_one(facts, owner, about("Bea Moor moved to Rome", "Bea Moor", "Bea Lund"))
    third = await save_one(facts, owner, about("Bea Oduya teaches", "Bea Oduya", "Bea Moor"))
    nick = await save_one(facts, owner, about("Bea swims", "Bea", "Bea Oduya"))
    assert {memory.subject.id for memory in (first, second, third, nick)} == {first.subject.id}
    assert (third.subject.name, nick.subject.name) == ("Bea Oduya", "Bea Oduya")
    entity = await EntityStore(graph).get(owner, first.subject.id)
    assert (entity.name, set(entity.aliases), entity.memory_count) == ("Bea Oduya", {"Bea Lund", "Bea Moor", "Bea"}, 4)

    club = {
        "content": "Bea Moor FC won",
        "subject": {"name": "Moor FC", "type": "Organization", "aliases": ["Bea Berg"]},
    }
    assert (await save_one(facts, owner, club)).subject.id != first.subject.id, "of another type"
