"""Erasure of what jobs recorded of an erased memory."""

from __future__ import annotations

from collections.abc import Sequence

from graphmem.domain.identity import Owner
from graphmem.domain.job import JobOutcome
from graphmem.jobs.kinds import JobKind, UserJobPayload
from graphmem.jobs.runner import JobRunner
from graphmem.jobs.steps import Steps


class ErasurePayload(UserJobPayload):
    """An erased memory."""

    memory_id: str


ERASURE_JOB = JobKind("erasure", ErasurePayload)
"""Erases what jobs recorded of an erased memory that were unfinished when it was erased."""


class MemoryTraceEraser:
    """Erases the results of job steps that contain a memory's id or text."""

    def __init__(self, jobs: JobRunner) -> None:
        self._jobs = jobs

    async def erase(self, owner: Owner, memory_id: str, texts: Sequence[str]) -> None:
        """Erase the traces in finished jobs now, and queue a job that erases those in the unfinished ones."""
        await self._jobs.erase_step_results(owner.group_id, [memory_id, *texts])
        if await self._jobs.is_busy(owner.group_id):
            payload = ErasurePayload(tenant=owner.tenant, user_id=owner.user_id, memory_id=memory_id)
            await self._jobs.enqueue(ERASURE_JOB, payload)

    async def handle(self, payload: ErasurePayload, steps: Steps) -> JobOutcome:
        """Handle a job of kind `erasure`; in its user's partition it runs after the jobs that were unfinished."""
        await steps.run("erase", lambda: self._jobs.erase_step_results(payload.owner.group_id, [payload.memory_id]))
        return JobOutcome()
