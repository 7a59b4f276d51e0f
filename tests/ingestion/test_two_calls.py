"""The results of both calls of an extraction in the store."""

from __future__ import annotations

import re
from typing import Any

import pytest

from graphmem.models.embedder import Embedder
from graphmem.neo4j.driver import Transaction
from tests.ingestion.conftest import (
    IngestionHarness,
    candidate,
    decision,
    extraction,
    lives_in,
    message_at,
    reconciliation,
)


@pytest.mark.req("GO-03")
async def test_keywords_of_the_first_call_are_used_to_find_related_facts(
    harness: IngestionHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    searched: list[str] = []
    run = Transaction.run

    async def noted(self: Transaction, name: str, **parameters: Any) -> Any:
        if name == "extraction.find_related_facts":
            searched.append(parameters["words"])
        return await run(self, name, **parameters)

    monkeypatch.setattr(Transaction, "run", noted)
    await harness.save("User loves green tea", type="preference", predicate="LIKES")
    statement = candidate("User gave up the berth")
    harness.model_answers(extraction(statement, keywords=["marina contract", "mooring fee"]))
    await harness.send_and_extract("Well, that was it with the boat, I let the place in the harbour go")
    (words,) = searched
    assert {"marina", "contract", "mooring", "fee", "berth"} <= set(re.findall(r"\w+", words))
    assert "harbour" not in words, "not the chat's own words"


async def test_facts_of_a_renamed_user_entity_are_compared_with_new_candidates(
    harness: IngestionHarness,
) -> None:
    await harness.save("User loves green tea", type="preference", predicate="LIKES")
    renamed = "MATCH (e:Entity {group_id: $group_id, is_user: true}) SET e.name = 'another', e.name_key = 'another'"
    await harness.graph.write(lambda transaction: transaction.run_text(renamed, {"group_id": harness.owner.group_id}))
    likes = candidate("User is fond of green tea", type="preference", predicate="LIKES")
    harness.model_answers(extraction(likes), reconciliation(decision(1, "insert")))
    await harness.send_and_extract("I am so fond of green tea")
    assert len(harness.prompts) == 2
    assert "User loves green tea" in harness.prompts[-1]


async def test_open_plans_are_compared_with_whatever_is_told(harness: IngestionHarness) -> None:
    await harness.save("User plans to renew the passport", type="plan", predicate="PLANS")
    await harness.save("User loves green tea", type="preference", predicate="LIKES")
    likes = candidate("User is fond of green tea", type="preference", predicate="LIKES")
    harness.model_answers(extraction(likes), reconciliation(decision(1, "insert")))
    await harness.send_and_extract("I am so fond of green tea")
    assert "User plans to renew the passport" in harness.prompts[-1]


@pytest.mark.req("QUINN-06")
async def test_memories_are_saved_during_the_conversation(harness: IngestionHarness) -> None:
    uses = {"predicate": "USES_OS", "single_valued": True}
    switched = candidate("User runs Ubuntu", object={"name": "Ubuntu", "type": "Product"}, **uses)
    harness.model_answers(extraction(), extraction(switched), extraction())
    await harness.send_and_extract("My build fails")
    await harness.send_and_extract("By the way, I switched to Ubuntu yesterday")
    assert await harness.current_contents() == ["User runs Ubuntu"]
    await harness.send_and_extract("Now the build works")
    (memory,) = await harness.current_memories()
    assert memory.source.session_id == "s1"


@pytest.mark.req("GO-09")
async def test_an_insert_ends_nothing_and_a_deletion_adds_nothing(harness: IngestionHarness) -> None:
    await harness.save("User loves green tea", type="preference", predicate="LIKES")
    likes = candidate("User loves black tea", type="preference", predicate="LIKES")
    harness.model_answers(extraction(likes), reconciliation(decision(1, "insert", 1)))
    await harness.send_and_extract("I love black tea too")
    assert await harness.current_contents() == ["User loves green tea", "User loves black tea"]
    back = candidate("User loves green tea", type="preference", predicate="LIKES", retracts=True)
    harness.model_answers(extraction(back), reconciliation(decision(1, "delete")))
    await harness.send_and_extract("Forget about teas")
    assert await harness.current_contents() == ["User loves green tea", "User loves black tea"], "no target was named"
    harness.model_answers(extraction(back), reconciliation(decision(1, "delete", 1)))
    job = await harness.send_and_extract("Forget that I love green tea")
    assert await harness.current_contents() == ["User loves black tea"]
    assert [action["action"] for action in job.actions] == ["delete"]


@pytest.mark.req("GO-11")
async def test_a_superseded_fact_ends_and_the_new_one_is_stored_with_its_embedding(
    harness: IngestionHarness, embedder: Embedder
) -> None:
    harness.model_answers(extraction(lives_in("New York")), extraction(lives_in("London")))
    await harness.send_and_extract(message_at("2026-01-10", "I live in New York"))
    (before,) = await harness.current_memories()
    await harness.send_and_extract(message_at("2026-03-01", "I have moved to London"))
    (now,) = await harness.current_memories()
    assert now.content == "User lives in London"
    assert now.supersedes == [before.id]
    assert (await harness.memories.get(harness.owner, before.id)).superseded_by == now.id
    rows = await harness.graph.read(
        lambda transaction: transaction.run_text(
            "MATCH ()-[r:RELATES_TO {group_id: $g, memory_id: $m}]->() RETURN r.fact_embedding AS vector",
            {"g": harness.owner.group_id, "m": now.id},
        )
    )
    (expected,) = await embedder.embed(["User lives in London"])
    assert rows[0]["vector"] == pytest.approx(expected, abs=1e-6)
