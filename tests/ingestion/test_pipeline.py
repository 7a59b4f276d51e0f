"""From messages to memories: two calls at most, one on skip, nothing twice."""

from __future__ import annotations

from typing import Any

import pytest

from graphmem.domain.job import JobStatus
from graphmem.domain.policy import SecretPolicy
from graphmem.embedding import Embedder
from graphmem.ingestion.pipeline import ExtractionJob
from graphmem.ingestion.saving import Saving
from graphmem.llm.client import LanguageModel
from graphmem.store.driver import Graph
from graphmem.store.facts import FactStore
from tests.ingestion.conftest import (
    World,
    at,
    candidate,
    decision,
    extraction,
    lives_in,
    moment,
    reconciliation,
)
from tests.llm.scripted import hangs


@pytest.mark.req("GO-06")
@pytest.mark.req("QUINN-36")
async def test_what_is_said_becomes_a_memory_with_one_call_when_nothing_related_is_known(world: World) -> None:
    world.model_answers(extraction(lives_in("Lisbon", valid_at="2021")))
    job = await world.tell(at("2026-05-03", "I've lived in Lisbon since 2021"))
    assert job.status is JobStatus.SUCCEEDED, job.error
    assert job.receipt.llm_calls == 1
    assert len(world.server.requests) == 1
    (memory,) = await world.known()
    assert memory.content == "User lives in Lisbon"
    assert memory.object
    assert memory.object.name == "Lisbon"
    assert memory.valid_at == moment("2021-01-01")
    assert memory.source.kind == "extraction"
    assert memory.source.session_id == "s1"
    assert job.actions == [{"action": "insert", "memory_id": memory.id, "type": "fact"}]


@pytest.mark.req("GO-04")
@pytest.mark.req("CASH-14")
async def test_a_skip_ends_everything_after_one_call(world: World) -> None:
    world.model_answers(extraction())
    job = await world.tell("hello there")
    assert (job.status, job.reason) == (JobStatus.SKIPPED, "small talk")
    assert (job.receipt.llm_calls, job.receipt.embedded_texts) == (1, 0)
    assert await world.known() == []


@pytest.mark.req("GO-07")
@pytest.mark.req("QUINN-40")
async def test_a_contradiction_supersedes_what_was_known_with_the_reason_and_can_be_reverted(world: World) -> None:
    world.model_answers(extraction(candidate("User loves coffee", type="preference", predicate="LIKES")))
    await world.tell(at("2026-05-01", "coffee is my jam"))
    (coffee,) = await world.known()
    world.model_answers(
        extraction(candidate("User no longer drinks coffee", type="preference", predicate="LIKES")),
        reconciliation(decision(1, "supersede", 1, reason="gave up coffee")),
    )
    job = await world.tell(at("2026-05-20", "I've given up coffee"))
    assert job.receipt.llm_calls == 2
    assert await world.contents() == ["User no longer drinks coffee"]
    history = await world.memories.history(world.owner, coffee.id)
    assert history[-1].invalid_at == moment("2026-05-20").replace(hour=12)
    assert history[0].ended_reason == "superseded: gave up coffee"
    await world.memories.revert(world.owner, coffee.id)
    assert await world.contents() == ["User loves coffee"]


async def test_a_newer_single_value_needs_no_second_call(world: World) -> None:
    world.model_answers(extraction(lives_in("New York")), extraction(lives_in("London")))
    await world.tell(at("2026-01-10", "I live in New York"))
    job = await world.tell(at("2026-03-10", "I moved to London"))
    assert job.receipt.llm_calls == 1
    assert await world.contents() == ["User lives in London"]
    assert await world.contents(valid_as_of="2026-02-01T00:00:00Z") == ["User lives in New York"]


@pytest.mark.req("CASH-15")
async def test_the_same_statement_again_reinforces_and_keeps_both_messages(world: World) -> None:
    world.model_answers(extraction(candidate("User has a cat")), extraction(candidate("user has a cat.")))
    await world.tell(at("2026-05-01", "I have a cat", id="m1"))
    job = await world.tell(at("2026-05-02", "as I said, I have a cat", id="m2"))
    assert job.receipt.llm_calls == 1
    (memory,) = await world.known()
    assert memory.source.message_ids == ["m1", "m2"]
    assert job.actions[0]["action"] == "reinforce"


