"""What a model may answer within its schema, and what becomes of the rest of its window."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from functools import partial

import pytest
from graphmem.ingestion.dropped_candidates import TrialSucceeded, WriteScope, write_without_culprits
from prometheus_client import REGISTRY

from graphmem.memories.entity import EntityIn
from graphmem.memories.fact_store import FactStore
from graphmem.memories.memory import MemoryIn
from graphmem.runtime.errors import DatabaseUnavailable, ImmutableMemory
from tests.ingestion.conftest import (
    IngestionHarness,
    candidate,
    decision,
    extraction,
    lives_in,
    message_at,
    midnight,
    reconciliation,
)
from tests.models.scripted_server import Exchange, Step, replies


def dropped(stage: str) -> float:
    return REGISTRY.get_sample_value("graphmem_candidates_dropped_total", {"stage": stage}) or 0


def answers_after(work: Callable[[], Awaitable[object]], answer: object) -> Step:
    """A completion that comes after some work on the loop of the test."""
    loop, reply = asyncio.get_running_loop(), replies(json.dumps(answer))

    async def finish() -> None:
        await work()

    def step(exchange: Exchange) -> None:
        asyncio.run_coroutine_threadsafe(finish(), loop).result(20)
        reply(exchange)

    return step


async def test_a_name_means_an_entity_of_which_no_related_fact_speaks(harness: IngestionHarness) -> None:
    for person, fact in (("Paul Smith", "There is a collection of rare stamps"), ("Paul Jones", "Snow fell in 1962")):
        await harness.save(fact, subject={"name": person, "type": "Person"}, predicate="KEEPS")
    told = candidate("Paul dislikes olives", subject={"name": "Paul", "type": "Person"}, predicate="DISLIKES")
    same = [{"name": 1, "known": 2}, {"name": 7, "known": 1}]
    harness.model_answers(extraction(told), reconciliation(decision(1, "insert"), decision(9, "ignore"), same=same))
    job = await harness.send_and_extract("Paul dislikes olives")
    assert job.status == "succeeded", job.error
    memory = next(memory for memory in await harness.current_memories() if "olives" in memory.content)
    assert memory.subject.name == "Paul Smith"
    assert {action["reason"] for action in job.actions if action["action"] == "refuse"} == {
        "1 decisions are about statements that do not exist",
        "1 names are said to mean what they were not asked about",
    }


async def test_an_entity_that_is_erased_between_the_calls_is_refused_with_its_reason(harness: IngestionHarness) -> None:
    saved = [
        await harness.save(f"{person} collects stamps", subject={"name": person, "type": "Person"})
        for person in ("Paul Smith", "Paul Jones")
    ]

    async def erase() -> None:
        facts = FactStore(harness.graph, harness.entities, harness.clock)
        for memory_id in [result.memory.id for result in saved if result.memory]:
            await harness.graph.write(partial(facts.erase_memory, owner=harness.owner, memory_id=memory_id))

    told = candidate("Paul dislikes olives", subject={"name": "Paul", "type": "Person"}, predicate="DISLIKES")
    answer = reconciliation(decision(1, "supersede", 1, 2), same=[{"name": 1, "known": 1}])
    harness.model_answers(extraction(told), answers_after(erase, answer))
    job = await harness.send_and_extract("Paul dislikes olives")
    assert job.status == "succeeded", job.error
    assert await harness.current_contents() == ["Paul dislikes olives"]
    reasons = [action["reason"] for action in job.actions if action["action"] == "refuse"]
    assert "1 names mean entities that were erased meanwhile" in reasons


async def test_a_statement_that_cannot_end_another_is_saved_beside_it_with_the_rest_of_its_window(
    harness: IngestionHarness,
) -> None:
    await harness.save("User loves green tea", type="preference", predicate="LIKES")
    bob = {"name": "Bob", "type": "Person"}

    async def save_immutable() -> None:
        subject = EntityIn(name="Bob", type="Person")
        fixed = MemoryIn(
            content="Bob lives in Oslo",
            subject=subject,
            predicate="LIVES_IN",
            single_valued=True,
            immutable=True,
            valid_at=midnight("2020-01-01"),
        )
        await harness.memories.save(harness.owner, [fixed])

    statements = [
        candidate("User is fond of green tea", type="preference", predicate="LIKES"),
        lives_in("Lund", subject=bob) | {"content": "Bob lives in Lund"},
        candidate("User plays the cello", predicate="PLAYS"),
    ]
    by_rules = reconciliation(decision(1, "insert"), decision(3, "insert"))
    before = dropped("write")
    harness.model_answers(extraction(*statements), answers_after(save_immutable, by_rules))
    job = await harness.send_and_extract(
        message_at("2026-03-01", "I am fond of green tea, Bob lives in Lund, I play the cello")
    )
    assert job.status == "succeeded", job.error
    contents = await harness.current_contents()
    assert {"Bob lives in Oslo", "Bob lives in Lund", "User is fond of green tea", "User plays the cello"} <= {
        *contents
    }
    (refused,) = [action for action in job.actions if action["action"] == "refuse"]
    assert "immutable" in refused["reason"]
    assert refused["reason"].endswith("what was said is saved beside it")
    assert dropped("write") == before + 1


async def test_two_statements_that_end_one_value_are_both_saved(harness: IngestionHarness) -> None:
    oslo = {"object": {"name": "Oslo"}, "valid_at": midnight("2020-01-01")}
    await harness.save("User lives in Oslo", predicate="LIVES_IN", single_valued=True, **oslo)
    await harness.save("User likes Oslo's rain", type="preference", predicate="LIKES")
    moved, second = lives_in("Lund"), candidate("User left Oslo for good", predicate="LEFT")
    harness.model_answers(
        extraction(moved, second), reconciliation(decision(1, "supersede", 2), decision(2, "supersede", 1))
    )
    job = await harness.send_and_extract(message_at("2026-03-01", "I live in Lund now, I left Oslo for good"))
    assert job.status == "succeeded", job.error
    assert {"User lives in Lund", "User left Oslo for good"} <= {*await harness.current_contents()}
    assert not any("unexpected" in action.get("reason", "") for action in job.actions)


@pytest.mark.parametrize("name", ["\x00", "a\x00b", " ", "x" * 301, "\ufdfa" * 40])
async def test_a_name_that_cannot_be_stored_costs_its_statement_only(harness: IngestionHarness, name: str) -> None:
    odd = candidate("Bob plays chess", subject={"name": name, "type": "Person"})
    names = [{"name": name, "others": ["Bob", "User"]}, {"name": "Bob", "others": [name, "Bobby"]}]
    harness.model_answers(extraction(odd, candidate("User plays the cello"), names=names), reconciliation())
    job = await harness.send_and_extract("Bob plays chess, I play the cello")
    assert job.status == "succeeded", job.error
    assert await harness.current_contents() == ["User plays the cello"]


async def test_a_write_is_done_without_the_parts_that_prevent_it() -> None:
    written: list[set[int]] = []

    async def write(scope: WriteScope) -> set[int]:
        parts = {part for part in range(6) if scope.includes(part)}
        if 2 in parts and 2 not in scope.bare:
            raise ImmutableMemory("It is immutable.")
        if 4 in parts:
            raise KeyError("user text")
        if scope.is_trial:
            raise TrialSucceeded
        written.append(parts)
        assert scope.bare[2] == "It is immutable."
        assert "KeyError" in scope.refused[4]
        assert "user text" not in scope.refused[4]
        return parts

    assert await write_without_culprits(write, 5) == {0, 1, 2, 3, 5}
    assert written == [{0, 1, 2, 3, 5}]


async def test_a_write_that_fails_without_any_part_raises() -> None:
    async def fails(scope: WriteScope) -> None:
        raise ValueError("whatever")

    async def is_away(scope: WriteScope) -> None:
        raise DatabaseUnavailable("Neo4j does not answer.")

    with pytest.raises(ValueError, match="whatever"):
        await write_without_culprits(fails, 3)
    with pytest.raises(DatabaseUnavailable):
        await write_without_culprits(is_away, 3)
