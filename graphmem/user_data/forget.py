"""Erasing a user or a single memory from every place that stores their data, with a signed receipt."""

from __future__ import annotations

import json
import os
import secrets
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Protocol

import structlog

from graphmem.consolidation.run_store import RunStore
from graphmem.context.store import ContextStore
from graphmem.context.usage import ContextUseStore
from graphmem.jobs.job import JobOutcome
from graphmem.jobs.kinds import JobKind, Steps, UserJobPayload
from graphmem.jobs.runner import JobRunner
from graphmem.memories.fact_store import FactStore
from graphmem.neo4j.driver import Graph, Transaction
from graphmem.neo4j.placed_graph import use_tenant
from graphmem.runtime.errors import ConfigurationError, NotFound, Unavailable
from graphmem.runtime.field_types import to_json
from graphmem.runtime.settings import Settings
from graphmem.runtime.times import Clock
from graphmem.tenants.idempotency import IdempotencyStore
from graphmem.tenants.owners import Owner
from graphmem.tenants.spaces import Reader, scope_of
from graphmem.text.normalising import normalise
from graphmem.user_data.models import ErasureReceipt, ErasureResult, hash_user

BATCH_SIZE = 1_000
"""Facts and nodes erased per transaction, to limit its memory."""

FINAL_CHECKS = 5
"""Attempts to leave nothing behind; a refused request may briefly leave its idempotency record."""


@dataclass(frozen=True, slots=True)
class ErasureProgress:
    """The items that an erasure has erased since its start, by kind, and once counted, the number left.

    `has_ended` is true for the process that ended the erasure; only that process knows the total.
    """

    started_at: datetime
    erased: Mapping[str, int] = field(default_factory=dict)
    residue: int = 0
    has_ended: bool = False


class _ResidueFound(Exception):
    """Rolls back the end of an erasure."""

    def __init__(self, progress: ErasureProgress) -> None:
        super().__init__()
        self.progress = progress


class ForgetStore:
    """Erases users from the graph, at most `batch_size` facts and nodes in one transaction."""

    def __init__(self, graph: Graph, clock: Clock, batch_size: int = BATCH_SIZE) -> None:
        self._graph = graph
        self._clock = clock
        self._batch_size = batch_size

    async def begin(self, owner: Owner) -> Erasure:
        """Mark a user as being forgotten: from now on, writes are refused and reads find nothing.

        An unfinished erasure is continued.
        """
        now, user = self._clock(), {"tenant": owner.tenant, "user_id": owner.user_id}

        async def mark(transaction: Transaction) -> str:
            # The end of an erasure locks its mark before the user. Locking the user first would be a deadlock.
            rows = await transaction.run("forget.join", group_id=owner.group_id)
            rows = rows or await transaction.run("forget.begin", group_id=owner.group_id, now=now, **user)
            return str(rows[0]["id"])

        erasure_id = await self._graph.write(mark)
        self._graph.refresh_hidden()
        return Erasure(self._graph, owner, erasure_id, now, self._batch_size)

    async def erase_from_extractions(self, transaction: Transaction, owner: Owner, entity_ids: Sequence[str]) -> None:
        """Erase the entities' names from extraction records."""
        if not entity_ids:
            return
        rows = await transaction.run("forget.find_extractions", group_id=owner.group_id, ids=list(entity_ids))
        for row in rows:
            kept = {name: _without_entities(row[name], set(entity_ids)) for name in ("actions", "links")}
            await transaction.run("forget.set_extraction", group_id=owner.group_id, id=row["id"], **kept)

    async def list_interrupted(self, idle: timedelta) -> list[Owner]:
        """Return the users whose erasure has been idle for a while."""
        rows = await self._graph.fetch("forget.list_interrupted", idle_seconds=idle.total_seconds())
        return [Owner.from_group_id(row["group_id"]) for row in rows]


