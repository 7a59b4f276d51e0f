"""Consolidation and maintenance: their jobs and schedules, and on-demand runs that are read and rolled back."""

from __future__ import annotations

import time
import uuid
from collections.abc import Sequence
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any
from zoneinfo import ZoneInfo

from croniter import CroniterBadCronError, croniter

from graphmem.consolidation.discovery import Discovery
from graphmem.consolidation.maintenance import MAINTENANCE_JOB, MAINTENANCE_SCHEDULE, MaintenancePayload
from graphmem.consolidation.models import (
    ConsolidationRun,
    MaintenanceResults,
    MaintenanceTask,
    Proposal,
    ReviewedProposal,
    RollbackPreview,
    RollbackResult,
    RunListQuery,
    RunPhase,
    RunStatus,
    RunTrigger,
    UserContradiction,
    parse_proposals,
)
from graphmem.consolidation.rollback import RunRollback
from graphmem.consolidation.run_executor import RunExecutor
from graphmem.consolidation.run_store import RunStore, RunUpdate
from graphmem.jobs.job import JobStatus
from graphmem.jobs.kinds import SYSTEM_PARTITION, JobKind, ScheduledPayload, UserJobPayload
from graphmem.jobs.runner import JobRunner, JobWaiting
from graphmem.neo4j.placed_graph import use_tenant
from graphmem.runtime.errors import (
    GraphmemError,
    InvalidInput,
    JobStoreUnavailable,
    NotFound,
    UserBeingForgotten,
)
from graphmem.runtime.paging import TIME_CURSOR, Page
from graphmem.runtime.settings import HOME_GRAPH, Settings
from graphmem.runtime.short_ids import complete_id
from graphmem.runtime.times import Clock
from graphmem.tenants.idempotency import IdempotentRequest
from graphmem.tenants.owners import Owner, make_owner

WAIT_SECONDS = 3600.0
"""Maximum time that a caller waits for a run, in seconds."""

NIGHT_SCHEDULE = "consolidation"
"""Name of the schedule of nightly runs."""


class ConsolidationPayload(UserJobPayload):
    """One run of one user; its analysis and execution wait for their scheduled times, if any."""

    run_id: str
    analyse_from: datetime | None = None
    execute_from: datetime | None = None


class NightPayload(ScheduledPayload):
    """The nightly runs of a tenant, or of all tenants; `analysis` and `execution` are the crons of these stages."""

    tenant: str | None = None
    analysis: str
    execution: str
    timezone: str

    @property
    def partition(self) -> str:
        """The partition of the schedule."""
        return f"{SYSTEM_PARTITION}{NIGHT_SCHEDULE}"

    def stage_times(self, begins: datetime) -> tuple[datetime, datetime]:
        """Return the times of analysis and execution for a night that begins at `begins`."""
        analyse_from = next_tick(self.analysis, self.timezone, begins)
        return analyse_from, next_tick(self.execution, self.timezone, analyse_from)


CONSOLIDATION_JOB = JobKind("consolidate", ConsolidationPayload)
"""Executes one run of one user."""

NIGHT_JOB = JobKind("consolidation_night", NightPayload)
"""Queues the nightly runs of all users, as jobs of kind `consolidate`."""


def next_tick(cron: str, timezone: str, after: datetime) -> datetime:
    """Return the first time after `after` that matches a cron in an IANA zone; raise InvalidInput if it is invalid."""
    try:
        tick: datetime = croniter(cron, after.astimezone(ZoneInfo(timezone))).get_next(datetime)
    except (CroniterBadCronError, KeyError, ValueError) as error:
        raise InvalidInput(f"{cron!r} in {timezone!r} is not a cron expression: {error}.") from error
    return tick


