"""Erasing a user, and erasing one memory, from every place that stores their data."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from graphmem.domain.erasure import ErasureResult
from graphmem.domain.identity import Owner
from graphmem.domain.job import JobOutcome
from graphmem.errors import NotFound
from graphmem.jobs import JobKind, JobRunner, Steps, UserJobPayload
from graphmem.store.context import ContextStore
from graphmem.store.driver import Graph, Transaction
from graphmem.store.facts import FactStore
from graphmem.store.forget import ForgetStore
from graphmem.store.idempotency import IdempotencyStore
from graphmem.store.runs import RunStore
from graphmem.text.normalising import normalise


class ErasurePayload(UserJobPayload):
    """An erased memory."""

    memory_id: str


ERASURE_JOB = JobKind("erasure", ErasurePayload)
"""Erases a memory from the records of the jobs that were unfinished when it was erased."""


class UserCache(Protocol):
    """Data of users in the memory of this process."""

    async def discard_user(self, owner: Owner) -> None:
        """Remove everything of a user."""


@dataclass(frozen=True, slots=True)
class UserData:
    """Every place that stores data of users; a new one is added here."""

    jobs: JobRunner
    """Payloads, step results and outcomes of jobs."""

    graph: ForgetStore
    """Facts, entities, messages, sessions, context items, learned preferences and patterns, the user node."""

    facts: FactStore
    """The versions of one memory, and the references to it."""

    runs: RunStore
    """Consolidation runs, with their proposals and before-images."""

    idempotency: IdempotencyStore
    """Stored responses to requests with an Idempotency-Key."""

    context: ContextStore
    """Goal patterns, which quote memories."""

    reinforcement: UserCache
    """Retrievals that are counted and not yet written."""

    lookup: UserCache
    """Cached entity names, lookup answers and core memories."""

    context_snapshots: UserCache
    """Cached parts of contexts."""


class ForgetService:
    """Erases users and single memories everywhere."""

    def __init__(self, graph: Graph, data: UserData) -> None:
        self._graph = graph
        self._data = data

    async def forget(self, owner: Owner) -> ErasureResult:
        """Erase everything of a user, then count what is left.

        Raises JobStoreUnavailable, before the graph is changed, when a job of the user does not stop.
        """
        jobs = await self._data.jobs.forget(owner.group_id)
        await self._data.reinforcement.discard_user(owner)

        async def work(transaction: Transaction) -> dict[str, int]:
            return {
                **await self._data.idempotency.erase_user(transaction, owner),
                **await self._data.runs.erase_user(transaction, owner),
                **await self._data.graph.erase_user(transaction, owner),
            }

        erased = await self._graph.write(work)
        await self._discard_cached(owner)
        return ErasureResult(erased={**erased, "Job": jobs}, residue=await self._data.graph.count_residue(owner))

    async def erase_memory(self, owner: Owner, memory_id: str) -> int:
        """Erase every version of a memory everywhere; return how many there were.

        Raises NotFound for an unknown memory, and JobStoreUnavailable before the graph is changed.
        """
        versions = await self._data.facts.get_history(owner, memory_id)
        owned = owner if versions[0].user_id else owner.tenant_global
        texts = list({version.content for version in versions})
        await self._erase_from_jobs(owned, memory_id, texts)
        await self._data.context.delete_goal_patterns(owned, [normalise(text) for text in texts])

        async def work(transaction: Transaction) -> int:
            erased = await self._data.facts.erase_memory(transaction, owned, memory_id)
            if not erased:
                raise NotFound("There is no such memory.")
            await self._data.runs.erase_memory(transaction, owned, memory_id)
            await self._data.idempotency.erase_memory(transaction, owned, memory_id)
            return erased

        erased = await self._graph.write(work)
        await self._discard_cached(owned)
        return erased

    async def _discard_cached(self, owner: Owner) -> None:
        await self._data.lookup.discard_user(owner)
        await self._data.context_snapshots.discard_user(owner)

    async def _erase_from_jobs(self, owner: Owner, memory_id: str, texts: Sequence[str]) -> None:
        """Erase what finished jobs recorded of a memory; unfinished ones are erased by a job that runs after them."""
        await self._data.jobs.erase_step_results(owner.group_id, [memory_id, *texts])
        if await self._data.jobs.is_busy(owner.group_id):
            payload = ErasurePayload(tenant=owner.tenant, user_id=owner.user_id, memory_id=memory_id)
            await self._data.jobs.enqueue(ERASURE_JOB, payload)

    async def handle_erasure_job(self, payload: ErasurePayload, steps: Steps) -> JobOutcome:
        """Handle a job of kind `erasure`; in its user's queue it runs after the jobs that were unfinished."""
        jobs = self._data.jobs
        await steps.run("erase", lambda: jobs.erase_step_results(payload.owner.group_id, [payload.memory_id]))
        return JobOutcome()
