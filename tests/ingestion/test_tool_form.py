"""The tool form: a model that saves by itself, through the same guard and store."""

from __future__ import annotations

import json
from typing import Any

import pytest

from graphmem.domain.job import Job, JobStatus
from graphmem.domain.session import SessionKind
from graphmem.errors import Conflict, NotFound
from tests.ingestion.conftest import World, at
from tests.llm.scripted import Step, says


def call(content: str, type: str = "USER_PREFERENCE", confidence: float = 0.9, **fields: Any) -> dict[str, Any]:
    arguments = {"type": type, "content": content, "confidence": confidence, "topic_tags": ["OTHER"], **fields}
    return {"name": "upsert_memories", "arguments": arguments}


def calls(*made: dict[str, Any]) -> Step:
    """A completion that calls tools."""
    told = [
        {
            "id": f"c{n}",
            "type": "function",
            "function": {"name": each["name"], "arguments": json.dumps(each["arguments"])},
        }
        for n, each in enumerate(made)
    ]
    return says(None, finish="tool_calls", tool_calls=told)


async def chat(world: World) -> None:
    await world.post(
        at("2026-05-01", "I prefer weekly spending summaries", id="m1"),
        at("2026-05-01", "Noted.", role="assistant", id="m2"),
        at("2026-05-01", "Also, I run a small bakery", id="m3"),
        extract=False,
    )


async def triggered(world: World) -> Job:
    answer = await world.conversations.trigger_extraction(world.owner.tenant, "s1")
    return await world.finished(answer.job_id)


@pytest.mark.req("CASH-01")
@pytest.mark.req("CASH-02")
@pytest.mark.req("CASH-06")
@pytest.mark.req("CASH-07")
@pytest.mark.req("CASH-08")
async def test_each_trigger_runs_in_a_session_of_its_own_and_saves_every_call(world: World) -> None:
    await chat(world)
    before = await world.conversations.messages(world.owner, "s1")
    world.model_answers(
        calls(call("User prefers weekly spending summaries"), call("User runs a small bakery", "FACTUAL_INFO", 0.95))
    )
    answer = await world.conversations.trigger_extraction(world.owner.tenant, "s1")
    assert answer.triggered is True
    run_id = answer.message.removeprefix("Memory extraction triggered, session ID: ")
    run = await world.conversations.session(world.owner, run_id)
    assert (run.kind, run.source_session_id) == (SessionKind.EXTRACTION, "s1")
    assert run_id != "s1"
    job = await world.finished(answer.job_id)
    assert (job.status, job.receipt.llm_calls) == (JobStatus.SUCCEEDED, 1)
    kept = {memory.content: memory for memory in await world.known()}
    assert kept["User prefers weekly spending summaries"].type == "preference"
    assert kept["User prefers weekly spending summaries"].source.message_ids == ["m1"]
    assert kept["User runs a small bakery"].source.message_ids == ["m3"]
    assert kept["User runs a small bakery"].confidence == 0.95
    after = await world.conversations.messages(world.owner, "s1")
    assert [each.content for each in after.items] == [each.content for each in before.items]
    world.model_answers(says("Nothing worth remembering."))
    again = await world.conversations.trigger_extraction(world.owner.tenant, "s1")
    assert again.message != answer.message
    await world.finished(again.job_id)


@pytest.mark.req("CASH-03")
@pytest.mark.req("CASH-04")
@pytest.mark.req("CASH-05")
async def test_the_model_gets_the_history_in_one_user_message_and_one_tool(world: World) -> None:
    await chat(world)
    world.model_answers(says("Nothing worth remembering."))
    await triggered(world)
    (request,) = world.server.requests
    system, user = request["messages"]
    assert (system["role"], user["role"]) == ("system", "user")
    history = user["content"].split("<conversation_history>\n")[1].split("\n</conversation_history>")[0]
    assert history.splitlines() == [
        "[USER]: I prefer weekly spending summaries",
        "[ASSISTANT]: Noted.",
        "[USER]: Also, I run a small bakery",
    ]
    assert "mandatory" in user["content"]
    assert [line[:2] for line in user["content"].splitlines() if line[:1].isdigit()] == ["1.", "2.", "3."]
    assert [tool["function"]["name"] for tool in request["tools"]] == ["upsert_memories"]
    for part in ("What to extract", "How to extract it", "What not to extract"):
        assert part in system["content"]


@pytest.mark.req("CASH-14")
async def test_when_the_model_calls_no_tool_nothing_is_written(world: World) -> None:
    await chat(world)
    world.model_answers(says("Nothing worth remembering."))
    job = await triggered(world)
    assert (job.status, job.reason) == (JobStatus.SKIPPED, "Nothing worth remembering.")
    assert await world.known() == []


@pytest.mark.req("CASH-09")
@pytest.mark.req("CASH-10")
@pytest.mark.req("CASH-11")
@pytest.mark.req("CASH-13")
async def test_calls_go_through_the_same_guard(world: World) -> None:
    await chat(world)
    world.model_answers(
        calls(
            call(
                "User checks weekend sales", "BEHAVIORAL_PATTERN", 0.7, topic_tags=["CASHFLOW_AND_SPENDING", "nonsense"]
            ),
            call("User agreed to weekly summaries", "CONVERSATION_SUMMARY"),
            call("User means to set up savings", "OPEN_LOOP"),
            call("User's SSN is 536-90-4399", "FACTUAL_INFO"),
            call("User may sell the bakery", confidence=0.49),
            call("User is a dragon", "DRAGON_INFO"),
            {"name": "drop_everything", "arguments": {}},
        )
    )
    job = await triggered(world)
    kept = await world.known()
    assert [memory.type.value for memory in kept] == ["behavioral_pattern", "conversation_summary", "open_loop"]
    assert kept[0].tags == ["CASHFLOW_AND_SPENDING"]
    assert [entry["reason"] for entry in job.actions if entry["action"] == "refuse"] == [
        "the call does not fit the tool: type",
        "there is no such tool",
        "holds a secret: ssn",
        "confidence below 0.5",
    ]


@pytest.mark.req("CASH-15")
async def test_the_same_call_twice_is_one_memory(world: World) -> None:
    await chat(world)
    for _ in range(2):
        world.model_answers(calls(call("User prefers weekly spending summaries")))
        assert (await triggered(world)).status is JobStatus.SUCCEEDED
    assert await world.contents() == ["User prefers weekly spending summaries"]


async def test_a_bare_session_id_of_several_users_asks_whose_is_meant(world: World) -> None:
    from graphmem.domain.identity import Owner

    await chat(world)
    with pytest.raises(NotFound):
        await world.conversations.trigger_extraction(world.owner.tenant, "s9")
    world.owner = Owner(world.owner.tenant, "somebody else")
    await chat(world)
    with pytest.raises(Conflict):
        await world.conversations.trigger_extraction(world.owner.tenant, "s1")
    world.model_answers(says("Nothing worth remembering."))
    answer = await world.conversations.trigger_extraction(world.owner.tenant, "s1", "somebody else")
    assert (await world.finished(answer.job_id)).status is JobStatus.SKIPPED
