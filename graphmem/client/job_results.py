"""Waiting for jobs, and what an extraction job saved and refused, as the results of a save."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from graphmem.jobs.job import Job, JobStatus
from graphmem.memories.memory import SaveAction, SaveResult
from graphmem.runtime.errors import Unavailable

if TYPE_CHECKING:
    from graphmem.client.async_client import AsyncClient
    from graphmem.jobs.job import Job

_FIRST_PAUSE = 0.02
"""Seconds between the first two looks at a job; each pause is half as long again as the one before."""

LONGEST_PAUSE = 0.5
"""Most seconds between two looks at a job or a run."""


async def wait_for_job(operations: AsyncClient, job_id: str) -> Job:
    """Wait until a job has ended or waits for a model; one that did so in an earlier run is retried first."""
    job = await operations.job(job_id)
    if job.status == "failed" or job.waits_until:
        job = await operations.retry_job(job_id)
    return await wait_until_at_rest(operations, job)


async def wait_until_at_rest(operations: AsyncClient, job: Job) -> Job:
    """Wait until a job has ended or waits for a model."""
    pause = _FIRST_PAUSE
    while not job.is_at_rest:
        await asyncio.sleep(pause)
        pause = min(pause * 1.5, LONGEST_PAUSE)
        job = await operations.job(job.id)
    return job


def failed_jobs(jobs: Sequence[Job]) -> list[Job]:
    """Return the jobs that failed, and those that wait for a model."""
    return [job for job in jobs if job.status == "failed" or job.waits_until]


def read_saves(job: Job) -> Iterator[tuple[SaveAction, str, list[str]]]:
    """Yield the memories that a job saved."""
    for action in job.actions:
        if action.get("memory_id") and action.get("action") in {*SaveAction} - {SaveAction.SKIP}:
            yield SaveAction(action["action"]), action["memory_id"], action.get("superseded") or []


def read_refusals(job: Job, *, is_empty: bool) -> list[SaveResult]:
    """Return a result for each statement that a job refused, and why there is no result at all."""
    if job.status is JobStatus.FAILED:
        raise Unavailable(
            f"The messages are stored, but their extraction failed ({job.error}): call retry_job({job.id!r}).",
            retry_after=None,
        )
    refused = [skipped(action.get("reason")) for action in job.actions if action.get("action") == "refuse"]
    if not (is_empty and not refused):
        return refused
    if not job.status.is_final:
        return [skipped(f"The extraction has not ended: read its result with job({job.id!r}).")]
    return [skipped(job.reason)] if job.reason else []


def skipped(reason: str | None) -> SaveResult:
    """Return the result of a statement that was not saved."""
    return SaveResult(action=SaveAction.SKIP, memory=None, reason=reason)
