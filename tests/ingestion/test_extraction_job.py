"""Extraction of memories from messages: up to two model calls a batch, one on skip, nothing twice."""

from __future__ import annotations

import json
import threading
from typing import Any

import pytest

from graphmem.ingestion.extraction_job import ExtractionJob
from graphmem.ingestion.jobs import EXTRACTION_JOB
from graphmem.jobs.job import JobStatus
from graphmem.jobs.kinds import JobHandler
from graphmem.memories.declarations import DeclaredTypeStore
from graphmem.memories.fact_store import FactStore
from graphmem.memories.writer import MemoryWriter
from graphmem.models.embedder import Embedder
from graphmem.models.provider_model import ProviderModel
from graphmem.neo4j.driver import Graph
from graphmem.runtime.paging import PageQuery
from graphmem.secrets.scanner import SecretPolicy
from graphmem.tenants.profiles import TenantProfiles
from graphmem.tenants.tenant_settings import InstructionStore
from tests.ingestion.conftest import (
    IngestionHarness,
    candidate,
    decision,
    extraction,
    lives_in,
    message_at,
    midnight,
    reconciliation,
)
from tests.models.scripted_server import Exchange, replies


@pytest.mark.req("QUINN-36")
async def test_one_model_call_saves_a_memory_when_nothing_related_is_known(harness: IngestionHarness) -> None:
    harness.model_answers(extraction(lives_in("Lisbon", valid_at="2021")))
    job = await harness.send_and_extract(message_at("2026-05-03", "I've lived in Lisbon since 2021"))
    assert job.status is JobStatus.SUCCEEDED, job.error
    assert job.receipt.llm_calls == 1
    assert len(harness.server.requests) == 1
    (memory,) = await harness.current_memories()
    assert memory.content == "User lives in Lisbon"
    assert memory.object
    assert memory.object.name == "Lisbon"
    assert memory.valid_at == midnight("2021-01-01")
    assert memory.source.kind == "user"
    assert memory.source.session_id == "s1"
    assert job.actions == [{"action": "insert", "memory_id": memory.id, "type": "fact"}]


@pytest.mark.req("GO-04")
@pytest.mark.req("CASH-14")
async def test_a_skip_ends_everything_after_one_call(harness: IngestionHarness) -> None:
    harness.model_answers(extraction())
    job = await harness.send_and_extract("hello there")
    assert (job.status, job.reason) == (JobStatus.SKIPPED, "small talk")
    assert (job.receipt.llm_calls, job.receipt.embedded_texts) == (1, 1)
    assert await harness.current_memories() == []


@pytest.mark.req("GO-07")
@pytest.mark.req("QUINN-40")
async def test_a_contradiction_supersedes_with_a_reason_and_can_be_reverted(harness: IngestionHarness) -> None:
    harness.model_answers(extraction(candidate("User loves coffee", type="preference", predicate="LIKES")))
    await harness.send_and_extract(message_at("2026-05-01", "coffee is my jam"))
    (coffee,) = await harness.current_memories()
    harness.model_answers(
        extraction(candidate("User no longer drinks coffee", type="preference", predicate="LIKES")),
        reconciliation(decision(1, "supersede", 1, reason="gave up coffee")),
    )
    job = await harness.send_and_extract(message_at("2026-05-20", "I've given up coffee"))
    assert job.receipt.llm_calls == 2
    assert await harness.current_contents() == ["User no longer drinks coffee"]
    history = await harness.memories.history(harness.owner, coffee.id)
    assert history[-1].invalid_at == midnight("2026-05-20").replace(hour=12)
    assert history[0].ended_reason == "superseded: gave up coffee"
    await harness.memories.revert(harness.owner, coffee.id)
    assert await harness.current_contents() == ["User loves coffee"]


async def test_a_newer_single_value_needs_no_second_call(harness: IngestionHarness) -> None:
    harness.model_answers(extraction(lives_in("New York")), extraction(lives_in("London")))
    await harness.send_and_extract(message_at("2026-01-10", "I live in New York"))
    job = await harness.send_and_extract(message_at("2026-03-10", "I moved to London"))
    assert job.receipt.llm_calls == 1
    assert await harness.current_contents() == ["User lives in London"]
    assert await harness.current_contents(valid_as_of="2026-02-01T00:00:00Z") == ["User lives in New York"]


