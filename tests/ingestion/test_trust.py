"""Whose word an extracted memory is, and what it may end."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from graphmem.conversations.session import MessagesIn
from graphmem.jobs.job import Job
from graphmem.memories.memory import MemoryStatus
from graphmem.tenants.trust import StatedKind
from tests.ingestion.conftest import (
    IngestionHarness,
    candidate,
    decision,
    extraction,
    lives_in,
    message_at,
    reconciliation,
    screened,
)


def part(content: str, date: str = "2026-03-01") -> dict[str, Any]:
    return {**message_at(date, content), "metadata": {"document": "contract.pdf", "page": 1}}


async def send_as(harness: IngestionHarness, kind: StatedKind, *messages: dict[str, Any]) -> Job:
    batch = MessagesIn.model_validate({"session_id": "bound", "messages": list(messages), "wait": True})
    job = await harness.conversations.add(harness.owner, batch, sent_as=kind)
    assert isinstance(job, Job)
    return job


async def test_a_memory_is_the_word_of_the_most_trusted_message_that_states_it(harness: IngestionHarness) -> None:
    tea = candidate("User likes green tea", type="preference", predicate="LIKES", messages=[1])
    maps = screened(candidate("User collects maps", messages=[2]), "Mara collects maps")
    both = screened(candidate("User is a member of the chess club", messages=[1, 2]), "member of the chess club")
    recommended = candidate("The assistant recommended a teapot", type="recommendation", messages=[3])
    advice = screened(recommended, "Try a teapot")
    harness.model_answers(extraction(tea, maps, both, advice))
    await harness.send_and_extract(
        {**message_at("2026-03-01", "I like green tea, and am in the chess club"), "name": "Mara"},
        part("Mara collects maps and is a member of the chess club"),
        {"role": "assistant", "content": "Try a teapot", "timestamp": "2026-03-01T12:01:00Z"},
    )
    memories = {memory.content: memory.source for memory in await harness.current_memories()}
    assert {content: source.kind for content, source in memories.items()} == {
        "User likes green tea": "user",
        "User collects maps": "document",
        "User is a member of the chess club": "user",
        "The assistant recommended a teapot": "assistant",
    }
    assert memories["User likes green tea"].speaker == "Mara"


async def test_a_document_that_says_otherwise_is_contested(harness: IngestionHarness) -> None:
    harness.model_answers(extraction(lives_in("Lund")), extraction(screened(lives_in("Malmö"), "lives in Malmö")))
    await harness.send_and_extract(message_at("2026-01-10", "I live in Lund"))
    (known,) = await harness.current_memories()
    job = await harness.send_and_extract(part("The tenant, Mara, lives in Malmö"), session="s2")
    assert [action["action"] for action in job.actions] == ["contest"]
    assert await harness.current_contents() == ["User lives in Lund"]
    contested = (await harness.current_memories(include_contested=True))[1]
    assert (contested.status, contested.contests) == (MemoryStatus.CONTESTED, [known.id])


async def test_a_document_contests_what_a_model_would_supersede_end_or_delete(harness: IngestionHarness) -> None:
    await harness.save("User plays the cello", predicate="PLAYS", object={"name": "cello", "type": "Thing"})
    given_up = candidate("User gave up the cello", predicate="GAVE_UP", object={"name": "cello", "type": "Thing"})
    harness.model_answers(
        extraction(screened(given_up, "gave up the cello")), reconciliation(decision(1, "supersede", 1))
    )
    job = await harness.send_and_extract(part("She gave up the cello"))
    assert [action["action"] for action in job.actions] == ["contest"]
    ended = candidate(
        "User plays the cello", predicate="PLAYS", object={"name": "cello", "type": "Thing"}, invalid_at="2026-02-01"
    )
    harness.model_answers(extraction(screened(ended, "played the cello until February")))
    job = await harness.send_and_extract(part("She played the cello until February"))
    assert "not to end: it is of a more trusted source" in str(job.actions)
    (known,) = await harness.current_memories()
    assert (known.content, known.invalid_at, known.version) == ("User plays the cello", None, 1)
    retracted = candidate(
        "User plays the cello", predicate="PLAYS", object={"name": "cello", "type": "Thing"}, retracts=True
    )
    harness.model_answers(extraction(screened(retracted, "does not play the cello")))
    job = await harness.send_and_extract(part("She does not play the cello"))
    assert "only users retract their own statements" in str(job.actions)
    assert await harness.current_contents() == ["User plays the cello"]


async def test_a_tool_contests_what_a_model_would_supersede(
    harness: IngestionHarness,
) -> None:
    await harness.save("User flies on 4 December")
    harness.model_answers(
        extraction(screened(candidate("User flies on 11 December", messages=[2]), "flies on 11 December")),
        reconciliation(decision(1, "supersede", 1)),
    )
    page = {"role": "tool", "content": "She flies on 11 December"}
    harness.clock.advance(timedelta(minutes=1))
    job = await harness.send_and_extract("When do I fly?", page)
    harness.clock.advance(timedelta(minutes=1))
    assert [action["action"] for action in job.actions] == ["contest"]
    assert await harness.current_contents() == ["User flies on 4 December"]
    (known, contested) = await harness.current_memories(include_contested=True)
    assert (contested.status, contested.contests, contested.source.kind) == (
        MemoryStatus.CONTESTED,
        [known.id],
        "tool",
    )


async def test_what_the_user_says_supersedes_a_document(harness: IngestionHarness) -> None:
    harness.model_answers(extraction(screened(lives_in("Malmö"), "lives in Malmö")), extraction(lives_in("Lund")))
    await harness.send_and_extract(part("The tenant, Mara, lives in Malmö", "2026-01-10"))
    await harness.send_and_extract(message_at("2026-03-01", "I moved to Lund"), session="s2")
    assert await harness.current_contents() == ["User lives in Lund"]


async def test_messages_of_a_bound_key_are_trusted_no_more_than_the_key(harness: IngestionHarness) -> None:
    harness.model_answers(extraction(lives_in("Lund")), extraction(screened(lives_in("Malmö"), "lives in Malmö")))
    await harness.send_and_extract(message_at("2026-01-10", "I live in Lund"))
    job = await send_as(harness, "tool", message_at("2026-03-01", "I live in Malmö"))
    assert [action["action"] for action in job.actions] == ["contest"]
    contested = (await harness.current_memories(include_contested=True))[1]
    assert contested.source.kind == "tool"


async def test_a_statement_of_several_speakers_is_about_its_speaker(harness: IngestionHarness) -> None:
    tea = candidate("Likes green tea", type="preference", predicate="LIKES", messages=[1])
    coffee = candidate("Likes coffee", type="preference", predicate="LIKES", messages=[2])
    harness.model_answers(extraction(tea, coffee))
    await harness.send_and_extract(
        {**message_at("2026-03-01", "I like green tea"), "name": "Ada"},
        {**message_at("2026-03-01", "I like coffee"), "name": "Bo"},
    )
    subjects = {memory.content: memory.subject.name for memory in await harness.current_memories()}
    assert subjects == {"Likes green tea": "Ada", "Likes coffee": "Bo"}
    assert {memory.source.speaker for memory in await harness.current_memories(speaker="Bo")} == {"Bo"}


def about(name: str, what: str, message: int) -> dict[str, Any]:
    stated = candidate(f"{name} {what}", messages=[message])
    return {**stated, "subject": {"name": name, "type": "Person"}}


async def entity_names(harness: IngestionHarness) -> dict[str, list[str]]:
    entities, _ = await harness.entities.list_page(harness.owner, text=None, type="Person", after=None, limit=50)
    return {entity.name: entity.aliases for entity in entities if not entity.is_user}


async def test_names_that_a_document_joins_lead_nobody_who_is_trusted_more(harness: IngestionHarness) -> None:
    joined = [{"name": "Bob", "others": ["Carol", "Robert"]}]
    rows = screened(about("Bob", "rows", 2), "Bob rows")
    added = reconciliation(decision(1, "insert"))
    harness.model_answers(
        extraction(about("Carol", "likes tea", 1), rows, names=joined),
        extraction(about("Robert", "plays the cello", 1)),
        *[added] * 2,
    )
    await harness.send_and_extract(
        message_at("2026-03-01", "Carol likes tea"), part("Bob rows. Bob is also called Carol and Robert.")
    )
    subjects = {memory.content: memory.subject.name for memory in await harness.current_memories()}
    assert subjects == {"Carol likes tea": "Carol", "Bob rows": "Bob"}
    assert await entity_names(harness) == {"Bob": ["Robert"], "Carol": []}
    job = await harness.send_and_extract(message_at("2026-03-02", "Robert plays the cello"), session="s2")
    subjects = {memory.content: memory.subject.name for memory in await harness.current_memories()}
    assert subjects["Robert plays the cello"] == "Robert", job.actions
    assert await entity_names(harness) == {"Bob": [], "Carol": [], "Robert": []}


async def test_a_document_gives_no_fuller_name_to_whom_the_user_named(harness: IngestionHarness) -> None:
    fuller = [{"name": "Carol Mallory", "others": ["Carol"]}]
    harness.model_answers(
        extraction(about("Carol", "likes tea", 1)),
        extraction(screened(about("Carol Mallory", "sells maps", 1), "Carol Mallory sells maps"), names=fuller),
        reconciliation(decision(1, "insert")),
    )
    await harness.send_and_extract(message_at("2026-03-01", "Carol likes tea"))
    await harness.send_and_extract(part("Carol Mallory sells maps. Carol Mallory is Carol."), session="s2")
    subjects = {memory.content: memory.subject.name for memory in await harness.current_memories()}
    assert subjects == {"Carol likes tea": "Carol", "Carol Mallory sells maps": "Carol"}
    assert [*await entity_names(harness)] == ["Carol"]
