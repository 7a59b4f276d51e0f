"""Summaries of sessions: on request, and when a session grows long."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from graphmem.conversations.session import SessionIn
from graphmem.ingestion.jobs import SUMMARY_JOB
from graphmem.ingestion.service import Inbox, MessageService
from graphmem.jobs.job import JobStatus
from graphmem.jobs.runner import JobWaiting
from graphmem.models.embedder import Embedder
from graphmem.runtime.errors import Conflict
from graphmem.secrets.scanner import SecretPolicy
from tests.ingestion.conftest import IngestionHarness, extraction, message_at


def summary(text: str, **fields: Any) -> dict[str, Any]:
    return {"title": "Boats", "summary": text, "takeaways": [], "topics": ["boats"], "sentiment": 0.5, **fields}


@pytest.mark.req("QUINN-07", "QUINN-08", "UMB-04")
async def test_summarizing_a_session_saves_a_memory_tagged_summary(harness: IngestionHarness) -> None:
    await harness.conversations.open_session(harness.owner, SessionIn(session_id="s1", metadata={"ticket_id": "T-7"}))
    await harness.send(
        message_at("2026-05-01", "which boat is for me?"), message_at("2026-05-01", "a Folkboat"), extract=False
    )
    harness.model_answers(summary("Mara looked for a boat; card 4242 4242 4242 4242"))
    job = await harness.conversations.summarize(harness.owner, "s1", wait=True)
    assert job.status is JobStatus.SUCCEEDED, job.error
    memory, topic = await harness.current_memories()
    assert memory.content == "Mara looked for a boat; card [card]"
    assert (topic.content, topic.type.value, topic.scope.value) == ("Boats: boats", "conversation_topic", "episodic")
    assert memory.tags == ["summary", "boats"]
    assert memory.metadata["ticket_id"] == "T-7"
    session = await harness.conversations.get_session(harness.owner, "s1")
    assert (session.title, session.summary, session.summarized_through) == ("Boats", memory.content, 2)
    assert session.sentiment_score == 0.5


@pytest.mark.parametrize("text", ["", pytest.param("  \n", marks=pytest.mark.long), "\x00"])
async def test_a_summary_without_text_is_skipped_and_counted(harness: IngestionHarness, text: str) -> None:
    await harness.send(message_at("2026-05-01", "which boat is for me?"), extract=False)
    harness.model_answers(summary(text))
    job = await harness.conversations.summarize(harness.owner, "s1", wait=True)
    assert (job.status, job.reason) == (JobStatus.SKIPPED, "the model wrote no summary")
    assert job.receipt.llm_calls == 1
    assert await harness.current_contents() == []


async def test_a_summary_keeps_what_of_it_can_be_stored(harness: IngestionHarness) -> None:
    await harness.send(message_at("2026-05-01", "which boat is for me?"), extract=False)
    odd = {"title": "\x00", "takeaways": ["", "a\x00b", "x" * 20_000], "topics": ["\x00", "boats"], "sentiment": 5}
    harness.model_answers(summary("Mara looked\x00for a boat", **odd))
    job = await harness.conversations.summarize(harness.owner, "s1", wait=True)
    assert job.status is JobStatus.SUCCEEDED, job.error
    contents = await harness.current_contents()
    assert {"Mara looked for a boat", "a b"} <= set(contents)
    session = await harness.conversations.get_session(harness.owner, "s1")
    assert session.sentiment_score == 1.0


@pytest.mark.req("QUINN-08")
async def test_a_later_summary_starts_from_the_earlier_one_and_replaces_it(harness: IngestionHarness) -> None:
    await harness.send(message_at("2026-05-01", "which boat is for me?"), extract=False)
    harness.model_answers(summary("Mara looked for a boat"))
    await harness.conversations.summarize(harness.owner, "s1", wait=True)
    harness.clock.advance(timedelta(minutes=1))
    await harness.send(message_at("2026-05-02", "I bought a Folkboat"), extract=False)
    harness.model_answers(summary("Mara bought a Folkboat"))
    job = await harness.conversations.summarize(harness.owner, "s1", wait=True)
    assert job.status is JobStatus.SUCCEEDED, job.error
    assert "Mara looked for a boat" in harness.prompts[1].split("<earlier_summary>")[1].split("</earlier_summary>")[0]
    assert "which boat" not in harness.prompts[1]
    harness.clock.advance(timedelta(minutes=1))
    assert sorted(await harness.current_contents()) == ["Boats: boats", "Mara bought a Folkboat"]
    again = await harness.conversations.summarize(harness.owner, "s1", wait=True)
    assert (again.status, again.reason) == (JobStatus.SKIPPED, "nothing new to sum up")


@pytest.mark.req("CASH-01")
async def test_with_manual_extraction_a_long_and_closed_session_calls_no_model(
    harness: IngestionHarness, embedder: Embedder
) -> None:
    inbox = Inbox(harness.episodes, embedder, SecretPolicy(), harness.jobs, has_model=True)
    harness.conversations = MessageService(
        inbox, harness.episodes, harness.jobs, JobWaiting(harness.graph, harness.jobs), "manual"
    )
    await harness.send(*(message_at("2026-05-01", f"line {n}") for n in range(51)))
    await harness.conversations.close(harness.owner, "s1")
    (closing,) = await harness.jobs.list(harness.owner.group_id)
    assert (await harness.wait_for_job(closing.id)).status is JobStatus.SUCCEEDED
    assert harness.server.requests == []
    assert await harness.current_memories() == []


@pytest.mark.req("QUINN-08")
async def test_the_fifty_first_message_triggers_a_summary_of_older_ones(
    harness: IngestionHarness, embedder: Embedder
) -> None:
    inbox = Inbox(harness.episodes, embedder, SecretPolicy(), harness.jobs, has_model=True)
    harness.conversations = MessageService(
        inbox, harness.episodes, harness.jobs, JobWaiting(harness.graph, harness.jobs)
    )
    await harness.send(*(message_at("2026-05-01", f"line {n}") for n in range(50)), extract=False)
    assert await harness.jobs.list(harness.owner.group_id, SUMMARY_JOB) == []
    harness.model_answers(extraction(), summary("Mara counted"))
    await harness.send(message_at("2026-05-01", "line 50"))
    (job,) = await harness.jobs.list(harness.owner.group_id, SUMMARY_JOB)
    assert (await harness.wait_for_job(job.id)).status is JobStatus.SUCCEEDED
    session = await harness.conversations.get_session(harness.owner, "s1")
    assert (session.summary, session.summarized_through, session.message_count) == ("Mara counted", 41, 51)
    assert "line 40" in harness.prompts[1]
    assert "line 41" not in harness.prompts[1]


@pytest.mark.req("CASH-11", "CASH-12", "QUINN-07")
async def test_what_may_not_be_stored_is_left_out_of_a_summary_and_the_rest_is_kept(harness: IngestionHarness) -> None:
    await harness.send(message_at("2026-05-01", "I have $512 in my account"), extract=False)
    takeaways = ["Mara has $512 in her account", "Mara was born on 4 May 1990", "Mara wants weekly summaries"]
    text = "Mara asked about budgets. She has $512 in her account. She wants weekly summaries."
    harness.model_answers(summary(text, takeaways=takeaways))
    job = await harness.conversations.summarize(harness.owner, "s1", wait=True)
    assert job.status is JobStatus.SUCCEEDED, job.error
    kept = "Mara asked about budgets. She wants weekly summaries."
    assert sorted(await harness.current_contents()) == ["Boats: boats", kept, "Mara wants weekly summaries"]
    reasons = [action["reason"] for action in job.actions if action["action"] == "refuse"]
    assert reasons == ["a temporary state", "holds a secret: birth_date"]
    stored = await harness.conversations.get_session(harness.owner, "s1")
    assert stored.summary == kept
    (memory,) = [memory for memory in await harness.current_memories() if memory.content == kept]
    assert memory.metadata["takeaways"] == ["Mara wants weekly summaries"]


@pytest.mark.req("CASH-12", "QUINN-07")
async def test_takeaways_outlive_a_summary_of_conditions_of_the_moment(harness: IngestionHarness) -> None:
    await harness.send(message_at("2026-05-01", "I have $512 in my account"), extract=False)
    harness.model_answers(summary("Mara has $512 in her account.", takeaways=["Mara wants a kayak."], title=""))
    job = await harness.conversations.summarize(harness.owner, "s1", wait=True)
    assert job.status is JobStatus.SUCCEEDED, job.error
    assert {memory.content for memory in await harness.current_memories() if "summary" in memory.tags} == {
        "Mara wants a kayak."
    }


@pytest.mark.req("QUINN-07")
async def test_a_summary_that_was_skipped_can_be_asked_for_again(harness: IngestionHarness) -> None:
    await harness.send(message_at("2026-05-01", "which boat is for me?"), extract=False)
    harness.model_answers(summary(""))
    first = await harness.conversations.summarize(harness.owner, "s1", wait=True)
    assert first.status is JobStatus.SKIPPED
    harness.model_answers(summary("Mara looked for a boat"))
    second = await harness.conversations.summarize(harness.owner, "s1", wait=True)
    assert (second.status, second.id == first.id) == (JobStatus.SUCCEEDED, False)
    assert "Mara looked for a boat" in await harness.current_contents()


@pytest.mark.req("QUINN-04")
async def test_a_closing_says_which_job_follows_and_that_job_why_it_wrote_no_summary(harness: IngestionHarness) -> None:
    await harness.send(*(message_at("2026-05-01", f"line {number}") for number in range(12)), extract=False)
    harness.inbox._has_model = True
    harness.model_answers(extraction(), summary(""))
    closed = await harness.conversations.close(harness.owner, "s1")
    assert closed.reason is None
    job = await harness.wait_for_job(closed.job_id)
    assert (job.kind, job.reason) == ("session_closing", "the model wrote no summary")


@pytest.mark.req("CASH-07")
async def test_the_session_of_an_extraction_takes_no_messages_and_is_no_source(harness: IngestionHarness) -> None:
    await harness.send("I like tea", extract=False)
    harness.model_answers({"skip": True})
    triggered = await harness.conversations.trigger_extraction(harness.owner.tenant, "s1", harness.owner.user_id)
    run = triggered.message.rpartition(" ")[2]
    with pytest.raises(Conflict, match="records an extraction"):
        await harness.send("I like coffee", session=run)
    with pytest.raises(Conflict, match="records an extraction"):
        await harness.conversations.trigger_extraction(harness.owner.tenant, run, harness.owner.user_id)
    for call in (harness.conversations.close, harness.conversations.summarize):
        with pytest.raises(Conflict, match="records an extraction"):
            await call(harness.owner, run)
    await harness.jobs.wait(triggered.job_id, 30)
