"""What a model may answer, within its schema and outside it, and what becomes of the rest of its batch."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from functools import partial

import pytest

from graphmem.ingestion.plan import ActionPlanner
from graphmem.jobs.job import Job, JobStatus
from graphmem.memories.entity import EntityIn
from graphmem.memories.fact_store import FactStore
from graphmem.memories.memory import MemoryIn
from graphmem.models.language_model import CUT_OFF
from graphmem.runtime.paging import PageQuery
from tests.ingestion.conftest import (
    IngestionHarness,
    candidate,
    decision,
    extraction,
    lives_in,
    message_at,
    midnight,
    reconciliation,
    turn,
)
from tests.models.scripted_server import Exchange, Step, replies


def answers_after(work: Callable[[], Awaitable[object]], answer: object) -> Step:
    """A completion that comes after some work on the loop of the test."""
    loop, reply = asyncio.get_running_loop(), replies(json.dumps(answer))

    async def finish() -> None:
        await work()

    def step(exchange: Exchange) -> None:
        asyncio.run_coroutine_threadsafe(finish(), loop).result(60)
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


async def test_a_statement_that_cannot_end_another_is_saved_beside_it_with_the_rest_of_its_batch(
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
    harness.model_answers(extraction(*statements), answers_after(save_immutable, by_rules))
    job = await harness.send_and_extract(
        message_at("2026-03-01", "I am fond of green tea, Bob lives in Lund, I play the cello")
    )
    assert job.status == "succeeded", job.error
    contents = await harness.current_contents()
    assert {"Bob lives in Oslo", "Bob lives in Lund", "User is fond of green tea", "User plays the cello"} <= {
        *contents
    }


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


async def test_names_that_cannot_be_stored_cost_their_statements_only(harness: IngestionHarness) -> None:
    odd = ["\x00", "a\x00b", " ", "x" * 301, "\ufdfa" * 40]
    statements = [candidate("Bob plays chess", subject={"name": name, "type": "Person"}) for name in odd]
    names = [{"name": name, "others": ["Bob", "User"]} for name in odd]
    names += [{"name": "Bob", "others": [name, "Bobby"]} for name in odd]
    harness.model_answers(extraction(*statements, candidate("User plays the cello"), names=names))
    job = await harness.send_and_extract("Bob plays chess, I play the cello")
    assert job.status == "succeeded", job.error
    assert await harness.current_contents() == ["User plays the cello"]


def refusals(job: Job) -> list[object]:
    return [action["reason"] for action in job.actions if action["action"] == "refuse"]


async def test_each_candidate_of_an_answer_is_judged_on_its_own(harness: IngestionHarness) -> None:
    missing = candidate("User drinks oat milk")
    del missing["importance"]
    answer = extraction(
        candidate("User lives in Lund"),
        candidate("User likes tea", object="tea"),
        candidate("User owns a kite", type="flowerpot"),
        missing,
        candidate("User plays the harp"),
        names=[{"name": "Bob"}],
        turns=[{"message": 1, "intent": None, "entities": "none"}, turn(1, "tell_home")],
    )
    harness.model_answers(answer)
    job = await harness.send_and_extract("I live in Lund, like tea and play the harp.")
    assert (job.status, job.receipt.llm_calls) == (JobStatus.SUCCEEDED, 1)
    assert await harness.current_contents() == ["User lives in Lund", "User plays the harp"]
    assert [reason for reason in refusals(job) if "candidates" in str(reason)] == [
        "item 2 of candidates is malformed: object (model_type)",
        "item 3 of candidates is malformed: type (enum)",
        "item 4 of candidates is malformed: importance (missing)",
    ]
    page = await harness.conversations.list_messages(harness.owner, "s1", PageQuery())
    assert page.items[0].intent == "tell_home"


async def test_an_answer_that_is_cut_off_gives_the_candidates_that_were_complete(harness: IngestionHarness) -> None:
    statements = [candidate("User lives in Lund"), candidate("User plays the harp"), candidate("User likes tea")]
    text = json.dumps(extraction(*statements))
    harness.model_answers(replies(text[: text.index("likes tea")], finish="length"))
    job = await harness.send_and_extract("I live in Lund, play the harp and like tea.")
    assert (job.status, job.receipt.llm_calls) == (JobStatus.SUCCEEDED, 1)
    assert await harness.current_contents() == ["User lives in Lund", "User plays the harp"]
    assert refusals(job) == [CUT_OFF]


async def test_a_malformed_decision_costs_the_others_nothing(harness: IngestionHarness) -> None:
    likes = {"type": "preference", "predicate": "LIKES"}
    harness.model_answers(extraction(candidate("User loves coffee", **likes)))
    await harness.send_and_extract(message_at("2026-05-01", "coffee is my jam"))
    harness.model_answers(
        extraction(candidate("User no longer drinks coffee", **likes), candidate("User loves coffee beans", **likes)),
        {"decisions": [decision(1, "supersede", 1), {"new": 2, "action": "flowerpot"}], "same_entities": [7]},
    )
    job = await harness.send_and_extract(message_at("2026-05-20", "I gave up coffee, but I love its beans"))
    assert (job.status, job.receipt.llm_calls) == (JobStatus.SUCCEEDED, 2)
    assert await harness.current_contents() == ["User no longer drinks coffee", "User loves coffee beans"]
    assert [reason for reason in refusals(job) if "is malformed" in str(reason)] == [
        "item 2 of decisions is malformed: action (enum)",
        "item 1 of same_entities is malformed: the object (model_type)",
    ]


async def test_a_malformed_takeaway_costs_the_summary_nothing(harness: IngestionHarness) -> None:
    await harness.send("I like tea", extract=False)
    summary = {"title": "Tea", "summary": "They spoke of tea.", "takeaways": ["User likes tea", 5], "topics": []}
    harness.model_answers({**summary, "sentiment": None})
    job = await harness.conversations.summarize(harness.owner, "s1", wait=True)
    assert job.status is JobStatus.SUCCEEDED, job.error
    assert "User likes tea" in await harness.current_contents()
    assert refusals(job) == ["item 2 of takeaways is malformed: the object (string_type)"]


async def test_a_bug_fails_the_job_and_leaves_its_messages_to_a_fresh_retry(
    harness: IngestionHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*args: object) -> None:
        raise KeyError("secretly")

    harness.model_answers(extraction(candidate("User plays the cello"), candidate("User likes tea")))
    with monkeypatch.context() as patched:
        patched.setattr(ActionPlanner, "_plan_statement", fails)
        job = await harness.send_and_extract("I play the cello, secretly, and like tea")
    assert job.status is JobStatus.FAILED
    assert "KeyError" in (job.error or "")
    assert "secretly" not in (job.error or "")
    assert await harness.current_contents() == []
    harness.model_answers(extraction(candidate("User plays the cello")))
    await harness.jobs.retry(job.id, fresh=True)
    again = await harness.wait_for_job(job.id)
    assert again.status is JobStatus.SUCCEEDED, again.error
    assert await harness.current_contents() == ["User plays the cello"]
