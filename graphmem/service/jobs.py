"""Background jobs: their status, and another try for one that failed."""

from __future__ import annotations

from graphmem.domain.identity import Owner
from graphmem.domain.job import Job
from graphmem.errors import NotFound
from graphmem.jobs import JobRunner


class JobService:
    """The verbs of jobs; whoever calls has checked that the caller reaches the job's partition."""

    def __init__(self, jobs: JobRunner) -> None:
        self._jobs = jobs

    async def get(self, job_id: str) -> Job:
        """Return a job; raise NotFound when there is none."""
        job = await self._jobs.get(job_id)
        if job is None:
            raise NotFound("There is no such job.")
        return job

    async def retry(self, job_id: str) -> Job:
        """Queue a failed job again; what it had finished is not repeated. Raises NotFound and Conflict."""
        return await self._jobs.retry(job_id)

    async def list(self, owner: Owner, limit: int = 50) -> list[Job]:
        """Return a user's jobs, the newest first."""
        return await self._jobs.list(owner.group_id, limit=limit)

    async def wait(self, job_id: str, seconds: float) -> Job:
        """Return a job once it is final, or as it stands after `seconds`."""
        return await self._jobs.wait(job_id, seconds)


def belongs_to(job: Job, owner: Owner) -> bool:
    """Whether a job stands in a user's queue."""
    return job.partition == owner.group_id
