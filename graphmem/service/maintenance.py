"""Maintenance, every night and on demand."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from graphmem.consolidation.maintenance_job import MAINTENANCE_JOB, MAINTENANCE_SCHEDULE, MaintenancePayload
from graphmem.domain.job import JobStatus
from graphmem.errors import GraphmemError, JobStoreUnavailable
from graphmem.jobs import JobRunner
from graphmem.settings import Settings

WAIT_SECONDS = 900.0


class MaintenanceService:
    """The verb of maintenance, done by a worker."""

    def __init__(self, jobs: JobRunner) -> None:
        self._jobs = jobs

    async def run(self, tenant: str, tasks: Sequence[str]) -> dict[str, Any]:
        """Do the tasks for a tenant now and return what each did; raise JobStoreUnavailable when no worker does them."""
        job_id = await self._jobs.enqueue(MAINTENANCE_JOB, MaintenancePayload(tenant=tenant, tasks=tuple(tasks)))
        job = await self._jobs.wait(job_id, WAIT_SECONDS)
        if job.status is JobStatus.FAILED:
            raise GraphmemError(f"Maintenance failed: {job.error}")
        if not job.status.is_final:
            raise JobStoreUnavailable(
                f"Maintenance is not done yet: see that a worker runs, then look at the job {job_id}."
            )
        return {
            action["task"]: {name: told for name, told in action.items() if name != "task"} for action in job.actions
        }


async def schedule_maintenance(jobs: JobRunner, settings: Settings) -> None:
    """Keep the nightly maintenance in the configured zone; without `nightly`, keep none."""
    if settings.nightly:
        await jobs.schedule(
            MAINTENANCE_SCHEDULE,
            settings.maintenance_schedule,
            settings.timezone,
            MAINTENANCE_JOB,
            MaintenancePayload(),
        )
    else:
        await jobs.unschedule(MAINTENANCE_SCHEDULE)