async def test_the_same_in_other_words_reinforces_when_the_model_says_so(world: World) -> None:
    world.model_answers(extraction(candidate("User owns a cat named Pix")))
    await world.tell(at("2026-05-01", "I have a cat, Pix", id="m1"))
    world.model_answers(extraction(candidate("User has a cat called Pix")), reconciliation(decision(1, "reinforce", 1)))
    await world.tell(at("2026-05-02", "my cat Pix", id="m2"))
    (memory,) = await world.known()
    assert memory.content == "User owns a cat named Pix"
    assert memory.source.message_ids == ["m1", "m2"]


async def test_messages_with_a_known_id_are_neither_stored_nor_extracted_again(world: World) -> None:
    world.model_answers(extraction(candidate("User has a cat")))
    message = at("2026-05-01", "I have a cat", id="m1")
    first = await world.tell(message)
    again = await world.post(message)
    assert again.model_dump() == {"job_id": None, "session_id": "s1", "message_ids": ["m1"]}
    assert len(world.server.requests) == 1
    assert first.status is JobStatus.SUCCEEDED
    assert (await world.conversations.session(world.owner, "s1")).message_count == 1


async def test_without_a_model_jobs_end_skipped_with_the_reason_and_what_was_said_stays_to_be_read(
    world: World, graph: Graph, embedder: Embedder
) -> None:
    world.relay.handlers["extraction"] = replaced_model(world, graph, embedder, None).run
    job = await world.tell("I have a cat")
    assert job.status is JobStatus.SKIPPED
    assert "OPENAI_API_KEY" in (job.reason or "")
    assert [message.content for message in await world.episodes.unread(world.owner, "s1")] == ["I have a cat"]


@pytest.mark.req("GO-14")
async def test_the_two_calls_may_go_to_two_models(world: World, graph: Graph, embedder: Embedder) -> None:
    model = LanguageModel(base_url=world.server.base_url, main_model="thorough", gate_model="quick", main_effort="high")
    world.relay.handlers["extraction"] = replaced_model(world, graph, embedder, model).run
    await world.save("User loves coffee")
    world.model_answers(extraction(candidate("User is fond of coffee")), reconciliation(decision(1, "reinforce", 1)))
    await world.tell("coffee is my jam")
    first, second = world.server.requests
    assert (first["model"], first.get("reasoning_effort")) == ("quick", None)
    assert (second["model"], second.get("reasoning_effort")) == ("thorough", "high")


@pytest.mark.req("GO-10")
async def test_prompts_show_small_integers_and_unknown_ones_are_ignored(world: World) -> None:
    coffee = (await world.save("User loves coffee")).memory
    world.model_answers(
        extraction(candidate("User no longer drinks coffee")),
        reconciliation(decision(1, "supersede", 7), decision(9, "delete", 1)),
    )
    await world.tell("I gave up coffee")
    assert coffee
    assert all(coffee.id not in prompt for prompt in world.prompts)
    assert "[1] User loves coffee" in world.prompts[1]
    assert await world.contents() == ["User loves coffee", "User no longer drinks coffee"]


@pytest.mark.req("UMB-05")
async def test_an_inferred_interest_is_a_memory_at_its_second_mention_and_before_that_nobody_reads_it(
    world: World,
) -> None:
    sailing = candidate(
        "User is interested in sailing",
        type="inferred_interest",
        predicate="INTERESTED_IN",
        object={"name": "sailing", "type": "Activity"},
    )
    world.model_answers(extraction(sailing))
    job = await world.tell("which knots does one need for sailing?")
    assert await world.contents(include_superseded=True) == []
    assert job.actions == [{"action": "note", "type": "inferred_interest", "reason": "an interest mentioned once"}]
    world.model_answers(extraction({**sailing, "content": "User would like to know more about sailing"}))
    await world.tell("how long is a sailing course?")
    assert "sailing" in world.prompts[1].split("<noted_interests>")[1].split("</noted_interests>")[0]
    (memory,) = await world.known()
    assert memory.type == "inferred_interest"
    assert len(memory.source.message_ids) == 2


