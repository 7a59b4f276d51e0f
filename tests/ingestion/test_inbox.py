"""Incoming messages: validated, stored once, in order, and not lost between the store and the queue."""

from __future__ import annotations

import asyncio
import base64
import json
import uuid
from collections.abc import Sequence
from datetime import timedelta
from typing import Any, cast

import pytest
from pydantic import ValidationError

from graphmem.conversations.session import MessageIn, MessagesAccepted, MessagesIn, SessionIn, SessionListQuery
from graphmem.conversations.stored import PendingJob, PreparedMessage
from graphmem.ingestion.jobs import EMBEDDING_JOB
from graphmem.ingestion.service import FOREIGN_JOBS_AFTER, Inbox, MessageService
from graphmem.jobs.job import JobStatus
from graphmem.jobs.kinds import JobHandler
from graphmem.jobs.runner import JobWaiting
from graphmem.models.embedder import Embedder
from graphmem.runtime.errors import (
    Conflict,
    InvalidInput,
    ModelUnavailable,
    NotFound,
)
from graphmem.runtime.paging import PageQuery
from graphmem.secrets.scanner import SecretPolicy
from graphmem.tenants.owners import Owner
from tests.ingestion.conftest import IngestionHarness, JobDispatcher, candidate, extraction, message_at


@pytest.mark.req("GO-01")
def test_the_role_model_is_read_as_assistant() -> None:
    assert MessageIn.model_validate({"role": "Model", "content": "hi"}).role == "assistant"