@pytest.mark.req("CASH-15")
async def test_the_same_statement_again_reinforces_and_keeps_both_messages(harness: IngestionHarness) -> None:
    harness.model_answers(extraction(candidate("User has a cat")), extraction(candidate("User has a cat")))
    await harness.send_and_extract(message_at("2026-05-01", "I have a cat", id="m1"))
    job = await harness.send_and_extract(message_at("2026-05-02", "as I said, I have a cat", id="m2"))
    assert job.receipt.llm_calls == 1
    (memory,) = await harness.current_memories()
    assert memory.source.message_ids == ["m1", "m2"]
    assert job.actions[0]["action"] == "reinforce"


@pytest.mark.req("GO-06")
async def test_the_same_in_other_words_reinforces_when_the_model_says_so(harness: IngestionHarness) -> None:
    harness.model_answers(extraction(candidate("User owns a cat named Pix")))
    await harness.send_and_extract(message_at("2026-05-01", "I have a cat, Pix", id="m1"))
    harness.model_answers(
        extraction(candidate("User has a cat called Pix")), reconciliation(decision(1, "reinforce", 1))
    )
    await harness.send_and_extract(message_at("2026-05-02", "my cat Pix", id="m2"))
    (memory,) = await harness.current_memories()
    assert memory.content == "User owns a cat named Pix"
    assert memory.source.message_ids == ["m1", "m2"]
    conversation, new, known = "my cat Pix", "User has a cat called Pix", "User owns a cat named Pix"
    assert [text for text in (conversation, new, known) if text not in harness.prompts[-1]] == []


async def test_messages_with_a_known_id_are_neither_stored_nor_extracted_again(harness: IngestionHarness) -> None:
    harness.model_answers(extraction(candidate("User has a cat")))
    message = message_at("2026-05-01", "I have a cat", id="m1")
    first = await harness.send_and_extract(message)
    again = await harness.send(message)
    assert again.model_dump() == {"job_id": None, "session_id": "s1", "message_ids": ["m1"]}
    assert len(harness.server.requests) == 1
    assert first.status is JobStatus.SUCCEEDED
    assert (await harness.conversations.get_session(harness.owner, "s1")).message_count == 1


async def test_without_a_model_jobs_are_skipped_and_messages_stay_unread(
    harness: IngestionHarness, graph: Graph, embedder: Embedder
) -> None:
    harness.job_dispatcher.use(JobHandler(EXTRACTION_JOB, replaced_model(harness, graph, embedder, None).run))
    job = await harness.send_and_extract("I have a cat")
    assert job.status is JobStatus.SKIPPED
    assert "OPENAI_API_KEY" in (job.reason or "")
    assert [message.content for message in await harness.episodes.list_unextracted(harness.owner, "s1")] == [
        "I have a cat"
    ]


@pytest.mark.req("GO-14")
async def test_the_two_calls_may_go_to_two_models(harness: IngestionHarness, graph: Graph, embedder: Embedder) -> None:
    model = ProviderModel(
        base_url=harness.server.base_url, main_model="thorough", gate_model="quick", main_effort="high"
    )
    harness.job_dispatcher.use(JobHandler(EXTRACTION_JOB, replaced_model(harness, graph, embedder, model).run))
    await harness.save("User loves coffee")
    harness.model_answers(extraction(candidate("User is fond of coffee")), reconciliation(decision(1, "reinforce", 1)))
    await harness.send_and_extract("coffee is my jam")
    first, second = harness.server.requests
    assert (first["model"], first.get("reasoning_effort")) == ("quick", None)
    assert (second["model"], second.get("reasoning_effort")) == ("thorough", "high")


