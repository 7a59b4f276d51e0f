"""Waiting for jobs; imports nothing slow."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from graphmem.client.async_client import AsyncClient
    from graphmem.jobs.job import Job

_FIRST_PAUSE = 0.02
"""Seconds between the first two checks of a job; each further pause is 1.5 times as long."""

LONGEST_PAUSE = 0.5
"""Longest pause between two checks of a job or a run, in seconds."""


async def wait_for_job(operations: AsyncClient, job_id: str) -> Job:
    """Wait until a job has ended or waits for a model; retry it first if it has failed or waits already."""
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
    """Return the jobs that failed or wait for a model."""
    return [job for job in jobs if job.status == "failed" or job.waits_until]
