"""Maintenance over all users, as durable jobs: decay of importance, expiry, archiving, pruning of images."""

from __future__ import annotations

import uuid
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from typing import Any

from pydantic import ConfigDict

from graphmem.consolidation.models import MaintenanceTask
from graphmem.consolidation.run_store import RunStore
from graphmem.jobs.job import JobAction, JobOutcome
from graphmem.jobs.kinds import (
    SYSTEM_PARTITION,
    JobKind,
    ScheduledPayload,
    Steps,
    UserJobPayload,
)
from graphmem.jobs.runner import JobRunner
from graphmem.memories.fact import IMPORTANCE_PERIOD_DAYS, Fact, decayed_importance
from graphmem.memories.fact_store import FactStore
from graphmem.memories.ledger import Ledger
from graphmem.memories.memory import CORE_IMPORTANCE
from graphmem.neo4j.driver import Graph, Transaction
from graphmem.neo4j.driver_values import Row
from graphmem.neo4j.placed_graph import use_tenant
from graphmem.runtime.errors import Conflict, NotFound, UserBeingForgotten
from graphmem.runtime.metrics import COMPRESSION_RATIO
from graphmem.runtime.times import Clock
from graphmem.tenants.owners import Owner
from graphmem.tenants.users import UserStore

FEEDBACK_REVIEW_DAYS = 7
"""Days after which consolidation considers feedback again."""

MIN_OLD_MESSAGES = 10
"""Number of old messages above which a session is compressed; the default of a setting."""


@dataclass(frozen=True, slots=True)
class OldSession:
    """A session whose messages up to position `through` are old; `is_summarized` if its summary covers them."""

    session_id: str
    through: int
    message_count: int
    is_summarized: bool