@pytest.mark.req("QUINN-41", "QUINN-44", "CASH-11")
async def test_a_class_of_secrets_that_is_allowed_reaches_the_model_and_is_remembered(
    harness: IngestionHarness, graph: Graph, embedder: Embedder
) -> None:
    async with ProviderModel(base_url=harness.server.base_url) as model:
        job = replaced_model(harness, graph, embedder, model, SecretPolicy([f"{harness.owner.tenant}:birth_date"]))
        harness.job_dispatcher.use(JobHandler(EXTRACTION_JOB, job.run))
        born = "User's birthday is 4 May 1990"
        harness.model_answers(extraction(candidate(born), candidate("User's account number is 12345")))
        await harness.send_and_extract("My birthday is 4 May 1990 and my account number is 12345")
    (request,) = harness.server.requests
    rule = next(line for line in request["messages"][0]["content"].splitlines() if line.startswith("- secrets: "))
    refused, allowed = rule.split(" (but ")
    assert "account numbers" in refused
    assert "dates of birth" not in refused
    assert allowed.startswith("dates of birth are allowed here")
    assert "My birthday is 4 May 1990 and my account number is [account_number]" in harness.prompts[0]
    assert await harness.current_contents() == [born]


@pytest.mark.req("GO-10")
async def test_prompts_use_small_numbers_and_unknown_numbers_are_ignored(harness: IngestionHarness) -> None:
    coffee = (await harness.save("User loves coffee")).memory
    harness.model_answers(
        extraction(candidate("User no longer drinks coffee")),
        reconciliation(decision(1, "supersede", 7), decision(9, "delete", 1)),
    )
    await harness.send_and_extract("I gave up coffee")
    assert coffee
    assert all(coffee.id not in prompt for prompt in harness.prompts)
    assert "[1] User loves coffee" in harness.prompts[1]
    assert await harness.current_contents() == ["User loves coffee", "User no longer drinks coffee"]


@pytest.mark.req("UMB-05")
async def test_an_inferred_interest_becomes_a_memory_only_at_its_second_mention(
    harness: IngestionHarness,
) -> None:
    sailing = candidate(
        "User is interested in sailing",
        type="inferred_interest",
        predicate="INTERESTED_IN",
        object={"name": "sailing", "type": "Activity"},
    )
    harness.model_answers(extraction(sailing))
    job = await harness.send_and_extract("which knots does one need for sailing?")
    assert await harness.current_contents(include_superseded=True) == []
    assert job.actions == [{"action": "note", "type": "inferred_interest", "reason": "an interest mentioned once"}]
    harness.model_answers(extraction({**sailing, "content": "User would like to know more about sailing"}))
    await harness.send_and_extract("how long is a sailing course?")
    assert "sailing" in harness.prompts[1].split("<noted_interests>")[1].split("</noted_interests>")[0]
    (memory,) = await harness.current_memories()
    assert memory.type == "inferred_interest"
    assert len(memory.source.message_ids) == 2


@pytest.mark.req("UMB-02")
async def test_assistant_turns_yield_recommendations_but_no_facts(harness: IngestionHarness) -> None:
    harness.model_answers(
        extraction(
            candidate("User enjoys sailing", type="preference", predicate="ENJOYS"),
            candidate("User lives near Boston", confidence=0.8),
            candidate("Marblehead was recommended to User for sailing", type="recommendation", messages=[2]),
            candidate("Boston has a harbour", messages=[2]),
        )
    )
    job = await harness.send_and_extract(
        message_at("2026-05-01", "I've been really into sailing lately. Any good spots near Boston?"),
        message_at("2026-05-01", "Try Marblehead.", role="model"),
    )
    saved = await harness.current_memories()
    assert [memory.type.value for memory in saved] == ["preference", "fact", "recommendation"]
    assert [memory.metadata["said_by"] for memory in saved] == ["user", "user", "assistant"]
    assert {"action": "refuse", "type": "fact", "reason": "said by the assistant only"} in job.actions


