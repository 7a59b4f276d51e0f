"""Extraction by tool calls, with the same policy and store."""

from __future__ import annotations

import json
from typing import Any

import pytest

from graphmem.conversations.session import SessionKind
from graphmem.ingestion.extract import find_source_lines
from graphmem.jobs.job import Job, JobStatus
from graphmem.runtime.errors import Conflict, NotFound
from graphmem.runtime.paging import PageQuery
from tests.ingestion.builders import line
from tests.ingestion.conftest import IngestionHarness, decision, message_at, reconciliation
from tests.models.scripted_server import Step, replies


def call(content: str, type: str = "USER_PREFERENCE", confidence: float = 0.9, **fields: Any) -> dict[str, Any]:
    arguments = {"type": type, "content": content, "confidence": confidence, "topic_tags": ["OTHER"], **fields}
    return {"name": "upsert_memories", "arguments": arguments}


def calls(*made: dict[str, Any]) -> Step:
    """A completion that calls tools."""
    tool_calls = [
        {
            "id": f"c{number}",
            "type": "function",
            "function": {"name": made_call["name"], "arguments": json.dumps(made_call["arguments"])},
        }
        for number, made_call in enumerate(made)
    ]
    return replies(None, finish="tool_calls", tool_calls=tool_calls)


async def chat(harness: IngestionHarness) -> None:
    await harness.send(
        message_at("2026-05-01", "I prefer weekly spending summaries", id="m1"),
        message_at("2026-05-01", "Noted.", role="assistant", id="m2"),
        message_at("2026-05-01", "Also, I run a small bakery", id="m3"),
        extract=False,
    )


async def triggered(harness: IngestionHarness) -> Job:
    answer = await harness.conversations.trigger_extraction(harness.owner.tenant, "s1")
    return await harness.wait_for_job(answer.job_id)


@pytest.mark.req("CASH-01")
@pytest.mark.req("CASH-02")
@pytest.mark.req("CASH-06")
@pytest.mark.req("CASH-07")
@pytest.mark.req("CASH-08")
async def test_each_trigger_runs_in_a_session_of_its_own_and_saves_every_call(harness: IngestionHarness) -> None:
    await chat(harness)
    before = await harness.conversations.list_messages(harness.owner, "s1", PageQuery())
    harness.model_answers(
        calls(call("User prefers weekly spending summaries")),
        calls(call("User runs a small bakery", "FACTUAL_INFO", 0.95)),
        replies("That is all."),
    )
    answer = await harness.conversations.trigger_extraction(harness.owner.tenant, "s1")
    assert answer.triggered
    run_id = answer.message.removeprefix("Memory extraction triggered, session ID: ")
    run = await harness.conversations.get_session(harness.owner, run_id)
    assert (run.kind, run.source_session_id) == (SessionKind.EXTRACTION, "s1")
    assert run_id != "s1"
    job = await harness.wait_for_job(answer.job_id)
    assert (job.status, job.receipt.llm_calls) == (JobStatus.SUCCEEDED, 3)
    assert [message["content"] for message in harness.server.requests[2]["messages"] if message["role"] == "tool"] == [
        "done",
        "done",
    ], "the results of its calls go back to the model until it makes no more"
    run = await harness.conversations.get_session(harness.owner, run_id)
    assert (run.job_id, run.job_status, run.message_count) == (answer.job_id, JobStatus.SUCCEEDED, 7)
    told = (await harness.conversations.list_messages(harness.owner, run_id, PageQuery())).items
    assert [message.role.value for message in told] == ["system", "user", *("assistant", "tool") * 2, "assistant"]
    assert "<conversation_history>" in told[1].content
    assert told[2].metadata["tool_calls"][0]["arguments"]["content"] == "User prefers weekly spending summaries"
    assert [message.content for message in told[3:]] == ["done", "", "done", "That is all."]
    saved = {memory.content: memory for memory in await harness.current_memories()}
    assert saved["User prefers weekly spending summaries"].type == "preference"
    assert saved["User prefers weekly spending summaries"].source.message_ids == ["m1"]
    assert saved["User runs a small bakery"].source.message_ids == ["m3"]
    assert saved["User runs a small bakery"].confidence == 0.95
    after = await harness.conversations.list_messages(harness.owner, "s1", PageQuery())
    assert [message.content for message in after.items] == [message.content for message in before.items]
    harness.model_answers(replies("Nothing worth remembering."))
    again = await harness.conversations.trigger_extraction(harness.owner.tenant, "s1")
    assert again.message != answer.message
    await harness.wait_for_job(again.job_id)


@pytest.mark.req("CASH-03")
@pytest.mark.req("CASH-04")
@pytest.mark.req("CASH-05")
async def test_the_model_gets_the_history_in_one_user_message_and_one_tool(harness: IngestionHarness) -> None:
    await chat(harness)
    harness.model_answers(replies("Nothing worth remembering."))
    await triggered(harness)
    (request,) = harness.server.requests
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
async def test_when_the_model_calls_no_tool_nothing_is_written(harness: IngestionHarness) -> None:
    await chat(harness)
    harness.model_answers(replies("Nothing worth remembering."))
    job = await triggered(harness)
    assert (job.status, job.reason) == (JobStatus.SKIPPED, "Nothing worth remembering.")
    assert await harness.current_memories() == []


