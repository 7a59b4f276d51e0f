"""A model's server that hangs, lies or breaks: the job fails in sight, nothing is half-written, a retry mends it."""

from __future__ import annotations

import json
import logging

import pytest

from graphmem.domain.job import JobStatus
from tests.ingestion.conftest import World, at, candidate, extraction, lives_in
from tests.llm.scripted import Step, fails, hangs, says, sends

CUT = json.dumps(extraction(lives_in("Lisbon")))[:-40]

FAULTS: dict[str, Step] = {
    "hangs": hangs(3),
    "answers garbage": says("I would rather not."),
    "is no model": sends(b"<html>hello</html>", "text/html"),
    "cuts its JSON": says(CUT),
    "stops at its limit": says(CUT, finish="length"),
    "answers another schema": says('{"memories": ["User lives in Lisbon"]}'),
    "leaves fields out": says('{"skip": false, "candidates": [{"content": "User lives in Lisbon"}]}'),
    "limits the rate": fails(429),
    "fails": fails(500),
}


@pytest.mark.req("GO-08")
@pytest.mark.req("UMB-01")
@pytest.mark.parametrize("fault", FAULTS)
async def test_a_broken_answer_fails_the_job_in_sight_and_writes_nothing(
    world: World,
    fault: str,
    caplog: pytest.LogCaptureFixture,
) -> None:
    world.model_answers(FAULTS[fault])
    with caplog.at_level(logging.WARNING, "graphmem"):
        job = await world.tell(at("2026-05-01", "I live in Lisbon, secretly"))
    assert job.status is JobStatus.FAILED
    assert job.error
    assert "secretly" not in job.error
    assert await world.known() == []
    warnings = [record for record in caplog.records if record.name.startswith("graphmem.jobs")]
    assert len(warnings) == 1
    world.server.steps.clear()
    world.server.requests.clear()
    world.model_answers(extraction(lives_in("Lisbon")))
    await world.jobs.retry(job.id)
    again = await world.finished(job.id)
    assert again.status is JobStatus.SUCCEEDED, again.error
    assert await world.contents() == ["User lives in Lisbon"]


async def test_a_second_call_that_fails_does_not_repeat_the_first(world: World) -> None:
    await world.save("User loves coffee")
    world.model_answers(extraction(candidate("User is fond of coffee")), fails(500))
    job = await world.tell(at("2026-05-01", "coffee is my jam"))
    assert job.status is JobStatus.FAILED
    first = [request for request in world.server.requests if "<known_names>" in request["messages"][-1]["content"]]
    assert len(first) == 1
    world.server.steps.clear()
    world.server.requests.clear()
    told = {"new": 1, "action": "insert", "known": [], "ended_at": None, "reason": ""}
    world.model_answers({"decisions": [told], "same_entities": []})
    await world.jobs.retry(job.id)
    assert (await world.finished(job.id)).status is JobStatus.SUCCEEDED
    assert len(world.server.requests) == 1
    assert await world.contents() == ["User loves coffee", "User is fond of coffee"]