@pytest.mark.req("GO-01")
@pytest.mark.parametrize(
    "message",
    [
        {"role": "boss", "content": "hi"},
        {"role": "user", "content": "  "},
        {"role": "user"},
        {"content": "hi"},
        {"role": "user", "content": "hi", "timestamp": "2026-05-01T12:00:00"},
        {"role": "user", "content": "hi", "timestamp": "yesterday"},
        {"role": "user", "content": "x" * 100_001},
        {"role": "user", "content": "a\x00b"},
        {"role": "user", "content": "hi", "more": 1},
        {"role": "user", "content": "hi", "confidence": 1.1},
    ],
)
def test_an_invalid_message_is_rejected(message: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        MessageIn.model_validate(message)


@pytest.mark.parametrize(
    "batch", [{"messages": []}, {"messages": [{"role": "user", "content": "a"}], "timezone": "Mars"}]
)
def test_a_batch_needs_messages_and_a_zone_that_exists(batch: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        MessagesIn.model_validate(batch)


def test_entities_of_a_message_are_one_value_or_several() -> None:
    message = MessageIn.model_validate({"role": "user", "content": "hi", "entities": {"amount": 5, "city": ["a", "b"]}})
    assert message.entities == {"amount": [5], "city": ["a", "b"]}


@pytest.mark.req("TRUE-02")
@pytest.mark.req("TRUE-03")
async def test_messages_are_stored_in_order_with_all_their_fields(harness: IngestionHarness) -> None:
    first = {
        "role": "user",
        "content": "what did I spend?",
        "id": "m1",
        "name": "Mara",
        "timestamp": "2026-05-03T23:30:00+02:00",
        "intent": "spending_analysis",
        "entities": {"category": "food"},
        "metadata": {"client": "app"},
    }
    second = {
        "role": "assistant",
        "content": "214 dollars",
        "rich_content": {"chart": "bar"},
        "confidence": 0.8,
        "sql_executed": "SELECT 1",
        "query_results": {"sum": 214},
        "execution_time_ms": 12.5,
    }
    accepted = await harness.send(first, second, extract=False)
    assert accepted.job_id is None
    page = await harness.conversations.list_messages(harness.owner, "s1", PageQuery())
    mine, answer = page.items
    assert (mine.id, mine.name, mine.intent, mine.position) == ("m1", "Mara", "spending_analysis", 1)
    assert mine.timestamp.isoformat() == "2026-05-03T21:30:00+00:00"
    assert (mine.entities, mine.metadata) == ({"category": ["food"]}, {"client": "app"})
    assert (answer.rich_content, answer.query_results) == ({"chart": "bar"}, {"sum": 214})
    assert (answer.confidence, answer.execution_time_ms, answer.sql_executed) == (0.8, 12.5, "SELECT 1")
    session = await harness.conversations.get_session(harness.owner, "s1")
    assert (session.message_count, session.intent_sequence, session.is_active) == (2, ["spending_analysis"], True)
    chain = await harness.graph.read(
        lambda transaction: transaction.run_text(
            "MATCH (:Session {group_id: $g})-[:HAS_EPISODE]->(a:Episodic)-[:NEXT_EPISODE]->(b) "
            "RETURN a.message_id AS a, b.message_id AS b",
            {"g": harness.owner.group_id},
        )
    )
    assert chain == [{"a": "m1", "b": answer.id}]


async def test_missing_session_and_message_ids_are_generated(harness: IngestionHarness) -> None:
    accepted = await harness.send("hi", session=None, extract=False)
    assert accepted.session_id
    assert len(accepted.message_ids) == 1
    assert (await harness.conversations.get_session(harness.owner, accepted.session_id)).message_count == 1


async def test_a_batch_sent_five_times_at_once_is_stored_and_extracted_once(harness: IngestionHarness) -> None:
    harness.model_answers(extraction(candidate("User has a cat")))
    message = message_at("2026-05-01", "I have a cat", id="m1")
    answers = await asyncio.gather(*(harness.send(message) for _ in range(5)))
    jobs = {answer.job_id for answer in answers if answer.job_id}
    assert len(jobs) == 1
    await harness.wait_for_job(jobs.pop())
    assert len(harness.server.requests) == 1
    assert (await harness.conversations.get_session(harness.owner, "s1")).message_count == 1


async def test_an_id_that_comes_twice_in_a_batch_is_one_message(harness: IngestionHarness) -> None:
    message = message_at("2026-05-01", "I have a cat", id="m1")
    accepted = await harness.send(message, message, extract=False)
    assert accepted.message_ids == ["m1", "m1"]
    assert (await harness.conversations.get_session(harness.owner, "s1")).message_count == 1


async def test_messages_stored_without_extraction_are_extracted_when_sent_again(harness: IngestionHarness) -> None:
    message = message_at("2026-05-01", "I have a cat", id="m1")
    await harness.send(message, extract=False)
    harness.model_answers(extraction(candidate("User has a cat")))
    job = await harness.send_and_extract(message)
    assert job.status is JobStatus.SUCCEEDED
    assert await harness.current_contents() == ["User has a cat"]


async def test_a_crash_between_storing_and_queueing_loses_no_message(harness: IngestionHarness) -> None:
    turn = PreparedMessage(
        MessageIn.model_validate(message_at("2026-05-01", "I have a cat", id="m1")), [0.0] * 383 + [1.0]
    )
    job_id = "0f2d8b7e-" + harness.owner.tenant[1:5] + "-4000-8000-" + harness.owner.tenant[1:]
    await harness.episodes.append_messages(harness.owner, "s1", [turn], job=PendingJob(job_id, harness.jobs.store_id))
    assert await harness.jobs.find(job_id) is None
    harness.model_answers(extraction(candidate("User has a cat")))
    assert await harness.inbox.requeue_unread() >= 1
    await harness.wait_for_job(job_id)
    assert await harness.current_contents() == ["User has a cat"]
    assert await harness.inbox.requeue_unread() == 0


async def test_messages_that_cannot_be_queued_are_reported_and_do_not_hold_up_others(
    harness: IngestionHarness, caplog: pytest.LogCaptureFixture
) -> None:
    turn = PreparedMessage(
        MessageIn.model_validate(message_at("2026-05-01", "I have a cat", id="m1")), [0.0] * 383 + [1.0]
    )
    job_id, broken = str(uuid.uuid4()), str(uuid.uuid4())
    group_id = Owner(harness.owner.tenant, "broken").group_id
    await harness.episodes.append_messages(harness.owner, "s1", [turn], job=PendingJob(job_id, harness.jobs.store_id))
    await harness.graph.write(
        lambda transaction: transaction.run_text(
            "CREATE (:Episodic {group_id: $g, message_id: 'm1', session_id: 's1', pending_job: $job, "
            "pending_store: $store})",
            {"g": group_id, "job": broken, "store": harness.jobs.store_id},
        )
    )
    harness.model_answers(extraction(candidate("User has a cat")))
    assert await harness.inbox.requeue_stranded() == 0, "a job that is missing for the first time may be on its way"
    assert await harness.inbox.requeue_stranded() == 1
    assert broken in str([vars(record) for record in caplog.records])
    await harness.wait_for_job(job_id)
    assert await harness.current_contents() == ["User has a cat"]
    await harness.graph.write(
        lambda transaction: transaction.run_text("MATCH (m:Episodic {group_id: $g}) DELETE m", {"g": group_id})
    )


async def test_messages_of_another_job_store_are_taken_over_when_no_job_can_be_left(harness: IngestionHarness) -> None:
    turn = PreparedMessage(
        MessageIn.model_validate(message_at("2026-05-01", "I have a cat", id="m1")), [0.0] * 383 + [1.0]
    )
    job_id = str(uuid.uuid4())
    await harness.episodes.append_messages(harness.owner, "s1", [turn], job=PendingJob(job_id, "of another service"))
    harness.model_answers(extraction(candidate("User has a cat")))
    await harness.inbox.requeue_unread()
    assert await harness.jobs.find(job_id) is None, "the other service extracts them"
    await harness.graph.write(
        lambda transaction: transaction.run_text(
            "MATCH (m:Episodic {group_id: $g}) SET m.pending_since = datetime() - $waited",
            {"g": harness.owner.group_id, "waited": FOREIGN_JOBS_AFTER + timedelta(minutes=1)},
        )
    )
    assert await harness.inbox.requeue_unread() >= 1
    await harness.wait_for_job(job_id)
    assert await harness.current_contents() == ["User has a cat"]


async def test_a_retry_after_a_crash_before_queueing_gets_the_first_job(harness: IngestionHarness) -> None:
    message = message_at("2026-05-01", "I have a cat", id="m1")
    turn = PreparedMessage(MessageIn.model_validate(message), [0.0] * 383 + [1.0])
    job_id = "1f2d8b7e-" + harness.owner.tenant[1:5] + "-4000-8000-" + harness.owner.tenant[1:]
    await harness.episodes.append_messages(harness.owner, "s1", [turn], job=PendingJob(job_id, harness.jobs.store_id))
    harness.model_answers(extraction(candidate("User has a cat")))
    job = await harness.send_and_extract(message)
    assert (job.id, job.status) == (job_id, JobStatus.SUCCEEDED)


@pytest.mark.req("CASH-01")
async def test_with_manual_extraction_messages_alone_extract_nothing(harness: IngestionHarness) -> None:
    manual = MessageService(
        harness.inbox, harness.episodes, harness.jobs, JobWaiting(harness.graph, harness.jobs), "manual"
    )
    batch = MessagesIn.model_validate({"session_id": "s1", "messages": [message_at("2026-05-01", "I have a cat")]})
    answer = await manual.add(harness.owner, batch)
    assert isinstance(answer, MessagesAccepted)
    assert answer.job_id is None
    await manual.close(harness.owner, "s1")
    assert harness.server.requests == []


@pytest.mark.req("QUINN-04")
@pytest.mark.req("CASH-20")
async def test_closing_a_session_extracts_unread_and_promotes_important_memories(harness: IngestionHarness) -> None:
    await harness.save("The trip was discussed", type="conversation_topic", scope="episodic", importance=0.7,
                     source={"session_id": "s1"})  # fmt: skip
    await harness.save("Small talk was made", type="conversation_topic", scope="episodic", importance=0.3,
                     source={"session_id": "s1"})  # fmt: skip
    await harness.send(message_at("2026-05-01", "I have a cat"), extract=False)
    harness.model_answers(extraction(candidate("User has a cat")))
    session = await harness.conversations.close(harness.owner, "s1")
    assert session.is_active is False
    assert session.ended_at == harness.clock()
    for job in await harness.jobs.list(harness.owner.group_id):
        assert (await harness.wait_for_job(job.id)).status is JobStatus.SUCCEEDED
    assert {memory.content: memory.scope.value for memory in await harness.current_memories()} == {
        "The trip was discussed": "profile",
        "Small talk was made": "episodic",
        "User has a cat": "profile",
    }


async def test_a_session_can_be_opened_once_and_is_reopened_by_a_message(harness: IngestionHarness) -> None:
    session = await harness.conversations.open_session(harness.owner, SessionIn(session_id="s1", title="Boats"))
    assert (session.title, session.message_count) == ("Boats", 0)
    with pytest.raises(Conflict):
        await harness.conversations.open_session(harness.owner, SessionIn(session_id="s1"))
    await harness.conversations.close(harness.owner, "s1")
    await harness.send("one more thing", extract=False)
    assert (await harness.conversations.get_session(harness.owner, "s1")).is_active


async def test_a_page_of_sessions_or_messages_continues_after_the_previous_one(harness: IngestionHarness) -> None:
    for name in ("s1", "s2", "s3"):
        await harness.send(f"hi from {name}", "and more", session=name, extract=False)
    first = await harness.conversations.list_sessions(harness.owner, SessionListQuery(limit=2))
    rest = await harness.conversations.list_sessions(harness.owner, SessionListQuery(limit=2, cursor=first.next_cursor))
    assert sorted(session.session_id for session in [*first.items, *rest.items]) == ["s1", "s2", "s3"]
    assert rest.next_cursor is None
    page = await harness.conversations.list_messages(harness.owner, "s1", PageQuery(limit=1))
    after = await harness.conversations.list_messages(harness.owner, "s1", PageQuery(limit=1, cursor=page.next_cursor))
    assert [message.content for message in [*page.items, *after.items]] == ["hi from s1", "and more"]


def make_cursor(position: object) -> str:
    return base64.urlsafe_b64encode(json.dumps(position).encode()).decode()


async def test_a_cursor_of_another_list_is_refused(harness: IngestionHarness) -> None:
    for position in (("soon", "s1"), ("2026-05-01T12:00:00", "s1"), (1, "s1"), ("s1",)):
        with pytest.raises(InvalidInput, match="does not belong to this list"):
            await harness.conversations.list_sessions(harness.owner, SessionListQuery(cursor=make_cursor(position)))


async def test_another_users_session_is_not_found(harness: IngestionHarness) -> None:
    await harness.send("hi", extract=False)
    other = Owner(harness.owner.tenant, "somebody")
    with pytest.raises(NotFound):
        await harness.conversations.get_session(other, "s1")
    with pytest.raises(NotFound):
        await harness.conversations.list_messages(other, "s1", PageQuery())


class EmbedderThatComesBack:
    """An embedder that is unavailable at the first call."""

    def __init__(self, embedder: Embedder) -> None:
        self._embedder = embedder
        self._is_away = True

    def __getattr__(self, name: str) -> Any:
        return getattr(self._embedder, name)

    async def embed(self, texts: Sequence[str], *, query: bool = False) -> list[list[float]]:
        """Return the vectors of the texts."""
        if self._is_away:
            self._is_away = False
            raise ModelUnavailable("The embedding server does not answer.", retry_after=1)
        return await self._embedder.embed(texts, query=query)


@pytest.mark.req("TRUE-07")
async def test_messages_are_stored_while_the_embedder_is_away_and_embedded_later(
    harness: IngestionHarness, embedder: Embedder, job_dispatcher: JobDispatcher
) -> None:
    away = cast(Embedder, EmbedderThatComesBack(embedder))
    inbox = Inbox(harness.episodes, away, SecretPolicy(), harness.jobs)
    job_dispatcher.use(JobHandler(EMBEDDING_JOB, inbox.handle_embedding_job))
    batch = MessagesIn.model_validate({"session_id": "s", "messages": [{"role": "user", "content": "I like tea"}]})
    accepted = await inbox.add(harness.owner, batch, extract=False)
    [stored] = await harness.episodes.load_messages(harness.owner, accepted.message_ids)
    assert stored.content == "I like tea"

    async def has_vector() -> bool:
        query = "MATCH (m:Episodic {group_id: $g}) RETURN m.content_embedding IS NOT NULL AS has_vector"
        parameters = {"g": harness.owner.group_id}
        [row] = await harness.graph.read(lambda transaction: transaction.run_text(query, parameters))
        return bool(row["has_vector"])

    for _ in range(600):
        if await has_vector():
            return
        await asyncio.sleep(0.1)
    raise AssertionError("the message has no vector yet")


@pytest.mark.req("GO-02", "TRUE-07")
async def test_messages_that_come_again_after_their_job_has_ended_answer_that_job(harness: IngestionHarness) -> None:
    harness.model_answers(extraction(candidate("Mara likes tea")))
    first = await harness.send_and_extract({"id": "m1", "role": "user", "content": "I like tea"})
    again = await harness.send_and_extract({"id": "m1", "role": "user", "content": "I like tea"})
    assert (again.id, again.status, again.receipt) == (first.id, JobStatus.SUCCEEDED, first.receipt)


@pytest.mark.req("QUINN-08")
async def test_messages_that_are_not_to_be_extracted_write_no_memory_however_many_they_are(
    harness: IngestionHarness,
) -> None:
    harness.inbox._has_model = True
    await harness.send(*(f"line {number}" for number in range(60)), extract=False)
    assert await harness.jobs.list(harness.owner.group_id) == []