@pytest.mark.req("CASH-11")
@pytest.mark.req("CASH-12")
@pytest.mark.req("CASH-13")
async def test_secrets_temporary_states_and_low_confidence_are_rejected_with_reason(
    harness: IngestionHarness,
) -> None:
    harness.model_answers(
        extraction(
            candidate("User's card is 4242 4242 4242 4242"),
            candidate("User's e-mail is mara@example.org"),
            candidate("User's checking account has $214 right now"),
            candidate("User may be moving", confidence=0.49),
            candidate("User lives with a cat", confidence=0.5),
        )
    )
    job = await harness.send_and_extract("my card is 4242 4242 4242 4242, mail me at mara@example.org")
    assert await harness.current_contents() == ["User lives with a cat"]
    assert [entry["reason"] for entry in job.actions if entry["action"] == "refuse"] == [
        "holds a secret: card",
        "holds a secret: email",
        "a temporary state",
        "confidence below 0.5",
    ]
    assert "4242 4242" not in harness.prompts[0]
    assert "[card]" in harness.prompts[0]
    stored = await harness.conversations.list_messages(harness.owner, "s1", PageQuery())
    assert "4242 4242 4242 4242" in stored.items[0].content
    rows = await harness.graph.fetch(
        "facts.fetch_latest", group_ids=[harness.owner.group_id], memory_ids=[(await harness.current_memories())[0].id]
    )
    assert "4242 4242" not in str(rows)


@pytest.mark.req("QUINN-18")
async def test_feelings_and_wishes_about_answers_get_the_tags_that_maintenance_looks_for(
    harness: IngestionHarness,
) -> None:
    worry = candidate("User is worried about the move", type="feeling", predicate="FEELS")
    brief = candidate("User wants short answers", type="preference", tags=["COMMUNICATION_PREFERENCES"])
    harness.model_answers(extraction(worry, brief))
    await harness.send_and_extract(message_at("2026-05-25", "I'm worried about the move. Please be brief."))
    memories = {memory.content: memory for memory in await harness.current_memories()}
    feeling = memories["User is worried about the move"]
    assert feeling.expires_at == midnight("2026-06-08").replace(hour=12)
    assert "temporary" in feeling.tags
    assert memories["User wants short answers"].tags == ["COMMUNICATION_PREFERENCES", "feedback"]
    session = await harness.conversations.get_session(harness.owner, "s1")
    assert not {"temporary", "feedback"} & {*session.topic_tags}


@pytest.mark.req("QUINN-27")
async def test_a_changed_deadline_supersedes_the_old_one_from_its_message_time(harness: IngestionHarness) -> None:
    def due(day: str) -> dict[str, Any]:
        return candidate(
            f"The Skovby report is due on {day}",
            type="plan",
            subject={"name": "Skovby report", "type": "Project"},
            predicate="DUE_ON",
            single_valued=True,
        )

    harness.model_answers(extraction(due("30 June 2026")))
    await harness.send_and_extract(message_at("2026-04-15", "the report is due on 30 June"))
    harness.model_answers(
        extraction(due("15 July 2026")), reconciliation(decision(1, "supersede", 1, reason="the client moved it"))
    )
    await harness.send_and_extract(message_at("2026-05-06", "the deadline is 15 July now"))
    assert await harness.current_contents() == ["The Skovby report is due on 15 July 2026"]
    assert await harness.current_contents(valid_as_of="2026-05-01T00:00:00Z") == [
        "The Skovby report is due on 30 June 2026"
    ]


async def test_a_corrected_fact_gets_an_empty_valid_interval(harness: IngestionHarness) -> None:
    def home(place: str, **fields: Any) -> dict[str, Any]:
        return candidate(
            f"Elin lives in {place}",
            subject={"name": "Elin", "type": "Person"},
            predicate="LIVES_IN",
            object={"name": place, "type": "Place"},
            single_valued=True,
            **fields,
        )

    harness.model_answers(extraction(home("Malmö")))
    await harness.send_and_extract(message_at("2026-01-06", "my sister Elin lives in Malmö"))
    harness.model_answers(
        extraction(home("Lund", valid_at="2023")),
        reconciliation(decision(1, "supersede", 1, reason="it was a mistake")),
    )
    await harness.send_and_extract(message_at("2026-05-17", "correction: Elin lives in Lund, since 2023"))
    assert await harness.current_contents() == ["Elin lives in Lund"]
    assert await harness.current_contents(valid_as_of="2026-02-01T00:00:00Z") == ["Elin lives in Lund"]