@pytest.mark.req("CASH-09")
@pytest.mark.req("CASH-10")
@pytest.mark.req("CASH-11")
@pytest.mark.req("CASH-13")
async def test_tool_calls_pass_the_same_policy(harness: IngestionHarness) -> None:
    await chat(harness)
    harness.model_answers(
        calls(
            call(
                "User checks weekend sales", "BEHAVIORAL_PATTERN", 0.7, topic_tags=["CASHFLOW_AND_SPENDING", "nonsense"]
            ),
            call("User agreed to weekly summaries", "CONVERSATION_SUMMARY"),
            call("User means to set up savings", "OPEN_LOOP"),
            call("User's SSN is 536-90-4399", "FACTUAL_INFO"),
            call("User may sell the bakery", confidence=0.49),
            call("User is a dragon", "DRAGON_INFO"),
            call("User sells rye bread", confidence=95),
            {"name": "drop_everything", "arguments": {}},
        ),
        replies("Done."),
    )
    job = await triggered(harness)
    *_, secret, doubtful, unknown_type, too_sure, unknown_tool = harness.server.requests[1]["messages"]
    assert secret["content"] == "not saved: holds a secret: ssn"
    assert doubtful["content"] == "not saved: confidence below 0.5"
    assert unknown_type["content"] == "the call does not fit the tool: type"
    assert too_sure["content"] == "the call does not fit the tool: confidence"
    assert unknown_tool["content"] == "there is no such tool"
    saved = await harness.current_memories()
    assert [memory.type.value for memory in saved] == ["behavioral_pattern", "conversation_summary", "open_loop"]
    assert saved[0].tags == ["CASHFLOW_AND_SPENDING"]
    assert [entry["reason"] for entry in job.actions if entry["action"] == "refuse"] == [
        "the call does not fit the tool: type",
        "the call does not fit the tool: confidence",
        "there is no such tool",
        "holds a secret: ssn",
        "confidence below 0.5",
    ]


@pytest.mark.req("UMB-19")
async def test_what_a_trigger_saves_is_linked_to_whom_its_text_names(harness: IngestionHarness) -> None:
    await harness.save(content="Bob works at Acme", subject={"name": "Bob", "type": "Person"})
    await harness.send(message_at("2026-05-01", "My friend Bob likes green tea", id="m1"), extract=False)
    harness.model_answers(
        calls(call("Bob likes green tea", "FACTUAL_INFO")),
        replies("That is all."),
        reconciliation(decision(1, "insert")),
    )
    assert (await triggered(harness)).status is JobStatus.SUCCEEDED
    (tea,) = [memory for memory in await harness.current_memories() if "tea" in memory.content]
    assert "Bob" in {entity.name for entity in tea.entities}


@pytest.mark.req("CASH-15")
async def test_the_same_call_twice_is_one_memory(harness: IngestionHarness) -> None:
    await chat(harness)
    for _ in range(2):
        harness.model_answers(calls(call("User prefers weekly spending summaries")))
        assert (await triggered(harness)).status is JobStatus.SUCCEEDED
    assert await harness.current_contents() == ["User prefers weekly spending summaries"]


async def test_a_session_id_shared_by_several_users_is_a_conflict(harness: IngestionHarness) -> None:
    from graphmem.tenants.owners import Owner

    await chat(harness)
    with pytest.raises(NotFound):
        await harness.conversations.trigger_extraction(harness.owner.tenant, "s9")
    harness.owner = Owner(harness.owner.tenant, "somebody else")
    await chat(harness)
    with pytest.raises(Conflict):
        await harness.conversations.trigger_extraction(harness.owner.tenant, "s1")
    harness.model_answers(replies("Nothing worth remembering."))
    answer = await harness.conversations.trigger_extraction(harness.owner.tenant, "s1", "somebody else")
    assert (await harness.wait_for_job(answer.job_id)).status is JobStatus.SKIPPED


def test_a_tool_call_is_attributed_to_lines_that_share_its_words() -> None:
    lines = [line(1, text="I run a bakery"), line(2, text="good morning"), line(3, text="the bakery opens at five")]
    assert find_source_lines("User runs a small bakery", lines) == [1, 3]
    assert find_source_lines("Etwas ganz anderes", lines) == [3]


@pytest.mark.req("CASH-10", "CASH-21")
async def test_a_topic_that_fits_none_is_other(harness: IngestionHarness) -> None:
    await chat(harness)
    tags = ["BAKING", "OVENS"]
    harness.model_answers(
        calls(call("User runs a small bakery", "FACTUAL_INFO", 0.95, topic_tags=tags)), replies("That is all.")
    )
    await triggered(harness)
    (memory,) = await harness.current_memories()
    assert {tag.upper() for tag in memory.tags} == {"OTHER"}
