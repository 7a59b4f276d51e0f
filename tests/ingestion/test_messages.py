"""Messages as they arrive: validated, stored once, in order, never lost between the store and the queue."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from pydantic import ValidationError

from graphmem.domain.job import JobStatus
from graphmem.domain.session import MessageIn, MessagesIn, SessionIn
from graphmem.errors import Conflict, NotFound
from graphmem.service.messages import Conversations
from graphmem.store.episode_rows import Turn
from tests.ingestion.conftest import World, at, candidate, extraction


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
def test_what_is_no_message_is_refused(message: dict[str, Any]) -> None:
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
async def test_turns_are_kept_in_order_with_all_that_came_with_them(world: World) -> None:
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
    accepted = await world.post(first, second, extract=False)
    assert accepted.job_id is None
    page = await world.conversations.messages(world.owner, "s1")
    mine, answer = page.items
    assert (mine.id, mine.name, mine.intent, mine.position) == ("m1", "Mara", "spending_analysis", 1)
    assert mine.timestamp.isoformat() == "2026-05-03T21:30:00+00:00"
    assert (mine.entities, mine.metadata) == ({"category": ["food"]}, {"client": "app"})
    assert (answer.rich_content, answer.query_results) == ({"chart": "bar"}, {"sum": 214})
    assert (answer.confidence, answer.execution_time_ms, answer.sql_executed) == (0.8, 12.5, "SELECT 1")
    session = await world.conversations.session(world.owner, "s1")
    assert (session.message_count, session.intent_sequence, session.is_active) == (2, ["spending_analysis"], True)
    chain = await world.graph.read(
        lambda transaction: transaction.run_text(
            "MATCH (:Session {group_id: $g})-[:HAS_EPISODE]->(a:Episodic)-[:NEXT_EPISODE]->(b) "
            "RETURN a.message_id AS a, b.message_id AS b",
            {"g": world.owner.group_id},
        )
    )
    assert chain == [{"a": "m1", "b": answer.id}]


async def test_sessions_and_ids_are_made_where_none_are_given(world: World) -> None:
    accepted = await world.post("hi", session=None, extract=False)
    assert accepted.session_id
    assert len(accepted.message_ids) == 1
    assert (await world.conversations.session(world.owner, accepted.session_id)).message_count == 1


async def test_the_same_batch_from_many_at_once_is_stored_and_read_once(world: World) -> None:
    world.model_answers(extraction(candidate("User has a cat")))
    message = at("2026-05-01", "I have a cat", id="m1")
    answers = await asyncio.gather(*(world.post(message) for _ in range(5)))
    jobs = {answer.job_id for answer in answers if answer.job_id}
    assert len(jobs) == 1
    await world.finished(jobs.pop())
    assert len(world.server.requests) == 1
    assert (await world.conversations.session(world.owner, "s1")).message_count == 1


async def test_an_id_that_comes_twice_in_a_batch_is_one_message(world: World) -> None:
    message = at("2026-05-01", "I have a cat", id="m1")
    accepted = await world.post(message, message, extract=False)
    assert accepted.message_ids == ["m1", "m1"]
    assert (await world.conversations.session(world.owner, "s1")).message_count == 1


async def test_what_was_stored_without_extraction_is_read_when_it_comes_again_with_it(world: World) -> None:
    message = at("2026-05-01", "I have a cat", id="m1")
    await world.post(message, extract=False)
    world.model_answers(extraction(candidate("User has a cat")))
    job = await world.tell(message)
    assert job.status is JobStatus.SUCCEEDED
    assert await world.contents() == ["User has a cat"]


async def test_a_crash_between_the_store_and_the_queue_loses_nothing(world: World) -> None:
    turn = Turn(MessageIn.model_validate(at("2026-05-01", "I have a cat", id="m1")), [0.0] * 383 + [1.0])
    job_id = "0f2d8b7e-" + world.owner.tenant[1:5] + "-4000-8000-" + world.owner.tenant[1:]
    await world.episodes.append(world.owner, "s1", [turn], job_id=job_id)
    assert await world.jobs.get(job_id) is None
    world.model_answers(extraction(candidate("User has a cat")))
    assert await world.inbox.resume() >= 1
    await world.finished(job_id)
    assert await world.contents() == ["User has a cat"]
    assert await world.inbox.resume() == 0


async def test_a_caller_who_repeats_after_such_a_crash_gets_the_job_of_the_first_try(world: World) -> None:
    message = at("2026-05-01", "I have a cat", id="m1")
    turn = Turn(MessageIn.model_validate(message), [0.0] * 383 + [1.0])
    job_id = "1f2d8b7e-" + world.owner.tenant[1:5] + "-4000-8000-" + world.owner.tenant[1:]
    await world.episodes.append(world.owner, "s1", [turn], job_id=job_id)
    world.model_answers(extraction(candidate("User has a cat")))
    job = await world.tell(message)
    assert (job.id, job.status) == (job_id, JobStatus.SUCCEEDED)


@pytest.mark.req("CASH-01")
async def test_when_extraction_is_manual_a_chat_alone_extracts_nothing(world: World) -> None:
    manual = Conversations(world.inbox, world.episodes, world.jobs, "manual")
    batch = MessagesIn.model_validate({"session_id": "s1", "messages": [at("2026-05-01", "I have a cat")]})
    answer = await manual.add(world.owner, batch)
    assert answer.job_id is None  # type: ignore[union-attr]
    await manual.close(world.owner, "s1")
    assert world.server.requests == []


@pytest.mark.req("QUINN-04")
@pytest.mark.req("CASH-20")
async def test_closing_a_session_reads_the_rest_and_promotes_what_matters(world: World) -> None:
    await world.save("The trip was discussed", type="conversation_topic", scope="episodic", importance=0.7,
                     source={"session_id": "s1"})  # fmt: skip
    await world.save("Small talk was made", type="conversation_topic", scope="episodic", importance=0.3,
                     source={"session_id": "s1"})  # fmt: skip
    await world.post(at("2026-05-01", "I have a cat"), extract=False)
    world.model_answers(extraction(candidate("User has a cat")))
    session = await world.conversations.close(world.owner, "s1")
    assert session.is_active is False
    assert session.ended_at == world.clock()
    for job in await world.jobs.list(world.owner.group_id):
        assert (await world.finished(job.id)).status is JobStatus.SUCCEEDED
    assert {memory.content: memory.scope.value for memory in await world.known()} == {
        "The trip was discussed": "profile",
        "Small talk was made": "episodic",
        "User has a cat": "profile",
    }


async def test_a_session_can_be_opened_once_and_goes_on_after_its_end(world: World) -> None:
    session = await world.conversations.open_session(world.owner, SessionIn(session_id="s1", title="Boats"))
    assert (session.title, session.message_count) == ("Boats", 0)
    with pytest.raises(Conflict):
        await world.conversations.open_session(world.owner, SessionIn(session_id="s1"))
    await world.conversations.close(world.owner, "s1")
    await world.post("one more thing", extract=False)
    assert (await world.conversations.session(world.owner, "s1")).is_active


async def test_pages_of_sessions_and_messages_go_on_where_they_ended(world: World) -> None:
    for name in ("s1", "s2", "s3"):
        await world.post(f"hi from {name}", "and more", session=name, extract=False)
    first = await world.conversations.sessions(world.owner, limit=2)
    rest = await world.conversations.sessions(world.owner, limit=2, cursor=first.next_cursor)
    assert sorted(each.session_id for each in [*first.items, *rest.items]) == ["s1", "s2", "s3"]
    assert rest.next_cursor is None
    page = await world.conversations.messages(world.owner, "s1", limit=1)
    after = await world.conversations.messages(world.owner, "s1", limit=1, cursor=page.next_cursor)
    assert [each.content for each in [*page.items, *after.items]] == ["hi from s1", "and more"]


async def test_a_session_of_somebody_else_does_not_exist(world: World) -> None:
    from graphmem.domain.identity import Owner

    await world.post("hi", extract=False)
    other = Owner(world.owner.tenant, "somebody")
    with pytest.raises(NotFound):
        await world.conversations.session(other, "s1")
    with pytest.raises(NotFound):
        await world.conversations.messages(other, "s1")