async def test_an_earlier_value_arriving_late_does_not_replace_the_current_one(harness: IngestionHarness) -> None:
    harness.model_answers(extraction(lives_in("Paris", valid_at="2024")))
    await harness.send_and_extract(message_at("2026-05-01", "I live in Paris since 2024"))
    harness.model_answers(extraction(lives_in("Rome", valid_at="2019")), reconciliation(decision(1, "insert")))
    await harness.send_and_extract(message_at("2026-05-02", "before that, from 2019, I lived in Rome"))
    assert await harness.current_contents() == ["User lives in Paris"]
    assert await harness.current_contents(valid_as_of="2020-01-01T00:00:00Z") == ["User lives in Rome"]


@pytest.mark.req("UMB-01")
async def test_the_caller_does_not_wait_for_the_model(harness: IngestionHarness) -> None:
    may_answer = threading.Event()

    def answer_late(exchange: Exchange) -> None:
        may_answer.wait(60)
        replies(json.dumps(extraction()))(exchange)

    harness.model_answers(answer_late)
    accepted = await harness.send("I have a cat")
    assert accepted.job_id
    assert not (await harness.jobs.get(accepted.job_id)).status.is_final
    may_answer.set()
    await harness.wait_for_job(accepted.job_id)


async def test_relative_dates_count_in_the_users_own_time_zone(harness: IngestionHarness) -> None:
    harness.model_answers(extraction(lives_in("Osaka", valid_at="2026-05-04")))
    await harness.send_and_extract(
        {"role": "user", "content": "I moved to Osaka today", "timestamp": "2026-05-03T20:00:00Z"},
        timezone="Asia/Tokyo",
    )
    assert "Mon 2026-05-04 05:00" in harness.prompts[0]
    (memory,) = await harness.current_memories()
    assert memory.valid_at
    assert memory.valid_at.isoformat() == "2026-05-03T15:00:00+00:00"


async def test_the_offset_of_a_message_is_the_speakers_local_time(harness: IngestionHarness) -> None:
    harness.model_answers(extraction())
    await harness.send_and_extract(
        {"role": "user", "content": "good evening", "timestamp": "2026-05-03T23:30:00+02:00"}
    )
    assert "[1] USER, Sun 2026-05-03 23:30: good evening" in harness.prompts[0]


async def test_a_long_conversation_is_extracted_batch_by_batch_without_loss(harness: IngestionHarness) -> None:
    turns = [message_at("2026-05-01", f"fact number {n}. " + "word " * 900) for n in range(12)]
    contents = ("User has a cat", "The Skovby report is due in July", "Elin plays the cello")
    harness.model_answers(*(extraction(candidate(content)) for content in contents))
    job = await harness.send_and_extract(*turns)
    assert job.status is JobStatus.SUCCEEDED, job.error
    assert job.receipt.llm_calls == 3
    read = "".join(prompt.split("<conversation>")[1] for prompt in harness.prompts)
    assert all(f"fact number {n}." in read for n in range(12))
    assert await harness.current_contents() == list(contents)
    assert "fact number 4." in harness.prompts[1].split("<earlier>")[1]
    assert await harness.episodes.list_unextracted(harness.owner, "s1") == []


async def test_system_and_tool_messages_are_stored_and_never_extracted(harness: IngestionHarness) -> None:
    job = await harness.send_and_extract({"role": "system", "content": "be kind"}, {"role": "tool", "content": "{}"})
    assert (job.status, job.receipt.llm_calls) == (JobStatus.SKIPPED, 0)
    assert await harness.episodes.list_unextracted(harness.owner, "s1") == []


def replaced_model(
    harness: IngestionHarness,
    graph: Graph,
    embedder: Embedder,
    model: ProviderModel | None,
    policy: SecretPolicy | None = None,
) -> ExtractionJob:
    policy, profiles = policy or SecretPolicy(), TenantProfiles()
    facts = FactStore(graph, harness.entities, harness.clock)
    return ExtractionJob(
        graph=graph,
        instructions=InstructionStore(graph),
        declared_types=DeclaredTypeStore(graph),
        episodes=harness.episodes,
        facts=facts,
        entities=harness.entities,
        memory_writer=MemoryWriter(facts, embedder, policy, profiles),
        policy=policy,
        profiles=profiles,
        embedder=embedder,
        model=model,
    )
