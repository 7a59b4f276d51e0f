"""Sessions summed up: on request, and by themselves when they grow long."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from graphmem.domain.job import JobStatus
from graphmem.domain.session import SessionIn
from graphmem.ingestion.messages import Inbox
from graphmem.ingestion.summary import SUMMARY_JOB
from tests.ingestion.conftest import World, at


def summary(text: str, **fields: Any) -> dict[str, Any]:
    return {"title": "Boats", "summary": text, "takeaways": [], "topics": ["boats"], "sentiment": 0.5, **fields}


@pytest.mark.req("QUINN-07")
async def test_a_session_is_summed_up_on_request_into_a_memory_with_the_tag_summary(world: World) -> None:
    await world.conversations.open_session(world.owner, SessionIn(session_id="s1", metadata={"ticket_id": "T-7"}))
    await world.post(at("2026-05-01", "which boat is for me?"), at("2026-05-01", "a Folkboat"), extract=False)
    world.model_answers(summary("Mara looked for a boat; card 4242 4242 4242 4242"))
    job = await world.conversations.summarize(world.owner, "s1", wait=True)
    assert job.status is JobStatus.SUCCEEDED, job.error
    (memory,) = await world.known()
    assert memory.content == "Mara looked for a boat; card [card]"
    assert memory.tags == ["summary", "boats"]
    assert memory.metadata["ticket_id"] == "T-7"
    session = await world.conversations.session(world.owner, "s1")
    assert (session.title, session.summary, session.summarized_through) == ("Boats", memory.content, 2)
    assert session.sentiment_score == 0.5


@pytest.mark.req("QUINN-08")
async def test_a_later_summary_starts_from_the_earlier_one_and_replaces_it(world: World) -> None:
    await world.post(at("2026-05-01", "which boat is for me?"), extract=False)
    world.model_answers(summary("Mara looked for a boat"))
    await world.conversations.summarize(world.owner, "s1", wait=True)
    world.clock.advance(timedelta(minutes=1))
    await world.post(at("2026-05-02", "I bought a Folkboat"), extract=False)
    world.model_answers(summary("Mara bought a Folkboat"))
    job = await world.conversations.summarize(world.owner, "s1", wait=True)
    assert job.status is JobStatus.SUCCEEDED, job.error
    assert "Mara looked for a boat" in world.prompts[1].split("<earlier_summary>")[1].split("</earlier_summary>")[0]
    assert "which boat" not in world.prompts[1]
    world.clock.advance(timedelta(minutes=1))
    assert await world.contents() == ["Mara bought a Folkboat"]
    again = await world.conversations.summarize(world.owner, "s1", wait=True)
    assert (again.status, again.reason) == (JobStatus.SKIPPED, "nothing new to sum up")


@pytest.mark.req("QUINN-08")
async def test_the_fifty_first_message_has_the_older_ones_compressed(world: World, embedder: Any) -> None:
    from graphmem.domain.policy import SecretPolicy

    world.conversations._inbox = Inbox(world.episodes, embedder, SecretPolicy(), world.jobs, summaries=True)
    await world.post(*(at("2026-05-01", f"line {n}") for n in range(50)), extract=False)
    assert await world.jobs.list(world.owner.group_id, SUMMARY_JOB) == []
    world.model_answers(summary("Mara counted"))
    await world.post(at("2026-05-01", "line 50"), extract=False)
    (job,) = await world.jobs.list(world.owner.group_id, SUMMARY_JOB)
    assert (await world.finished(job.id)).status is JobStatus.SUCCEEDED
    session = await world.conversations.session(world.owner, "s1")
    assert (session.summary, session.summarized_through, session.message_count) == ("Mara counted", 41, 51)
    assert "line 40" in world.prompts[0]
    assert "line 41" not in world.prompts[0]
