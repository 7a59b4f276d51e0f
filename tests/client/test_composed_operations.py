"""Methods of several operations, step by step."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from graphmem.client import AsyncClient
from graphmem.client.transport import ApiCall
from graphmem.jobs.job import Job, JobStatus
from graphmem.memories.memory import SaveAction, SaveResult
from graphmem.runtime.errors import Unavailable

MESSAGES = [{"role": "user", "content": "I drink oolong."}]


def make_job(status: JobStatus = JobStatus.SUCCEEDED, **fields: Any) -> Job:
    return Job(
        id="j", kind="extract", status=status, created_at=datetime(2026, 1, 1, tzinfo=UTC), partition="", **fields
    )


class AnsweringClient(AsyncClient):
    """A client whose messages are extracted by a given job; what it sends is listed."""

    def __init__(self, job: Job) -> None:
        self._extraction = job
        self.sent: list[str] = []

    async def _send(self, call: ApiCall[Any]) -> Any:
        self.sent.append(f"{call.method} {call.path}")
        return self._extraction if call.path.endswith("/messages") else None


async def run_add(job: Job) -> tuple[list[str], list[SaveResult]]:
    """Return what `add` sends, and its result."""
    client = AnsweringClient(job)
    return client.sent, await client.add("mara", MESSAGES)


async def test_each_memory_that_was_extracted_is_a_result() -> None:
    actions = [
        {"action": "supersede", "memory_id": "m1", "superseded": ["m0"]},
        {"action": "refuse", "reason": "holds a secret: card"},
        {"action": "link", "entity_id": "e1"},
    ]
    called, results = await run_add(make_job(actions=actions))
    assert called == ["POST /v1/users/mara/messages", "GET /v1/users/mara/memories/m1"]
    assert [(result.action, result.superseded, result.reason) for result in results] == [
        (SaveAction.SUPERSEDE, ["m0"], None),
        (SaveAction.SKIP, [], "holds a secret: card"),
    ]


async def test_a_failed_or_unfinished_extraction_is_no_silent_success() -> None:
    with pytest.raises(Unavailable, match=r"retry_job\('j'\)"):
        await run_add(make_job(JobStatus.FAILED, error="the model does not answer"))
    [waiting] = (await run_add(make_job(JobStatus.QUEUED)))[1]
    assert "job('j')" in (waiting.reason or "")
    assert (await run_add(make_job()))[1] == []
