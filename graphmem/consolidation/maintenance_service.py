"""Maintenance on demand and every night."""

from __future__ import annotations

from collections.abc import Sequence

from graphmem.consolidation.maintenance import MAINTENANCE_JOB, MAINTENANCE_SCHEDULE, MaintenancePayload
from graphmem.consolidation.maintenance_domain import MaintenanceResults, MaintenanceTask
from graphmem.jobs.job import JobStatus
from graphmem.jobs.job_waiting import JobWaiting
from graphmem.jobs.runner import JobRunner
from graphmem.runtime.errors import GraphmemError, JobStoreUnavailable
from graphmem.runtime.settings import Settings

WAIT_SECONDS = 900.0
"""How long a caller waits for maintenance, in seconds."""


class MaintenanceService:
    """Has a worker do maintenance tasks."""

    def __init__(self, jobs: JobRunner, waiting: JobWaiting) -> None:
        self._jobs = jobs
        self._waiting = waiting

    async def run(self, tenant: str, tasks: Sequence[MaintenanceTask]) -> MaintenanceResults:
        """Do the tasks for a tenant now and return the counts of each.

        Raises DatabaseUnavailable as soon as the database is silent, JobStoreUnavailable when no worker has done the
        tasks in time, and GraphmemError when they fail.
        """
        await self._waiting.check_database()
        job_id = await self._jobs.enqueue(MAINTENANCE_JOB, MaintenancePayload(tenant=tenant, tasks=tuple(tasks)))
        job = await self._waiting.wait(job_id, WAIT_SECONDS)
        if job.status is JobStatus.FAILED:
            raise GraphmemError(f"Maintenance failed: {job.error}")
        if not job.status.is_final:
            raise JobStoreUnavailable(
                f"Maintenance has not ended yet: check that a worker runs, then look at the job {job_id}."
            )
        return {
            MaintenanceTask(action["task"]): {name: value for name, value in action.items() if name != "task"}
            for action in job.actions
        }


async def schedule_maintenance(jobs: JobRunner, settings: Settings) -> None:
    """Schedule nightly maintenance in the configured time zone; without `nightly`, remove the schedule."""
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
