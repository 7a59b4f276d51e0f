"""Waiting for background jobs and consolidation runs."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from graphmem.cli.startup import Operations
    from graphmem.consolidation.models import ConsolidationRun
    from graphmem.jobs.job import Job
    from graphmem.runtime.progress_domain import ProgressCallback

_FIRST_PAUSE = 0.02
"""Seconds between the first two looks at a job; each pause is half as long again as the one before."""

_LONGEST_PAUSE = 0.5
"""Most seconds between two looks at a job or a run."""


async def wait_for_job(operations: Operations, job_id: str) -> Job:
    """Wait until a job has ended or waits for a model; one that did so in an earlier run is retried first."""
    job = await operations.job(job_id)
    if job.status == "failed" or job.waits_until:
        job = await operations.retry_job(job_id)
    return await wait_until_at_rest(operations, job)


async def wait_until_at_rest(operations: Operations, job: Job) -> Job:
    """Wait until a job has ended or waits for a model."""
    pause = _FIRST_PAUSE
    while not job.is_at_rest:
        await asyncio.sleep(pause)
        pause = min(pause * 1.5, _LONGEST_PAUSE)
        job = await operations.job(job.id)
    return job


def failed_jobs(jobs: Sequence[Job]) -> list[Job]:
    """Return the jobs that failed, and those that wait for a model."""
    return [job for job in jobs if job.status == "failed" or job.waits_until]


async def wait_for_run(operations: Operations, run_id: str, on_progress: ProgressCallback) -> ConsolidationRun:
    """Wait until the jobs of a run have ended or wait for a model; return the run with its changes.

    The job of one user's run has the id of the run; a run of all users has one job for each of its parts.
    """
    run = await operations.run(run_id)
    for job_id in [run.id] if run.user_id is not None else run.parts:
        while not (await operations.job(job_id)).is_at_rest:
            run = await operations.run(run_id)
            on_progress(run.batches_done, run.batches)
            await asyncio.sleep(_LONGEST_PAUSE)
    run = await operations.run(run_id)
    on_progress(run.batches_done, run.batches)
    return run
