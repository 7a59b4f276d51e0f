"""Durable jobs of maintenance: tasks over all users, one step each, and the archiving of single sessions."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import Any

from pydantic import ConfigDict

from graphmem.consolidation.maintenance_domain import MaintenanceTask
from graphmem.consolidation.maintenance_tasks import MaintenanceTasks, OldSession
from graphmem.jobs.job import JobAction, JobOutcome
from graphmem.jobs.kinds import (
    SYSTEM_PARTITION,
    JobKind,
    ScheduledPayload,
    UserJobPayload,
)
from graphmem.jobs.runner import JobRunner
from graphmem.jobs.steps import Steps
from graphmem.runtime.errors import NotFound, UserBeingForgotten
from graphmem.tenants.owners import Owner
from graphmem.tenants.users import UserStore

MAINTENANCE_SCHEDULE = "maintenance"
"""Name of the nightly schedule."""

COMPRESSION_WITHOUT_MODEL_REASON = "no language model is configured: old sessions keep their messages"
"""Reason of a compression that left sessions without a summary alone."""

QueueSummary = Callable[[Owner, str, int, str], Awaitable[object]]
"""Queues the summary of a session: owner, session id, position of the last message to summarize, job id."""

PruneUser = Callable[[Owner], Awaitable[Mapping[str, int]]]
"""Deletes what has expired of one user; returns counts by name."""

PruneTenant = Callable[[str | None], Awaitable[int]]
"""Deletes what has expired of a tenant, or of all tenants; returns a count."""


class MaintenancePayload(ScheduledPayload):
    """Tasks for the users of a tenant, or of all tenants; without tasks, all tasks."""

    tenant: str | None = None
    tasks: tuple[MaintenanceTask, ...] = ()

    @property
    def partition(self) -> str:
        """The partition of the tenant's maintenance, or of the schedule."""
        schedule = f"{SYSTEM_PARTITION}{MAINTENANCE_SCHEDULE}"
        return schedule if self.tenant is None else f"{schedule}:{self.tenant}"


class ArchivePayload(UserJobPayload):
    """A session whose messages up to the position `through` are to be archived."""

    session_id: str
    through: int


MAINTENANCE_JOB = JobKind("maintain", MaintenancePayload)
"""Does maintenance tasks for the users of a tenant, or of all tenants."""

ARCHIVE_JOB = JobKind("archive", ArchivePayload)
"""Archives the messages of a session that its summary covers."""


class TaskAction(JobAction):
    """The result of one task: counts by name, and the reason if it left something undone."""

    model_config = ConfigDict(extra="allow")

    task: str


class MaintenanceJob:
    """Handles the jobs of maintenance.

    `prune_user` and `prune_tenant` delete what other packages store. `queue_summary` queues the jobs that summarize old
    sessions; it is None without a model.
    """

    def __init__(
        self,
        tasks: MaintenanceTasks,
        users: UserStore,
        jobs: JobRunner,
        *,
        queue_summary: QueueSummary | None,
        prune_user: Sequence[PruneUser] = (),
        prune_tenant: Mapping[str, PruneTenant] | None = None,
    ) -> None:
        self._tasks = tasks
        self._users = users
        self._jobs = jobs
        self._queue_summary = queue_summary
        self._prune_user = prune_user
        self.prune_tenant = prune_tenant or {}

    async def handle(self, payload: MaintenancePayload, steps: Steps) -> JobOutcome:
        """Handle a job of kind `maintain`."""
        tenant, at = payload.tenant, payload.scheduled_at or steps.job_id
        works: dict[MaintenanceTask, Callable[[], Awaitable[dict[str, Any]]]] = {
            MaintenanceTask.DECAY: partial(self._decay, tenant),
            MaintenanceTask.COMPRESS: partial(self._compress, tenant, at),
            MaintenanceTask.PRUNE: partial(self._prune, tenant),
            MaintenanceTask.EXPIRE: partial(self._expire, tenant),
        }
        return JobOutcome(
            actions=[
                TaskAction(task=task.value, **await steps.run(task.value, works[task]))
                for task in payload.tasks or MaintenanceTask
            ]
        )

    async def handle_archive(self, payload: ArchivePayload, steps: Steps) -> JobOutcome:
        """Handle a job of kind `archive`."""
        archived = await steps.run("archive", partial(self._archive, payload))
        return JobOutcome(actions=[TaskAction(task="archive", messages=archived)])

    async def _decay(self, tenant: str | None) -> dict[str, int]:
        return {"faded": sum([await self._tasks.decay(owner) async for owner in self._owners(tenant)])}

    async def _expire(self, tenant: str | None) -> dict[str, int]:
        total: Counter[str] = Counter()
        async for owner in self._owners(tenant):
            total.update(await self._tasks.expire(owner))
        return dict(total)

    async def _prune(self, tenant: str | None) -> dict[str, int]:
        total: Counter[str] = Counter()
        async for owner in self._owners(tenant):
            total.update(await self._tasks.prune(owner))
            for prune in self._prune_user:
                # The user may have been forgotten since the users were listed.
                with suppress(NotFound, UserBeingForgotten):
                    total.update(await prune(owner))
        for name, prune_tenant in self.prune_tenant.items():
            total[name] += await prune_tenant(tenant)
        return dict(total)

    async def _compress(self, tenant: str | None, at: str) -> dict[str, Any]:
        """Queue the summaries of old sessions, and behind each of them a job that archives its messages."""
        counts: Counter[str] = Counter()
        async for owner in self._owners(tenant):
            for session in await self._tasks.list_old_sessions(owner):
                counts[await self._queue_compression(owner, session, at)] += 1
        if counts["without_summary"]:
            return {**counts, "reason": COMPRESSION_WITHOUT_MODEL_REASON}
        return dict(counts)

    async def _queue_compression(self, owner: Owner, session: OldSession, at: str) -> str:
        if not session.is_summarized and self._queue_summary is None:
            return "without_summary"
        name = f"{owner.group_id}:{session.session_id}:{session.through}:{at}"
        if not session.is_summarized and self._queue_summary:
            await self._queue_summary(owner, session.session_id, session.through, f"summary {name}")
        # It is in the same partition, so it runs after the summary; if that failed, it archives nothing.
        payload = ArchivePayload(
            tenant=owner.tenant, user_id=owner.user_id, session_id=session.session_id, through=session.through
        )
        await self._jobs.enqueue(ARCHIVE_JOB, payload, f"archive {name}")
        return "sessions"

    async def _archive(self, payload: ArchivePayload) -> int:
        return await self._tasks.archive(payload.owner, payload.session_id, payload.through)

    async def _owners(self, tenant: str | None) -> AsyncIterator[Owner]:
        after = ""
        while owners := await self._users.list_owners(tenant, after=after):
            for owner in owners:
                yield owner
            after = owners[-1].group_id
