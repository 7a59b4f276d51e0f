"""Waiting for background jobs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from graphmem.bootstrap import Services
    from graphmem.domain.job import Job

_WAIT_SECONDS = 60.0
"""Seconds of one wait; it is repeated until the job has ended."""


async def wait_for_job(services: Services, job_id: str) -> Job:
    """Wait until a job has ended or waits for a model; one that did so in an earlier run is retried first."""
    job = await services.jobs.wait(job_id, 0)
    if job.status == "failed" or job.waits_until:
        job = await services.jobs.retry(job_id)
    while not job.is_at_rest:
        job = await services.jobs.wait(job_id, _WAIT_SECONDS)
    return job


def failed_jobs(jobs: Sequence[Job]) -> list[Job]:
    """Return the jobs that failed, and those that wait for a model."""
    return [job for job in jobs if job.status == "failed" or job.waits_until]
