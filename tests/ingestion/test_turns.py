"""What extraction finds messages to be about, for callers who send neither intents nor entities nor domains."""

from __future__ import annotations

import pytest

from graphmem.conversations.session import SessionIn
from graphmem.ingestion.jobs import SUMMARY_JOB
from graphmem.memories.memory import MemoryPatch
from graphmem.runtime.paging import PageQuery
from tests.ingestion.conftest import IngestionHarness, candidate, extraction, message_at, turn


@pytest.mark.req("TRUE-02")
async def test_messages_get_the_intents_and_entities_that_their_sender_left_out(harness: IngestionHarness) -> None:
    harness.model_answers(
        extraction(
            turns=[
                turn(1, "Spending Analysis", category="groceries", amount="$420"),
                turn(2, "small_talk"),
                turn(3, "goal_progress", goal="a boat", card="4242 4242 4242 4242"),
            ]
        )
    )
    job = await harness.send_and_extract(
        message_at("2026-05-01", "What did I spend on groceries?", id="m1"),
        message_at("2026-05-01", "$420.", role="assistant", id="m2"),
        message_at("2026-05-01", "And my boat?", id="m3"),
        message_at("2026-05-01", "Thanks!", id="m4", intent="thanks"),
    )
    assert job.receipt.llm_calls == 1, "the same call derives them, also where nothing is remembered"
    found = (await harness.conversations.list_messages(harness.owner, "s1", PageQuery())).items
    assert [message.intent for message in found] == ["spending_analysis", None, "goal_progress", "thanks"]
    assert found[0].entities == {"category": ["groceries"], "amount": ["$420"]}
    assert found[2].entities == {"goal": ["a boat"]}, "a secret is no entity"
    session = await harness.conversations.get_session(harness.owner, "s1")
    assert sorted(session.intent_sequence) == ["goal_progress", "spending_analysis", "thanks"]
    harness.model_answers(extraction())
    await harness.send_and_extract("More groceries", session="s2")
    known = harness.prompts[-1].split("<known_intents>\n")[1].split("\n</known_intents>")[0]
    assert known == "goal_progress, spending_analysis, thanks"


@pytest.mark.req("QUINN-03")
async def test_what_is_told_in_a_conversation_about_a_field_stays_in_it(harness: IngestionHarness) -> None:
    await harness.conversations.open_session(harness.owner, SessionIn(session_id="s1", domain="Python"))
    harness.model_answers(extraction(candidate("User develops Python on Linux", domain="python")))
    await harness.send_and_extract("I develop Python on Linux")
    assert "<conversation_domain>\npython\n</conversation_domain>" in harness.prompts[-1]
    harness.model_answers(extraction(candidate("User fries with butter", domain="cooking")))
    await harness.send_and_extract("I fry with butter", session="s2", domain="cooking")
    assert "<conversation_domain>\ncooking\n</conversation_domain>" in harness.prompts[-1]
    python, butter = await harness.current_memories()
    assert [(memory.scope.value, memory.domain) for memory in (python, butter)] == [
        ("domain", "python"),
        ("domain", "cooking"),
    ]
    moved = await harness.memories.patch(harness.owner, butter.id, MemoryPatch.model_validate({"domain": None}))
    assert (moved.scope.value, moved.domain) == ("profile", None)
    moved = await harness.memories.patch(harness.owner, butter.id, MemoryPatch(domain="baking"))
    assert (moved.scope.value, moved.domain) == ("domain", "baking")


@pytest.mark.req("QUINN-07")
async def test_asking_in_talk_to_sum_up_and_remember_reaches_the_whole_session(harness: IngestionHarness) -> None:
    await harness.send(message_at("2026-05-01", "Which boat is for me?"), extract=False)
    sums_up = {
        "title": "A boat",
        "summary": "Mara chose a Folkboat.",
        "takeaways": ["Mara has decided on a Folkboat."],
        "topics": ["boats"],
        "sentiment": None,
    }
    harness.model_answers(extraction(candidate("Mara is in Lund", importance=0.4), summarize=True), sums_up)
    await harness.send_and_extract("A Folkboat it is. Summarise this and remember it.")
    (job,) = await harness.jobs.list(harness.owner.group_id, SUMMARY_JOB)
    await harness.wait_for_job(job.id)
    summary_prompt = harness.prompts[-1]
    assert "Which boat is for me?" in summary_prompt
    assert "<remembered>\nMara is in Lund\n</remembered>" in summary_prompt
    saved = {memory.type.value: memory.content for memory in await harness.current_memories()}
    assert saved["conversation_summary"] == "Mara chose a Folkboat."
    assert saved["conversation_topic"] == "A boat: boats"
    assert "Mara has decided on a Folkboat." in await harness.current_contents()
