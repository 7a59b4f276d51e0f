"""Saves that a model compares with what is known."""

from __future__ import annotations

from graphmem.memories.memory import MemoryIn, SaveAction
from tests.ingestion.conftest import IngestionHarness, decision, reconciliation


async def test_an_inferred_save_supersedes_what_it_contradicts(harness: IngestionHarness) -> None:
    (known,) = await harness.memories.save(harness.owner, [MemoryIn(content="Lives in Vienna")])
    assert known.memory
    harness.model_answers(
        {
            "decisions": [{"new": 1, "action": "supersede", "known": [1], "ended_at": None, "reason": "moved"}],
            "same_entities": [],
        }
    )
    (moved,) = await harness.memories.save(harness.owner, [MemoryIn(content="Lives in Oslo")], infer=True)
    assert (moved.action, moved.superseded, moved.related) == (SaveAction.SUPERSEDE, [known.memory.id], [])
    assert [memory.content for memory in await harness.current_memories()] == ["Lives in Oslo"]


async def test_an_inferred_save_without_anything_related_calls_no_model(harness: IngestionHarness) -> None:
    (first,) = await harness.memories.save(harness.owner, [MemoryIn(content="Lives in Vienna")], infer=True)
    assert (first.action, harness.prompts) == (SaveAction.INSERT, [])
    (again,) = await harness.memories.save(harness.owner, [MemoryIn(content="Lives in Vienna")], infer=True)
    assert (again.action, harness.prompts) == (SaveAction.REINFORCE, [])


async def test_an_inferred_save_refuses_what_every_save_refuses(harness: IngestionHarness) -> None:
    statements = [MemoryIn(content="I bought coffee for $4."), MemoryIn(content="Plays the cello")]
    refused, saved = await harness.memories.save(harness.owner, statements, infer=True)
    assert (refused.action, refused.reason) == (SaveAction.SKIP, "a temporary state")
    assert saved.action is SaveAction.INSERT


async def test_an_inferred_save_keeps_what_remains_of_a_memory_that_it_replaces(harness: IngestionHarness) -> None:
    await harness.memories.save(harness.owner, [MemoryIn(content="Plays chess and go")])
    harness.model_answers(reconciliation(decision(1, "supersede", 1, remaining=[{"known": 1, "content": "Plays go"}])))
    results = await harness.memories.save(harness.owner, [MemoryIn(content="No longer plays chess")], infer=True)
    assert [result.action for result in results] == [SaveAction.SUPERSEDE]
    assert {*await harness.current_contents()} == {"No longer plays chess", "Plays go"}
