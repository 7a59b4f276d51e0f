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
    """Reads, retries and awaits jobs, and erases what they recorded."""

    def __init__(self, jobs: JobRunner) -> None:
        self._jobs = jobs

    async def get(self, tenant: str, job_id: str) -> Job:
        """Return a job of a tenant; raise NotFound for any other, and for jobs of the system."""
        job = await self._jobs.get(job_id)
        # The partition of a system job, such as `maintenance:acme`, may look like that of a user; it names none.
        if job is None or job.partition != Owner(tenant, job.user_id or "").group_id:
            raise NotFound("There is no such job.")
        return job

    async def retry(self, job_id: str) -> Job:
        """Queue a failed job again from the step that failed; raise NotFound, or Conflict when it has not failed."""
        return await self._jobs.retry(job_id)

    async def list(self, owner: Owner, limit: int = 50) -> list[Job]:
        """Return a user's jobs, the newest first."""
        return await self._jobs.list(owner.group_id, limit=limit)

    async def erase_memory_traces(self, owner: Owner, memory_id: str, texts: Sequence[str]) -> None:
        """Erase what jobs recorded of an erased memory, found by its id and texts; of running jobs once they end."""
        await self._jobs.erase_step_results(owner.group_id, [memory_id, *texts])
        if await self._jobs.is_busy(owner.group_id):
            payload = ErasurePayload(tenant=owner.tenant, user_id=owner.user_id, memory_id=memory_id)
            await self._jobs.enqueue(ERASURE_JOB, payload)

    async def handle_erasure_job(self, payload: ErasurePayload, steps: Steps) -> JobOutcome:
        """Handle a job of kind `erasure`; in its user's queue it runs after all jobs that were unfinished."""
        await steps.run("erase", lambda: self._jobs.erase_step_results(payload.owner.group_id, [payload.memory_id]))
        return JobOutcome()

    async def wait(self, job_id: str, seconds: float) -> Job:
        """Return a job once it has ended, or its state after `seconds`."""
        return await self._jobs.wait(job_id, seconds)
