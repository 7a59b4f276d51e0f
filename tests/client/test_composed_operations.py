"""Methods of several operations, step by step."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from graphmem.client.operations.composed import ComposedStep, add
from graphmem.jobs.job import Job, JobStatus
from graphmem.memories.memory import SaveAction, SaveResult
from graphmem.runtime.errors import Unavailable

MESSAGES = [{"role": "user", "content": "I drink oolong."}]


def make_job(status: JobStatus = JobStatus.SUCCEEDED, **fields: Any) -> Job:
    return Job(
        id="j", kind="extract", status=status, created_at=datetime(2026, 1, 1, tzinfo=UTC), partition="", **fields
    )


def run_add(job: Job) -> tuple[list[str], list[SaveResult]]:
    """Return the methods that `add` calls, and its result."""
    steps = add("mara", MESSAGES)
    called: list[str] = []
    answer: Any = None
    while True:
        try:
            step: ComposedStep = steps.send(answer)
        except StopIteration as ended:
            return called, ended.value
        called.append(step.method)
        answer = job if step.method == "add_messages" else None


def test_each_memory_that_was_extracted_is_a_result() -> None:
    actions = [
        {"action": "supersede", "memory_id": "m1", "superseded": ["m0"]},
        {"action": "refuse", "reason": "holds a secret: card"},
        {"action": "link", "entity_id": "e1"},
    ]
    called, results = run_add(make_job(actions=actions))
    assert called == ["add_messages", "memory"]
    assert [(result.action, result.superseded, result.reason) for result in results] == [
        (SaveAction.SUPERSEDE, ["m0"], None),
        (SaveAction.SKIP, [], "holds a secret: card"),
    ]


def test_a_failed_or_unfinished_extraction_is_no_silent_success() -> None:
    with pytest.raises(Unavailable, match=r"retry_job\('j'\)"):
        run_add(make_job(JobStatus.FAILED, error="the model does not answer"))
    [waiting] = run_add(make_job(JobStatus.QUEUED))[1]
    assert "job('j')" in (waiting.reason or "")
    assert run_add(make_job())[1] == []