class Erasure:
    """An erasure that has begun. Several processes may work on it; they take turns."""

    def __init__(self, graph: Graph, owner: Owner, erasure_id: str, now: datetime, batch_size: int) -> None:
        self._graph = graph
        self._group = {"group_id": owner.group_id}
        self._groups = {"group_id": owner.group_id, "shared_group": owner.tenant_global.group_id}
        self._id = erasure_id
        self._batch_size = batch_size
        self._progress = ErasureProgress(now)

    async def add_erased(self, kind: str, count: int) -> None:
        """Count items erased outside the graph."""

        async def add(transaction: Transaction) -> None:
            if await self._continue(transaction):
                await self._record(transaction, Counter({kind: count}))

        await self._graph.write(add)

    async def erase(self) -> None:
        """Erase facts and nodes until only the user's own node is left."""
        while await self._graph.write(self._erase_batch):
            pass

    async def end(self) -> ErasureProgress:
        """Erase the rest, verify in one transaction that nothing is left, and erase the user's own node and the mark.

        Return the items erased; if something is left, the user stays marked.
        """
        for _ in range(FINAL_CHECKS):
            await self.erase()
            try:
                has_ended = await self._graph.write(self._end)
                self._graph.refresh_hidden()
            except _ResidueFound as found:
                self._progress = found.progress
            else:
                return replace(self._progress, has_ended=has_ended, residue=0)
        return self._progress

    async def _erase_batch(self, transaction: Transaction) -> int:
        """Erase one batch; return its size, or 0 if another process has ended the erasure."""
        return await self._erase_part(transaction) if await self._continue(transaction) else 0

    async def _erase_part(self, transaction: Transaction) -> int:
        rows = await transaction.run("forget.erase_elements", limit=self._batch_size, **self._groups)
        erased = Counter({row["kind"]: row["erased"] for row in rows})
        if erased:
            await self._record(transaction, erased)
        return erased.total()

    async def _record(self, transaction: Transaction, erased: Counter[str]) -> None:
        """Add to the count of erased items."""
        total = {**self._progress.erased}
        for kind, count in erased.items():
            total[kind] = total.get(kind, 0) + count
        self._progress = replace(self._progress, erased=total)
        await transaction.run("forget.record_progress", erased=json.dumps(total), **self._group)

    async def _end(self, transaction: Transaction) -> bool:
        if not await self._continue(transaction):
            return False
        # Responses to tenant-wide requests may have been stored since the last batch.
        await self._erase_part(transaction)
        await transaction.run("forget.end", **self._group)
        (row,) = await transaction.run("forget.count_residue", **self._groups)
        if row["residue"]:
            raise _ResidueFound(replace(self._progress, residue=row["residue"]))
        return True

    async def _continue(self, transaction: Transaction) -> bool:
        """Lock the erasure and read its progress; return False if another process has ended it."""
        rows = await transaction.run("forget.continue", erasure_id=self._id, **self._group)
        if rows:
            erased = {"User": rows[0]["users"], **json.loads(rows[0]["erased"])}
            self._progress = ErasureProgress(rows[0]["started_at"], erased)
        return bool(rows)


def _without_entities(recorded: str, entity_ids: set[str]) -> str:
    """Return recorded actions, as JSON, without those that name any of the entities."""
    return to_json([action for action in json.loads(recorded) if action.get("entity_id") not in entity_ids])


INTERRUPTED_AFTER = timedelta(seconds=15)
"""Time without progress after which an erasure counts as interrupted."""

_log = structlog.get_logger(__name__)


class ErasurePayload(UserJobPayload):
    """An erased memory."""

    memory_id: str


ERASURE_JOB = JobKind("erasure", ErasurePayload)
"""Erases a memory from the records of jobs that were unfinished when it was erased."""


class UserCache(Protocol):
    """User data cached in this process."""

    async def discard_user(self, owner: Owner) -> None:
        """Remove all data of a user."""

    async def count_user(self, owner: Owner) -> int:
        """Return the number of a user's entries."""


class UserBindings(Protocol):
    """A tenant's settings that list users by id."""

    async def forget_user(self, owner: Owner, now: datetime) -> int:
        """Remove a user, even if no others are listed; return the number of places."""