@pytest.mark.req("UMB-02")
async def test_both_sides_of_an_exchange_are_read_and_a_recommendation_is_kept_as_the_assistants(world: World) -> None:
    world.model_answers(
        extraction(
            candidate("User enjoys sailing", type="preference", predicate="ENJOYS"),
            candidate("User lives near Boston", confidence=0.8),
            candidate("Marblehead was recommended to User for sailing", type="recommendation", messages=[2]),
            candidate("Boston has a harbour", messages=[2]),
        )
    )
    job = await world.tell(
        at("2026-05-01", "I've been really into sailing lately. Any good spots near Boston?"),
        at("2026-05-01", "Try Marblehead.", role="model"),
    )
    kept = await world.known()
    assert [memory.type.value for memory in kept] == ["preference", "fact", "recommendation"]
    assert [memory.metadata["said_by"] for memory in kept] == ["user", "user", "assistant"]
    assert {"action": "refuse", "type": "fact", "reason": "said by the assistant only"} in job.actions


@pytest.mark.req("CASH-11")
@pytest.mark.req("CASH-12")
@pytest.mark.req("CASH-13")
async def test_secrets_states_of_the_moment_and_guesses_are_refused_by_class_and_never_reach_a_prompt(
    world: World,
) -> None:
    world.model_answers(
        extraction(
            candidate("User's card is 4242 4242 4242 4242"),
            candidate("User's e-mail is mara@example.org"),
            candidate("User's checking account has $214 right now"),
            candidate("User may be moving", confidence=0.49),
            candidate("User lives with a cat", confidence=0.5),
        )
    )
    job = await world.tell("my card is 4242 4242 4242 4242, mail me at mara@example.org")
    assert await world.contents() == ["User lives with a cat"]
    assert [entry["reason"] for entry in job.actions if entry["action"] == "refuse"] == [
        "holds a secret: card",
        "holds a secret: email",
        "a temporary state",
        "confidence below 0.5",
    ]
    assert "4242 4242" not in world.prompts[0]
    assert "[card]" in world.prompts[0]
    stored = await world.conversations.messages(world.owner, "s1")
    assert "4242 4242 4242 4242" in stored.items[0].content
    rows = await world.graph.fetch(
        "facts.latest", group_ids=[world.owner.group_id], memory_ids=[(await world.known())[0].id]
    )
    assert "4242 4242" not in str(rows)


async def test_a_feeling_expires_two_weeks_after_it_was_told(world: World) -> None:
    world.model_answers(extraction(candidate("User is worried about the move", type="feeling", predicate="FEELS")))
    await world.tell(at("2026-05-25", "I'm worried about the move"))
    (feeling,) = await world.known()
    assert feeling.expires_at == moment("2026-06-08").replace(hour=12)


@pytest.mark.req("QUINN-27")
async def test_a_changed_deadline_replaces_the_old_one_from_when_it_was_told(world: World) -> None:
    def due(day: str) -> dict[str, Any]:
        return candidate(
            f"The Skovby report is due on {day}",
            type="plan",
            subject={"name": "Skovby report", "type": "Project"},
            predicate="DUE_ON",
            single_valued=True,
        )

    world.model_answers(extraction(due("30 June 2026")))
    await world.tell(at("2026-04-15", "the report is due on 30 June"))
    world.model_answers(
        extraction(due("15 July 2026")), reconciliation(decision(1, "supersede", 1, reason="the client moved it"))
    )
    await world.tell(at("2026-05-06", "the deadline is 15 July now"))
    assert await world.contents() == ["The Skovby report is due on 15 July 2026"]
    assert await world.contents(valid_as_of="2026-05-01T00:00:00Z") == ["The Skovby report is due on 30 June 2026"]