class ConsolidationService:
    """Starts, lists and rolls back consolidation runs.

    A user's run is a job in the user's partition, with the run's id as the job id.
    """

    def __init__(
        self,
        discovery: Discovery,
        runs: RunStore,
        executor: RunExecutor,
        rollbacks: RunRollback,
        jobs: JobRunner,
        waiting: JobWaiting,
        clock: Clock,
    ) -> None:
        self._discovery = discovery
        self._runs = runs
        self._executor = executor
        self._rollbacks = rollbacks
        self._jobs = jobs
        self._waiting = waiting
        self._clock = clock

    async def start(
        self,
        tenant: str,
        *,
        user_id: str | None = None,
        space: str | None = None,
        dry_run: bool = False,
        wait: bool = False,
        proposals: Sequence[Proposal | dict[str, Any]] | None = None,
        actor: str | None = None,
        request: IdempotentRequest | None = None,
    ) -> ConsolidationRun | str:
        """Queue a run of one user, of one space, or of all with memories to analyse, and return its id.

        A run with `proposals`, which a person curated for one user or space, skips discovery and analysis. With `wait`,
        return the finished run. A repetition of `request` starts no other run. Raises InvalidInput for invalid
        proposals and for proposals to all users, and DatabaseUnavailable as soon as the database stops responding.
        """
        owner = _find_owner(tenant, user_id, space)
        if proposals is not None and owner is None:
            raise InvalidInput("Curated proposals need a user_id or a space.")
        started = await self._runs.find_started(request)
        if owner is None:
            run_id, jobs = await self._start_all(tenant, dry_run, actor, started, request)
        elif started is not None:
            run_id, jobs = started, [started]
            await self._queue_again(owner, run_id)
        else:
            curated = None if proposals is None else await self._prepare_proposals(owner, proposals, actor)
            run_id = await self._start_one(owner, dry_run, actor, curated, None, request)
            jobs = [run_id]
        if not wait:
            return run_id
        deadline = time.monotonic() + WAIT_SECONDS
        for job_id in jobs:
            await self._waiting.wait(job_id, max(0.0, deadline - time.monotonic()))
        return await self.get(tenant, run_id)

    async def page(self, tenant: str, query: RunListQuery) -> Page[ConsolidationRun]:
        """Return a page of runs without their proposals and changes, newest first."""
        owner = _find_owner(tenant, query.user_id, query.space)
        after = TIME_CURSOR.decode(query.cursor) if query.cursor else None
        runs = await self._runs.list_page(tenant, owner, after, query.limit + 1)
        return TIME_CURSOR.make_page(runs, query.limit, lambda run: (run.created_at, run.id))

    async def complete_id(self, tenant: str, given: str) -> str:
        """Return the id of the run that begins with `given`; raise InvalidInput if several do."""
        return complete_id(given, await self._runs.find_ids(tenant, given))

    async def get(self, tenant: str, run_id: str) -> ConsolidationRun:
        """Return a run with its proposals and changes; raise NotFound for a run of another tenant.

        The reason of an unfinished run is what its job waits for, if anything.
        """
        run = await self._runs.get(tenant, run_id)
        if run.status.is_final or run.reason is not None:
            return run
        job = await self._jobs.find(run_id)
        return run if job is None else run.model_copy(update={"reason": job.reason})

    async def end_stranded(self) -> int:
        """End unfinished runs whose job has failed, and return their number.

        A job that fails because the database is unavailable cannot record that itself.
        """
        ended = 0
        for run_id, tenant in await self._runs.list_unfinished():
            job = await self._jobs.find(run_id)
            if job is not None and job.status is JobStatus.FAILED:
                with use_tenant(tenant):
                    await self._runs.end_failed(tenant, run_id, job.error or "its job failed", self._clock())
                ended += 1
        return ended

    async def rollback(
        self, tenant: str, run_id: str, *, force: bool = False, actor: str | None = None
    ) -> RollbackResult:
        """Roll back a run.

        Raises NotFound; Gone past the retention; Conflict if there is nothing to roll back or, without `force`, if
        later writes changed the same elements, which the errors then list.
        """
        return await self._rollbacks.roll_back(tenant, run_id, force=force, actor=actor)

    async def preview_rollback(self, tenant: str, run_id: str) -> RollbackPreview:
        """Return what the rollback of a run would do, changing nothing.

        Raises NotFound; Gone past the retention; Conflict if there is nothing to roll back.
        """
        return await self._rollbacks.preview(tenant, run_id)

    async def list_contradictions(self, owner: Owner) -> list[UserContradiction]:
        """Return the distinct contradictions that runs reported for a user, the latest first."""
        return await self._runs.list_contradictions(owner)

    async def _prepare_proposals(
        self, owner: Owner, proposals: Sequence[Proposal | dict[str, Any]], actor: str | None
    ) -> list[ReviewedProposal]:
        plain = [proposal if isinstance(proposal, dict) else proposal.model_dump() for proposal in proposals]
        return await self._executor.attach_versions(owner, parse_proposals(plain), actor)

    async def _start_one(
        self,
        owner: Owner,
        dry_run: bool,
        actor: str | None,
        curated: list[ReviewedProposal] | None,
        parent_run_id: str | None,
        request: IdempotentRequest | None = None,
    ) -> str:
        run_id = str(uuid.uuid4())
        await self._runs.create(
            run_id,
            owner.tenant,
            owner,
            RunTrigger.ON_DEMAND if curated is None else RunTrigger.CURATED,
            self._clock(),
            dry_run=dry_run,
            actor=actor,
            proposals=curated or (),
            phase=RunPhase.NEW if curated is None else RunPhase.DISCOVERED,
            parent_run_id=parent_run_id,
            request=request,
        )
        await self._queue(owner, run_id)
        return run_id

    async def _queue(self, owner: Owner, run_id: str) -> None:
        """Queue the job of a run unless it is already queued."""
        payload = ConsolidationPayload(run_id=run_id, tenant=owner.tenant, user_id=owner.user_id)
        try:
            await self._jobs.enqueue(CONSOLIDATION_JOB, payload, run_id)
        except JobStoreUnavailable as error:
            await self._runs.end_failed(owner.tenant, run_id, error.detail, self._clock())
            raise

    async def _queue_again(self, owner: Owner, run_id: str) -> None:
        """Queue the job of a run that an interrupted request had written."""
        run = await self._runs.get(owner.tenant, run_id, with_changes=False)
        if run.status in (RunStatus.QUEUED, RunStatus.FAILED) and await self._jobs.find(run_id) is None:
            await self._runs.update(run_id, RunUpdate(status=RunStatus.QUEUED, reason=None, finished_at=None))
            await self._queue(owner, run_id)

    async def _start_all(
        self, tenant: str, dry_run: bool, actor: str | None, started: str | None, request: IdempotentRequest | None
    ) -> tuple[str, list[str]]:
        """Start a run over all users, or continue the one a request has `started`; also return its parts' ids."""
        now = self._clock()
        run_id = started or str(uuid.uuid4())
        parts: dict[Owner, str] = {}
        if started is None:
            await self._runs.create(
                run_id, tenant, None, RunTrigger.ON_DEMAND, now, dry_run=dry_run, actor=actor, request=request
            )
        else:
            parts = {owner: part_id for part_id, owner in await self._runs.list_user_runs(tenant, run_id)}
            for owner, part_id in parts.items():
                await self._queue_again(owner, part_id)
            if (await self._runs.get(tenant, run_id, with_changes=False)).phase is RunPhase.DONE:
                return run_id, [*parts.values()]
        for owner in await self._discovery.find_owners(tenant, now):
            with suppress(NotFound, UserBeingForgotten):
                parts[owner] = parts.get(owner) or await self._start_one(owner, dry_run, actor, None, run_id)
        # The run over all users does nothing itself: readers see the status of its parts.
        await self._runs.update(run_id, RunUpdate(status=RunStatus.SUCCEEDED, phase=RunPhase.DONE, finished_at=now))
        return run_id, [*parts.values()]