@dataclass(frozen=True, slots=True)
class UserData:
    """All places that store user data; add new ones here."""

    jobs: JobRunner
    """Payloads, step results and outcomes of jobs."""

    graph: ForgetStore
    """All data of a user in the graph, as listed by the fragment `elements_of_user`, and the user's own node."""

    facts: FactStore
    """The versions of a memory, and references to it."""

    runs: RunStore
    """A memory in consolidation runs, their proposals and before-images."""

    context_uses: ContextUseStore
    """A memory in the contexts that held it."""

    idempotency: IdempotencyStore
    """A memory, or all data of a space, in stored responses to requests with an Idempotency-Key."""

    context: ContextStore
    """Goal patterns, which quote memories."""

    reinforcement: UserCache
    """Counted retrievals that are not yet written."""

    lookup: UserCache
    """Cached entity names, lookup answers and core memories."""

    vectors: UserCache
    """Cached vectors of facts and messages."""

    context_snapshots: UserCache
    """Cached parts of contexts."""

    keys: UserBindings
    """The users that API keys are bound to."""

    webhooks: UserBindings
    """The users whose changes webhooks receive."""


class ForgetService:
    """Erases users and single memories everywhere."""

    def __init__(self, graph: Graph, data: UserData, clock: Clock, load_receipt_key: Callable[[], bytes]) -> None:
        self._graph = graph
        self._data = data
        self._clock = clock
        self._load_receipt_key = load_receipt_key

    def check_receipts(self) -> None:
        """Raise ConfigurationError without a receipt key, which forgetting requires."""
        self._load_receipt_key()

    async def forget(self, owner: Owner) -> ErasureResult:
        """Erase all data of a user, count what is left, and return a signed receipt if nothing is.

        From the start, writes are refused and reads find nothing. If another call for the same user ends the erasure,
        that call gets the receipt. Raises Unavailable if a dependency fails; the erasure has then begun, and a worker
        or another call continues it. Raises ConfigurationError, before any change, without a receipt key.
        """
        receipt_key = self._load_receipt_key()
        erasure = await self._data.graph.begin(owner)
        try:
            progress, residue = await self._erase(owner, erasure)
        except Unavailable as error:
            raise Unavailable(
                f"{error.detail} The user is already hidden and read-only: a worker continues the erasure, or request "
                "it again.",
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
        """Erase a marked user; return the erased items, and the number left by place."""
        await self._data.reinforcement.discard_user(owner)
        await self._data.context_snapshots.discard_user(owner)
        await erasure.add_erased("Job", await self._data.jobs.forget(owner.group_id))
        await erasure.erase()
        for kind, bindings in (("ApiKey", self._data.keys), ("Webhook", self._data.webhooks)):
            if count := await bindings.forget_user(owner, self._clock()):
                await erasure.add_erased(kind, count)
        # A request that stored messages before the mark may have queued their job after the jobs were erased.
        await erasure.add_erased("Job", await self._data.jobs.forget(owner.group_id))
        progress = await erasure.end()
        if owner.is_space:
            await self._data.idempotency.erase_space(owner)
        return progress, {"graph": progress.residue, "jobs": 0, "caches": await self._empty_caches(owner)}

    async def _empty_caches(self, owner: Owner) -> int:
        """Remove a user's cache entries; return the number left after `FINAL_CHECKS` tries.

        Redis may have been unavailable briefly, and then receive what another process read before the mark.
        """
        caches = (self._data.reinforcement, self._data.lookup, self._data.vectors, self._data.context_snapshots)
        cached = 0
        for _ in range(FINAL_CHECKS):
            for cache in caches:
                await cache.discard_user(owner)
            cached = sum([await cache.count_user(owner) for cache in caches])
            if not cached:
                break
        return cached

    async def resume_interrupted(self, idle: timedelta = INTERRUPTED_AFTER) -> int:
        """Continue erasures that have been idle for a while; return the number completed."""
        ended = 0
        for owner in await self._data.graph.list_interrupted(idle):
            try:
                with use_tenant(owner.tenant):
                    result = await self.forget(owner)
            except Unavailable as error:
                _log.warning("an interrupted erasure is not finished yet", reason=error.detail)
            else:
                ended += not result.residue
        return ended

    async def erase_memory(self, reader: Reader, memory_id: str) -> int:
        """Erase every version of a memory everywhere, with entities only it named; return the number of versions.

        Profiles derived from it, now or earlier, are erased too: the next consolidation writes them again from the
        rest. Raises NotFound for an unknown memory, and JobStoreUnavailable before the graph is changed.
        """
        scope = scope_of(reader)
        versions = await self._data.facts.get_history(scope, memory_id)
        owned = scope.writable_owner_of(versions[0].owner_for(scope.owner).group_id)
        texts = list({version.content for version in versions})
        await self._erase_from_jobs(owned, memory_id, texts)
        await self._data.context.delete_goal_patterns(owned, [normalise(text) for text in texts])

        async def work(transaction: Transaction) -> int:
            for profile_id in await self._data.facts.list_derived_profiles(transaction, owned, memory_id):
                await self._erase_from_graph(transaction, owned, profile_id)
            erased = await self._erase_from_graph(transaction, owned, memory_id)
            if not erased:
                raise NotFound("There is no such memory.")
            return erased

        erased = await self._graph.write(work)
        await self._discard_cached(owned)
        return erased

    async def _erase_from_graph(self, transaction: Transaction, owner: Owner, memory_id: str) -> int:
        """Erase every version of a memory, and references to it; return the number of versions."""
        erased = await self._data.facts.erase_memory(transaction, owner, memory_id)
        await self._data.graph.erase_from_extractions(transaction, owner, erased.entity_ids)
        await self._data.runs.erase_memory(transaction, owner, memory_id, erased.entity_ids)
        await self._data.context_uses.erase_memory(transaction, owner, memory_id)
        await self._data.idempotency.erase_memory(transaction, owner, memory_id)
        return erased.versions

    async def _discard_cached(self, owner: Owner) -> None:
        await self._data.lookup.discard_user(owner)
        await self._data.context_snapshots.discard_user(owner)

    async def _erase_from_jobs(self, owner: Owner, memory_id: str, texts: Sequence[str]) -> None:
        """Erase a memory from the records of finished jobs, and queue a job that does so after unfinished ones."""
        await self._data.jobs.erase_step_results(owner.group_id, [memory_id, *texts])
        if await self._data.jobs.is_busy(owner.group_id):
            payload = ErasurePayload(tenant=owner.tenant, user_id=owner.user_id, memory_id=memory_id)
            await self._data.jobs.enqueue(ERASURE_JOB, payload)

    async def handle_erasure_job(self, payload: ErasurePayload, steps: Steps) -> JobOutcome:
        """Handle an `erasure` job; in its user's queue, it runs after the jobs that were unfinished."""
        jobs = self._data.jobs
        await steps.run("erase", lambda: jobs.erase_step_results(payload.owner.group_id, [payload.memory_id]))
        return JobOutcome()


RECEIPT_KEY_FILE = "receipt.key"
"""Name of the file in the data folder."""


def load_receipt_key(settings: Settings) -> bytes:
    """Return the receipt key from the settings or the file, which is created with a random key if missing.

    Raises ConfigurationError if the file cannot be written or read.
    """
    if settings.receipt_key is not None:
        return settings.receipt_key.get_secret_value().encode()
    path = settings.data_dir / RECEIPT_KEY_FILE
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        if not path.exists():
            # A draft is linked into place: other processes never read a partial key, and never replace an existing one.
            draft = path.with_suffix(f".{secrets.token_hex(8)}")
            descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            with os.fdopen(descriptor, "w", encoding="ascii") as file:
                file.write(secrets.token_hex(32))
            with suppress(FileExistsError):
                os.link(draft, path)
            draft.unlink()
        return path.read_text(encoding="ascii").strip().encode()
    except OSError as error:
        raise ConfigurationError(
            f"The receipt key {path} cannot be used ({error.strerror}): set GRAPHMEM_RECEIPT_KEY, or "
            "GRAPHMEM_DATA_DIR to a folder you can write to."
        ) from error
