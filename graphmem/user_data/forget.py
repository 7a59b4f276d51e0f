"""Erasing a user, and erasing one memory, from every place that stores their data."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Protocol

import structlog

from graphmem.consolidation.run_store import RunStore
from graphmem.context.context_uses import ContextUseStore
from graphmem.context.store import ContextStore
from graphmem.jobs.job import JobOutcome
from graphmem.jobs.kinds import JobKind, UserJobPayload
from graphmem.jobs.runner import JobRunner
from graphmem.jobs.steps import Steps
from graphmem.memories.fact_store import FactStore
from graphmem.neo4j.driver import Graph, Transaction
from graphmem.runtime.errors import NotFound, Unavailable
from graphmem.runtime.times import Clock
from graphmem.tenants.idempotency_store import IdempotencyStore
from graphmem.tenants.owners import Owner
from graphmem.text.normalising import normalise
from graphmem.user_data.erasure import ErasureReceipt, ErasureResult, hash_user
from graphmem.user_data.forget_store import Erasure, ErasureProgress, ForgetStore

INTERRUPTED_AFTER = timedelta(seconds=15)
"""Time without progress after which an erasure counts as interrupted."""

_log = structlog.get_logger(__name__)


class ErasurePayload(UserJobPayload):
    """An erased memory."""

    memory_id: str


ERASURE_JOB = JobKind("erasure", ErasurePayload)
"""Erases a memory from the records of the jobs that were unfinished when it was erased."""


class UserCache(Protocol):
    """Data of users in the memory of this process."""

    async def discard_user(self, owner: Owner) -> None:
        """Remove everything of a user."""

    async def count_user(self, owner: Owner) -> int:
        """Return how many entries there are of a user."""


@dataclass(frozen=True, slots=True)
class UserData:
    """Every place that stores data of users; a new one is added here."""

    jobs: JobRunner
    """Payloads, step results and outcomes of jobs."""

    graph: ForgetStore
    """Everything of a user in the graph, as the fragment `elements_of_user` lists it, and the user's own node."""

    facts: FactStore
    """The versions of one memory, and the references to it."""

    runs: RunStore
    """One memory in consolidation runs, their proposals and before-images."""

    context_uses: ContextUseStore
    """One memory in the contexts that held it."""

    idempotency: IdempotencyStore
    """One memory in stored responses to requests with an Idempotency-Key."""

    context: ContextStore
    """Goal patterns, which quote memories."""

    reinforcement: UserCache
    """Retrievals that are counted and not yet written."""

    lookup: UserCache
    """Cached entity names, lookup answers and core memories."""

    vectors: UserCache
    """Cached vectors of facts and messages."""

    context_snapshots: UserCache
    """Cached parts of contexts."""


class ForgetService:
    """Erases users and single memories everywhere."""

    def __init__(self, graph: Graph, data: UserData, clock: Clock, load_receipt_key: Callable[[], bytes]) -> None:
        self._graph = graph
        self._data = data
        self._clock = clock
        self._load_receipt_key = load_receipt_key

    async def forget(self, owner: Owner) -> ErasureResult:
        """Erase everything of a user, then count what is left, and return a signed receipt if that is nothing.

        From the first moment on, writes are refused and reads find nothing. When another call for the same user ends
        the erasure, that one has the receipt. Raises Unavailable when a dependency fails;
        the erasure has then begun, and a worker or another call continues it. Raises ConfigurationError, before
        anything is changed, when there is no key for the receipt.
        """
        receipt_key = self._load_receipt_key()
        erasure = await self._data.graph.begin(owner)
        try:
            progress, residue = await self._erase(owner, erasure)
        except Unavailable as error:
            raise Unavailable(
                f"{error.detail} The user is hidden and refuses writes already: a worker continues the erasure, or ask "
                "for it again.",
                retry_after=error.retry_after,
            ) from error
        erased = dict(progress.erased)
        if any(residue.values()) or not progress.has_ended:
            return ErasureResult(erased=erased, residue=sum(residue.values()))
        receipt = ErasureReceipt(
            user_hash=hash_user(owner),
            begun_at=progress.started_at,
            ended_at=self._clock(),
            erased=erased,
            residue=residue,
        )
        return ErasureResult(erased=erased, residue=0, receipt=receipt.signed(receipt_key))

    async def _erase(self, owner: Owner, erasure: Erasure) -> tuple[ErasureProgress, dict[str, int]]:
        """Erase a marked user; return what was erased, and what is left by place."""
        caches = (self._data.reinforcement, self._data.lookup, self._data.vectors, self._data.context_snapshots)
        await self._data.reinforcement.discard_user(owner)
        await self._data.context_snapshots.discard_user(owner)
        await erasure.add_erased("Job", await self._data.jobs.forget(owner.group_id))
        await erasure.erase()
        # A request that stored messages before the mark may have queued their job after the jobs were erased.
        await erasure.add_erased("Job", await self._data.jobs.forget(owner.group_id))
        progress = await erasure.end()
        for cache in caches:
            await cache.discard_user(owner)
        cached = sum([await cache.count_user(owner) for cache in caches])
        return progress, {"graph": progress.residue, "jobs": 0, "caches": cached}

    async def resume_interrupted(self, idle: timedelta = INTERRUPTED_AFTER) -> int:
        """Continue the erasures that have made no progress for a while; return how many have ended."""
        ended = 0
        for owner in await self._data.graph.list_interrupted(idle):
            try:
                result = await self.forget(owner)
            except Unavailable as error:
                _log.warning("an interrupted erasure is not finished yet", reason=error.detail)
            else:
                ended += not result.residue
        return ended

    async def erase_memory(self, owner: Owner, memory_id: str) -> int:
        """Erase every version of a memory everywhere, with entities that only it named; return how many there were.

        Raises NotFound for an unknown memory, and JobStoreUnavailable before the graph is changed.
        """
        versions = await self._data.facts.get_history(owner, memory_id)
        owned = owner if versions[0].user_id else owner.tenant_global
        texts = list({version.content for version in versions})
        await self._erase_from_jobs(owned, memory_id, texts)
        await self._data.context.delete_goal_patterns(owned, [normalise(text) for text in texts])

        async def work(transaction: Transaction) -> int:
            erased = await self._data.facts.erase_memory(transaction, owned, memory_id)
            if not erased.versions:
                raise NotFound("There is no such memory.")
            await self._data.graph.erase_from_extractions(transaction, owned, erased.entity_ids)
            await self._data.runs.erase_memory(transaction, owned, memory_id, erased.entity_ids)
            await self._data.context_uses.erase_memory(transaction, owned, memory_id)
            await self._data.idempotency.erase_memory(transaction, owned, memory_id)
            return erased.versions

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