class MaintenanceTasks:
    """The maintenance tasks; each is idempotent."""

    def __init__(
        self,
        graph: Graph,
        facts: FactStore,
        runs: RunStore,
        clock: Clock,
        *,
        archive_days: int,
        compress_days: int,
        rollback_days: int,
        compress_messages: int = MIN_OLD_MESSAGES,
    ) -> None:
        self._graph = graph
        self._facts = facts
        self._runs = runs
        self._clock = clock
        self._archive_after = timedelta(days=archive_days)
        self._compress_after = timedelta(days=compress_days)
        self._compress_messages = compress_messages
        self._rollback_for = timedelta(days=rollback_days)

    async def decay(self, owner: Owner) -> int:
        """Lower the importance of memories that nobody has read for 30 days; return their number."""
        now = self._clock()
        rows = await self._graph.fetch(
            "maintenance.list_decaying_facts",
            group_id=owner.group_id,
            now=now,
            before=now - timedelta(days=IMPORTANCE_PERIOD_DAYS),
            core_importance=CORE_IMPORTANCE,
        )
        decayed = []
        for row in rows:
            periods = (now - row["since"]).days // IMPORTANCE_PERIOD_DAYS
            decayed_at = row["since"] + timedelta(days=IMPORTANCE_PERIOD_DAYS * periods)
            importance = decayed_importance(row["importance"], periods)
            decayed.append({"uuid": row["uuid"], "importance": importance, "decayed_at": decayed_at})
        if decayed:
            await self._write_locked(owner, "maintenance.set_importance", rows=decayed)
        return len(decayed)

    async def expire(self, owner: Owner) -> dict[str, int]:
        """Archive memories whose time is over, and offer old feedback to the next consolidation."""
        now = self._clock()
        rows = await self._graph.fetch("maintenance.list_expired_memories", group_id=owner.group_id, now=now)
        expired = sum([await self._expire_memory(owner, row["memory_id"]) for row in rows])
        before = now - timedelta(days=FEEDBACK_REVIEW_DAYS)
        reviewed = await self._graph.execute(
            "maintenance.requeue_feedback", group_id=owner.group_id, now=now, before=before
        )
        return {"expired": expired, "feedback_to_review": int(reviewed[0]["reviewed"])}

    async def prune(self, owner: Owner) -> dict[str, int]:
        """Archive idle sessions, and delete the recorded changes of runs that can no longer be rolled back."""
        now = self._clock()
        rows = await self._graph.execute(
            "maintenance.archive_idle_sessions", group_id=owner.group_id, before=now - self._archive_after, now=now
        )
        images = await self._runs.delete_expired_changes(owner, now - self._rollback_for)
        return {"sessions_archived": int(rows[0]["archived"]), "images": images}

    async def list_old_sessions(self, owner: Owner) -> list[OldSession]:
        """Return the sessions that begin with many old, fully extracted messages."""
        rows = await self._graph.fetch(
            "maintenance.list_sessions_to_archive",
            group_id=owner.group_id,
            before=self._compression_cutoff(),
            max_messages=self._compress_messages,
        )
        return [
            OldSession(row["session_id"], row["through"], row["old"], row["summarized_through"] >= row["through"])
            for row in rows
        ]

    async def archive(self, owner: Owner, session_id: str, through: int) -> int:
        """Erase the text of old messages up to `through` that a summary covers; return their number.

        Without such a summary, nothing is erased.
        """
        rows = await self._write_locked(
            owner,
            "maintenance.archive_messages",
            removes=True,
            session_id=session_id,
            through=through,
            before=self._compression_cutoff(),
            archive_id=str(uuid.uuid4()),
            now=self._clock(),
        )
        if not rows or not rows[0]["archived"]:
            return 0
        COMPRESSION_RATIO.set(rows[0]["kept"] / max(1, rows[0]["characters"]))
        return int(rows[0]["archived"])

    async def _expire_memory(self, owner: Owner, memory_id: str) -> bool:
        def act(ledger: Ledger) -> Fact:
            return ledger.archive(memory_id, "expired")

        try:
            await self._facts.update_memory(owner, memory_id, act, actor="maintenance")
        except (NotFound, Conflict):
            return False
        return True

    def _compression_cutoff(self) -> datetime:
        return self._clock() - self._compress_after

    async def _write_locked(
        self, owner: Owner, query: str, *, removes: bool = False, **parameters: object
    ) -> list[Row]:
        """Run a query under the user's lock; if the user has since been forgotten, return no rows."""

        async def work(transaction: Transaction) -> list[Row]:
            await self._facts.lock_user(transaction, owner, removes=removes)
            return await transaction.run(query, group_id=owner.group_id, **parameters)

        try:
            return await self._graph.write(work)
        except (NotFound, UserBeingForgotten):
            return []


MAINTENANCE_SCHEDULE = "maintenance"
"""Name of the nightly schedule."""

COMPRESSION_WITHOUT_MODEL_REASON = "no language model is configured: old sessions keep their messages"
"""Reason for leaving sessions without a summary uncompressed."""

QueueSummary = Callable[[Owner, str, int, str], Awaitable[object]]
"""Queues the summary of a session: owner, session id, position of the last message to summarize, job id."""

PruneUser = Callable[[Owner], Awaitable[Mapping[str, int]]]
"""Deletes a user's expired data; returns counts by name."""

PruneTenant = Callable[[str | None], Awaitable[int]]
"""Deletes expired data of a tenant, or of all tenants; returns a count."""


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
    """A session whose messages up to position `through` are to be archived."""

    session_id: str
    through: int


MAINTENANCE_JOB = JobKind("maintain", MaintenancePayload)
"""Runs maintenance tasks for the users of a tenant, or of all tenants."""

ARCHIVE_JOB = JobKind("archive", ArchivePayload)
"""Archives the messages of a session that its summary covers."""


class TaskAction(JobAction):
    """The result of one task: counts by name, and the reason if it skipped something."""

    model_config = ConfigDict(extra="allow")

    task: str


class MaintenanceJob:
    """Handles maintenance jobs.

    `prune_user` and `prune_tenant` delete data of other packages. `queue_summary` queues the jobs that summarize old
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
        """Queue the summaries of old sessions, each followed by a job that archives the messages."""
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
                with use_tenant(owner.tenant):
                    yield owner
            after = owners[-1].group_id