async def test_a_correction_of_what_was_never_true_leaves_it_no_time(world: World) -> None:
    def home(place: str, **fields: Any) -> dict[str, Any]:
        return candidate(
            f"Elin lives in {place}",
            subject={"name": "Elin", "type": "Person"},
            predicate="LIVES_IN",
            object={"name": place, "type": "Place"},
            single_valued=True,
            **fields,
        )

    world.model_answers(extraction(home("Malmö")))
    await world.tell(at("2026-01-06", "my sister Elin lives in Malmö"))
    world.model_answers(
        extraction(home("Lund", valid_at="2023")),
        reconciliation(decision(1, "supersede", 1, reason="it was a mistake")),
    )
    await world.tell(at("2026-05-17", "correction: Elin lives in Lund, since 2023"))
    assert await world.contents() == ["Elin lives in Lund"]
    assert await world.contents(valid_as_of="2026-02-01T00:00:00Z") == ["Elin lives in Lund"]


async def test_a_late_told_earlier_home_does_not_replace_the_present_one(world: World) -> None:
    world.model_answers(extraction(lives_in("Paris", valid_at="2024")))
    await world.tell(at("2026-05-01", "I live in Paris since 2024"))
    world.model_answers(extraction(lives_in("Rome", valid_at="2019")), reconciliation(decision(1, "insert")))
    await world.tell(at("2026-05-02", "before that, from 2019, I lived in Rome"))
    assert await world.contents() == ["User lives in Paris"]
    assert await world.contents(valid_as_of="2020-01-01T00:00:00Z") == ["User lives in Rome"]


@pytest.mark.req("UMB-01")
async def test_the_caller_does_not_wait_for_the_model(world: World) -> None:
    world.model_answers(hangs(3))
    accepted = await world.post("I have a cat")
    assert accepted.job_id
    assert (await world.jobs.get(accepted.job_id)) is not None
    assert world.server.requests == [] or await world.contents() == []
    job = await world.finished(accepted.job_id)
    assert job.status is JobStatus.FAILED


async def test_relative_dates_count_in_the_users_own_time_zone(world: World) -> None:
    world.model_answers(extraction(lives_in("Osaka", valid_at="2026-05-04")))
    await world.tell(
        {"role": "user", "content": "I moved to Osaka today", "timestamp": "2026-05-03T20:00:00Z"},
        timezone="Asia/Tokyo",
    )
    assert "Mon 2026-05-04 05:00" in world.prompts[0]
    (memory,) = await world.known()
    assert memory.valid_at
    assert memory.valid_at.isoformat() == "2026-05-03T15:00:00+00:00"


async def test_the_offset_of_a_message_is_the_speakers_local_time(world: World) -> None:
    world.model_answers(extraction())
    await world.tell({"role": "user", "content": "good evening", "timestamp": "2026-05-03T23:30:00+02:00"})
    assert "[1] USER, Sun 2026-05-03 23:30: good evening" in world.prompts[0]


async def test_a_long_conversation_is_read_window_by_window_and_nothing_is_dropped(world: World) -> None:
    turns = [at("2026-05-01", f"fact number {n}. " + "word " * 900) for n in range(12)]
    told = ("User has a cat", "The Skovby report is due in July", "Elin plays the cello")
    world.model_answers(*(extraction(candidate(content)) for content in told))
    job = await world.tell(*turns)
    assert job.status is JobStatus.SUCCEEDED, job.error
    assert job.receipt.llm_calls == 3
    read = "".join(prompt.split("<conversation>")[1] for prompt in world.prompts)
    assert all(f"fact number {n}." in read for n in range(12))
    assert await world.contents() == list(told)
    assert "fact number 4." in world.prompts[1].split("<earlier>")[1]
    assert await world.episodes.unread(world.owner, "s1") == []


async def test_turns_of_system_and_tools_are_stored_and_never_read(world: World) -> None:
    job = await world.tell({"role": "system", "content": "be kind"}, {"role": "tool", "content": "{}"})
    assert (job.status, job.receipt.llm_calls) == (JobStatus.SKIPPED, 0)
    assert await world.episodes.unread(world.owner, "s1") == []


def replaced_model(world: World, graph: Graph, embedder: Embedder, model: LanguageModel | None) -> ExtractionJob:
    policy = SecretPolicy()
    facts = FactStore(graph, world.entities, world.clock)
    return ExtractionJob(
        graph=graph,
        episodes=world.episodes,
        facts=facts,
        entities=world.entities,
        saving=Saving(facts, embedder, policy),
        policy=policy,
        embedder=embedder,
        model=model,
    )
