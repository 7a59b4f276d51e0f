"""Maintenance as durable jobs: one step a task, over the users of a tenant or of all."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from functools import partial
from typing import Any

from graphmem.consolidation.maintenance_tasks import MaintenanceTasks, OldSession
from graphmem.domain.identity import Owner
from graphmem.domain.job import JobOutcome
from graphmem.domain.maintenance import MaintenanceTask
from graphmem.jobs import Steps

MAINTENANCE_JOB = "maintain"
COMPRESSION_WITHOUT_MODEL_REASON = "no language model is configured: old sessions keep their messages"

Enqueue = Callable[[str, str, dict[str, Any], str], Awaitable[Any]]
"""Queue a job: kind, partition, payload, job id."""

PruneUser = Callable[[Owner], Awaitable[Mapping[str, int]]]
PruneAll = Callable[[], Awaitable[int]]


class MaintenanceJob:
    """Handles maintenance jobs; `prune_user` and `prune_all` are what other rooms drop of a user and of everybody.

    Sessions are summed up by jobs of `summary_kind`, which take tenant, user_id, session_id and `through`; it is None
    without a model.
    """

    def __init__(
        self,
        tasks: MaintenanceTasks,
        enqueue: Enqueue,
        *,
        summary_kind: str | None,
        prune_user: Sequence[PruneUser] = (),
        prune_all: Mapping[str, PruneAll] | None = None,
    ) -> None:
        self._tasks = tasks
        self._enqueue = enqueue
        self._summary_kind = summary_kind
        self._prune_user = prune_user
        self.prune_all = {"images": tasks.prune_before_images, **(prune_all or {})}

    async def handle(self, payload: dict[str, Any], steps: Steps) -> JobOutcome:
        """Handle a job of kind `maintain`: tasks for a tenant or everybody, or one session's old messages."""
        if "session_id" in payload:
            archived = await steps.run("archive", partial(self._archive, payload))
            return JobOutcome(actions=[{"task": "archive", "messages": archived}])
        tenant, at = payload.get("tenant"), str(payload.get("scheduled_at") or steps.job_id)
        doing = {"decay": self._decay, "expire": self._expire, "prune": self._prune}
        done = []
        for task in payload.get("tasks") or MaintenanceTask:
            act = partial(self._compress, tenant, at) if task == "compress" else partial(doing[task], tenant)
            done.append({"task": task, **await steps.run(task, act)})
        return JobOutcome(actions=done)

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
                total.update(await prune(owner))
        for name, prune_all in self.prune_all.items():
            total[name] += await prune_all()
        return dict(total)

    async def _compress(self, tenant: str | None, at: str) -> dict[str, Any]:
        """Queue the summaries of old sessions, and after each the end of the messages it stands for."""
        done: Counter[str] = Counter()
        async for owner in self._owners(tenant):
            for session in await self._tasks.list_old_sessions(owner):
                done[await self._queue_compression(owner, session, at)] += 1
        counts: dict[str, Any] = dict(done)
        if done["without_summary"]:
            counts["reason"] = COMPRESSION_WITHOUT_MODEL_REASON
        return counts

    async def _queue_compression(self, owner: Owner, session: OldSession, at: str) -> str:
        if not session.is_summarized and self._summary_kind is None:
            return "without_summary"
        payload: dict[str, Any] = {"tenant": owner.tenant, "user_id": owner.user_id}
        payload |= {"session_id": session.session_id, "through": session.through}
        name = f"{owner.group_id}:{session.session_id}:{session.through}:{at}"
        if not session.is_summarized and self._summary_kind:
            await self._enqueue(self._summary_kind, owner.group_id, payload, f"summary {name}")
        # In the user's partition it runs after the summary, and finds nothing to archive if that failed.
        await self._enqueue(MAINTENANCE_JOB, owner.group_id, payload, f"archive {name}")
        return "sessions"

    async def _archive(self, payload: dict[str, Any]) -> int:
        owner = Owner(payload["tenant"], payload["user_id"])
        return await self._tasks.archive(owner, payload["session_id"], payload["through"])

    async def _owners(self, tenant: str | None) -> AsyncIterator[Owner]:
        after = ""
        while owners := await self._tasks.list_owners(tenant, after):
            for owner in owners:
                yield owner
            after = owners[-1].group_id