async def schedule_nightly_consolidation(jobs: JobRunner, settings: Settings, graph: str = HOME_GRAPH) -> None:
    """Schedule the nightly runs of a graph in the configured time zone; without `nightly`, remove the schedule."""
    name = schedule_of_graph(NIGHT_SCHEDULE, graph)
    if not settings.nightly:
        await jobs.unschedule(name)
        return
    payload = NightPayload(
        graph=graph,
        analysis=settings.consolidation_analysis,
        execution=settings.consolidation_execution,
        timezone=settings.timezone,
    )
    payload.stage_times(datetime.now(UTC))  # raises for an invalid cron
    await jobs.schedule(name, settings.consolidation_discovery, settings.timezone, NIGHT_JOB, payload)


MAINTENANCE_WAIT_SECONDS = 900.0
"""Maximum time that a caller waits for maintenance, in seconds."""


class MaintenanceService:
    """Lets a worker run maintenance tasks."""

    def __init__(self, jobs: JobRunner, waiting: JobWaiting) -> None:
        self._jobs = jobs
        self._waiting = waiting

    async def run(self, tenant: str, tasks: Sequence[MaintenanceTask]) -> MaintenanceResults:
        """Run the tasks for a tenant now and return the counts of each.

        Raises DatabaseUnavailable as soon as the database stops responding, JobStoreUnavailable if no worker has
        finished the tasks in time, and GraphmemError if they fail.
        """
        await self._waiting.check_database()
        job_id = await self._jobs.enqueue(MAINTENANCE_JOB, MaintenancePayload(tenant=tenant, tasks=tuple(tasks)))
        job = await self._waiting.wait(job_id, MAINTENANCE_WAIT_SECONDS)
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


async def schedule_maintenance(jobs: JobRunner, settings: Settings, graph: str = HOME_GRAPH) -> None:
    """Schedule nightly maintenance of a graph in the configured time zone; without `nightly`, remove the schedule."""
    name = schedule_of_graph(MAINTENANCE_SCHEDULE, graph)
    if settings.nightly:
        payload = MaintenancePayload(graph=graph)
        await jobs.schedule(name, settings.maintenance_schedule, settings.timezone, MAINTENANCE_JOB, payload)
    else:
        await jobs.unschedule(name)


def schedule_of_graph(name: str, graph: str) -> str:
    """Return the name of a schedule for the tenants of a graph."""
    return name if graph == HOME_GRAPH else f"{name}@{graph}"


def _find_owner(tenant: str, user_id: str | None, space: str | None) -> Owner | None:
    """Return the user or the space that a request names, or None for neither; raise InvalidInput for both."""
    if user_id is not None and space is not None:
        raise InvalidInput("Name a user or a space, not both.")
    if space is not None:
        return Owner.of_space(tenant, space)
    return None if user_id is None else make_owner(tenant, user_id)
