"""What the two calls of an extraction come to, from a message in the middle of a chat to the state of the store."""

from __future__ import annotations

import re
from typing import Any

import pytest

from graphmem.embedding import Embedder
from graphmem.store.driver import Transaction
from tests.ingestion.conftest import World, at, candidate, decision, extraction, lives_in, reconciliation


@pytest.mark.req("GO-03")
async def test_the_first_call_turns_the_chat_into_the_words_that_are_searched_for(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    searched: list[str] = []
    value = Transaction.value

    async def noted(self: Transaction, name: str, **parameters: Any) -> Any:
        if name == "linking.related_facts":
            searched.append(parameters["words"])
        return await value(self, name, **parameters)

    monkeypatch.setattr(Transaction, "value", noted)
    await world.save("User loves green tea", type="preference", predicate="LIKES")
    told = candidate("User gave up the berth")
    world.model_answers(extraction(told, keywords=["marina contract", "mooring fee"]))
    await world.tell("Well, that was it with the boat, I let the place in the harbour go")
    (words,) = searched
    assert {"marina", "contract", "mooring", "fee", "berth"} <= set(re.findall(r"\w+", words))
    assert "harbour" not in words, "not the chat's own words"


async def test_what_came_with_an_entity_of_another_name_for_the_user_is_compared_with_what_is_told(
    world: World,
) -> None:
    await world.save("User loves green tea", type="preference", predicate="LIKES")
    renamed = "MATCH (e:Entity {group_id: $group_id, is_user: true}) SET e.name = 'another', e.name_key = 'another'"
    await world.graph.write(lambda each: each.run_text(renamed, {"group_id": world.owner.group_id}))
    likes = candidate("User is fond of green tea", type="preference", predicate="LIKES")
    world.model_answers(extraction(likes), reconciliation(decision(1, "insert")))
    await world.tell("I am so fond of green tea")
    assert len(world.prompts) == 2
    assert "User loves green tea" in world.prompts[-1]


@pytest.mark.req("QUINN-06")
async def test_what_is_worth_keeping_is_saved_in_the_middle_of_a_chat(world: World) -> None:
    uses = {"predicate": "USES_OS", "single_valued": True}
    switched = candidate("User runs Ubuntu", object={"name": "Ubuntu", "type": "Product"}, **uses)
    world.model_answers(extraction(), extraction(switched), extraction())
    await world.tell("My build fails")
    await world.tell("By the way, I switched to Ubuntu yesterday")
    assert await world.contents() == ["User runs Ubuntu"]
    await world.tell("Now the build works")
    (memory,) = await world.known()
    assert memory.source.session_id == "s1"


@pytest.mark.req("GO-09")
async def test_an_insert_ends_nothing_and_a_deletion_adds_nothing(world: World) -> None:
    await world.save("User loves green tea", type="preference", predicate="LIKES")
    likes = candidate("User loves black tea", type="preference", predicate="LIKES")
    world.model_answers(extraction(likes), reconciliation(decision(1, "insert", 1)))
    await world.tell("I love black tea too")
    assert await world.contents() == ["User loves green tea", "User loves black tea"]
    back = candidate("User loves green tea", type="preference", predicate="LIKES", retracts=True)
    world.model_answers(extraction(back), reconciliation(decision(1, "delete")))
    await world.tell("Forget about teas")
    assert await world.contents() == ["User loves green tea", "User loves black tea"], "no target was named"
    world.model_answers(extraction(back), reconciliation(decision(1, "delete", 1)))
    job = await world.tell("Forget that I love green tea")
    assert await world.contents() == ["User loves black tea"]
    assert [each["action"] for each in job.actions] == ["delete"]


@pytest.mark.req("GO-11")
async def test_what_is_deleted_ends_and_what_is_new_is_embedded_and_stored(world: World, embedder: Embedder) -> None:
    world.model_answers(extraction(lives_in("New York")), extraction(lives_in("London")))
    await world.tell(at("2026-01-10", "I live in New York"))
    (before,) = await world.known()
    await world.tell(at("2026-03-01", "I have moved to London"))
    (now,) = await world.known()
    assert now.content == "User lives in London"
    assert now.supersedes == [before.id]
    assert (await world.memories.get(world.owner, before.id)).superseded_by == now.id
    rows = await world.graph.read(
        lambda inside: inside.run_text(
            "MATCH ()-[r:RELATES_TO {group_id: $g, memory_id: $m}]->() RETURN r.fact_embedding AS vector",
            {"g": world.owner.group_id, "m": now.id},
        )
    )
    (expected,) = await embedder.embed(["User lives in London"])
    assert rows[0]["vector"] == pytest.approx(expected, abs=1e-6)
