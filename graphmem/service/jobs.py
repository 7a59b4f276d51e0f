"""Background jobs: read their state, retry failed ones, and erase what they recorded of an erased memory."""

from __future__ import annotations

from collections.abc import Sequence

from graphmem.domain.identity import Owner
from graphmem.domain.job import Job, JobOutcome
from graphmem.errors import NotFound
from graphmem.jobs import JobKind, JobRunner, Steps, UserJobPayload


class ErasurePayload(UserJobPayload):
    """An erased memory."""

    memory_id: str


ERASURE_JOB = JobKind("erasure", ErasurePayload)
"""Erases what jobs recorded of an erased memory that were unfinished when it was erased."""


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

    async def erase_memory_traces(self, owner: Owner, memory_id: str, texts: Sequence[str]) -> None:
        """Erase what jobs recorded of an erased memory, by its id and texts; of those still at work once they end."""
        await self._jobs.erase_step_results(owner.group_id, [memory_id, *texts])
        if await self._jobs.is_busy(owner.group_id):
            payload = ErasurePayload(tenant=owner.tenant, user_id=owner.user_id, memory_id=memory_id)
            await self._jobs.enqueue(ERASURE_JOB, payload)

    async def handle_erasure_job(self, payload: ErasurePayload, steps: Steps) -> JobOutcome:
        """Handle a job of kind `erasure`; in its user's queue it runs after all jobs that were unfinished."""
        await steps.run("erase", lambda: self._jobs.erase_step_results(payload.owner.group_id, [payload.memory_id]))
        return JobOutcome()

    async def wait(self, job_id: str, seconds: float) -> Job:
        """Return a job once it is final, or as it stands after `seconds`."""
        return await self._jobs.wait(job_id, seconds)


def belongs_to(job: Job, owner: Owner) -> bool:
    """Whether a job stands in a user's queue."""
    return job.partition == owner.group_id
