"""Failures of a model's server: the job waits with a reason, writes nothing, and succeeds when it goes on."""

from __future__ import annotations

import json
import logging

import pytest

from graphmem.jobs.job import JobStatus
from tests.ingestion.conftest import IngestionHarness, candidate, extraction, lives_in, message_at
from tests.models.scripted_server import Step, fails, hangs, replies

CUT = json.dumps(extraction(lives_in("Lisbon")))[:-40]

FAULTS: dict[str, Step] = {
    "hangs": hangs(30),
    "answers garbage": replies("I would rather not."),
    "stops at its limit": replies(CUT, finish="length"),
    "leaves fields out": replies('{"skip": false, "candidates": [{"content": "User lives in Lisbon"}]}'),
    "fails": fails(500),
}


@pytest.fixture
def answer_seconds() -> float:
    """A server that hangs is soon given up."""
    return 3


@pytest.mark.req("GO-08")
@pytest.mark.req("UMB-01")
@pytest.mark.parametrize(
    "fault", [pytest.param(name, marks=[pytest.mark.long] if name == "leaves fields out" else []) for name in FAULTS]
)
async def test_a_broken_answer_makes_the_job_wait_and_writes_nothing(
    harness: IngestionHarness,
    fault: str,
    caplog: pytest.LogCaptureFixture,
) -> None:
    harness.model_answers(FAULTS[fault])
    with caplog.at_level(logging.WARNING, "graphmem"):
        job = await harness.send_and_extract(message_at("2026-05-01", "I live in Lisbon, secretly"))
    assert job.status is JobStatus.QUEUED
    assert job.waits_until
    assert job.reason
    assert "secretly" not in job.reason
    assert len(harness.server.requests) <= 6
    assert await harness.current_memories() == []
    warnings = [record for record in caplog.records if record.name.startswith("graphmem.jobs")]
    assert len(warnings) == 1
    harness.server.steps.clear()
    harness.server.requests.clear()
    harness.model_answers(extraction(lives_in("Lisbon")))
    await harness.jobs.retry(job.id)
    again = await harness.wait_for_job(job.id)
    assert again.status is JobStatus.SUCCEEDED, again.error
    assert await harness.current_contents() == ["User lives in Lisbon"]


async def test_a_second_call_that_fails_does_not_repeat_the_first(harness: IngestionHarness) -> None:
    await harness.save("User loves coffee")
    harness.model_answers(extraction(candidate("User is fond of coffee")), fails(500))
    job = await harness.send_and_extract(message_at("2026-05-01", "coffee is my jam"))
    assert job.waits_until
    first = [request for request in harness.server.requests if "<known_names>" in request["messages"][-1]["content"]]
    assert len(first) == 1
    harness.server.steps.clear()
    harness.server.requests.clear()
    insert = {"new": 1, "action": "insert", "known": [], "ended_at": None, "reason": ""}
    harness.model_answers({"decisions": [insert], "same_entities": []})
    await harness.jobs.retry(job.id)
    assert (await harness.wait_for_job(job.id)).status is JobStatus.SUCCEEDED
    assert len(harness.server.requests) == 1
    assert await harness.current_contents() == ["User loves coffee", "User is fond of coffee"]
