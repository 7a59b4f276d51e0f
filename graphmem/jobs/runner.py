"""Durable jobs: queued by any process, awaited by requests, run once by some worker, resumed after a crash."""

from __future__ import annotations

import asyncio
import builtins
import logging
import math
import time
import uuid
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, nullcontext
from contextvars import ContextVar
from datetime import datetime
from typing import Any, TypeVar, TypeVarTuple

from graphmem.jobs.job import Job, JobListQuery, JobStatus
from graphmem.jobs.kinds import JobHandler, JobKind, JobPayload, ScheduledPayload
from graphmem.jobs.registry import WorkerRegistry
from graphmem.jobs.store import JOB_QUEUE, JobStore
from graphmem.jobs.worker import Worker, WorkerOptions
from graphmem.neo4j.driver import Graph
from graphmem.runtime.errors import Conflict, DatabaseUnavailable, InvalidInput, JobStoreUnavailable, NotFound
from graphmem.runtime.metrics import JOBS_UNFINISHED, OLDEST_QUEUED_JOB_SECONDS
from graphmem.runtime.paging import TIME_CURSOR, Page
from graphmem.runtime.settings import Settings
from graphmem.tenants.owners import Owner

log = logging.getLogger(__name__)

UNFINISHED_NAMES = {"ENQUEUED": "queued", "DELAYED": "waiting", "PENDING": "running"}
"""Statuses of unfinished jobs: the name in DBOS and the name in the metrics."""

FORGET_TIMEOUT_SECONDS = 60.0
"""Seconds that `forget` waits for running jobs to stop; a handler stops at its next `await`."""

CALL_SECONDS = 10.0
"""Seconds within which Postgres must answer a call."""

SQLITE_CALL_SECONDS = 45.0
"""Seconds within which SQLite must answer a call: a writer waits for others, such as one compacting the file."""

ERASURE_SECONDS = 120.0
"""Seconds within which the job store must answer a call that erases many jobs."""

MAX_CALLS = 16
"""Maximum number of concurrent calls."""

Args = TypeVarTuple("Args")
T = TypeVar("T")
P = TypeVar("P", bound=JobPayload)
S = TypeVar("S", bound=ScheduledPayload)


class StoreCalls:
    """Runs blocking calls on its own threads, so that a hanging job store takes no threads from other work.

    A call that takes too long raises JobStoreUnavailable. It may still take effect later, like any request whose
    response is lost. While it hangs, further calls fail at once.
    """

    def __init__(self, *, is_sqlite: bool) -> None:
        self._is_sqlite = is_sqlite
        self._threads = ThreadPoolExecutor(MAX_CALLS, thread_name_prefix="job-store")
        self._hanging: set[asyncio.Future[Any]] = set()
        self._is_closed = False

    async def run(self, function: Callable[[*Args], T], *args: *Args, seconds: float | None = None) -> T:
        """Return the result of `function`; wait at most `seconds`, by default the limit for this store."""
        if self._is_closed:
            raise JobStoreUnavailable("The job runner is closed.")
        if self._hanging:
            raise _silent_error()
        call = asyncio.get_running_loop().run_in_executor(self._threads, function, *args)
        limit = seconds or (SQLITE_CALL_SECONDS if self._is_sqlite else CALL_SECONDS)
        done, _ = await asyncio.wait({call}, timeout=limit)
        if done:
            return call.result()
        self._hanging.add(call)
        call.add_done_callback(self._forget_call)
        raise _silent_error()

    def _forget_call(self, call: asyncio.Future[Any]) -> None:
        self._hanging.discard(call)
        if not call.cancelled():
            call.exception()  # nobody waits for it any more

    def close(self) -> None:
        """Accept no more calls; hanging calls are left to finish."""
        self._is_closed = True
        self._threads.shutdown(wait=False, cancel_futures=True)


def _silent_error() -> JobStoreUnavailable:
    return JobStoreUnavailable("The job store does not answer: check that its database runs, then try again.")


class JobRunner:
    """The job queue: the jobs of a partition run one at a time in queue order, partitions run concurrently.

    A runner enqueues and reads jobs; `start_worker` makes it run them too. Every method raises JobStoreUnavailable if
    the job store cannot be reached or does not answer in time.
    """

    def __init__(self, store: JobStore, registry: WorkerRegistry, store_id: str) -> None:
        self.store_id = store_id
        """The job store's id, the same in all processes that use it."""
        self._store = store
        self._registry = registry
        self._calls = StoreCalls(is_sqlite=store.is_sqlite)
        self._worker: Worker | None = None
        self._closed = False

    @classmethod
    async def open(cls, settings: Settings, queue: str = JOB_QUEUE) -> JobRunner:
        """Open the job store, creating or migrating its tables; raise JobStoreUnavailable or ConfigurationError.

        The runner puts its jobs into `queue`, and its worker takes jobs only from there.
        """
        store = await asyncio.to_thread(JobStore.open, settings, queue)
        try:
            registry = WorkerRegistry(store)
            await asyncio.to_thread(registry.create_tables)
            store_id = await asyncio.to_thread(registry.identify)
        except BaseException:
            store.close()
            raise
        return cls(store, registry, store_id)

    async def start_worker(self, handlers: Iterable[JobHandler[Any]], options: WorkerOptions | None = None) -> None:
        """Run jobs on this event loop with the given handlers until `close`.

        Raises ConfigurationError if this process already has a worker; it may have any number of runners without one.
        """
        worker = Worker(self._store, self._registry, handlers, asyncio.get_running_loop(), options or WorkerOptions())
        await asyncio.to_thread(worker.launch)
        self._worker = worker

    async def close(self) -> None:
        """Stop working and disconnect from the job store; other workers resume the unfinished jobs."""
        if self._closed:
            return
        self._closed = True
        if self._worker is not None:
            await asyncio.to_thread(self._worker.close)
        await asyncio.to_thread(self._store.close)
        self._calls.close()

    async def __aenter__(self) -> JobRunner:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def enqueue(self, kind: JobKind[P], payload: P, job_id: str | None = None) -> str:
        """Queue a job and return its id without waiting for it; do nothing if a job with this id exists.

        The payload's `user_id` and `session_id`, if any, are shown on the job. Raises InvalidInput for a payload
        without a partition.
        """
        partition = payload.partition
        if not partition.strip():
            raise InvalidInput("A job needs a partition.")
        job_id = job_id or str(uuid.uuid4())
        await self._calls.run(self._store.enqueue, job_id, kind.name, partition, payload.model_dump(mode="json"))
        log.info("job queued", extra={"kind": kind.name, "job_id": job_id})
        return job_id

    async def find(self, job_id: str) -> Job | None:
        """Return the job with this id, or None."""
        return await self._calls.run(self._store.get, job_id)

    async def find_missing(self, job_ids: Iterable[str]) -> set[str]:
        """Return the ids without a job."""
        return await self._calls.run(self._store.find_missing, set(job_ids))

    async def get(self, job_id: str) -> Job:
        """Return the job with this id; raise NotFound if there is none."""
        job = await self.find(job_id)
        if job is None:
            raise NotFound("There is no such job.")
        return job

    async def get_for_tenant(self, tenant: str, job_id: str) -> Job:
        """Return a tenant's job; raise NotFound for any other job, including system jobs."""
        job = await self.get(job_id)
        owner = Owner.of_space(tenant, job.space) if job.space else Owner(tenant, job.user_id or "")
        if job.partition != owner.group_id:
            raise NotFound("There is no such job.")
        return job

    async def wait(self, job_id: str, timeout: float) -> Job:  # noqa: ASYNC109 - it returns instead of raising
        """Return the job once it is final or waits for a model, or as it is after `timeout` seconds.

        Raises NotFound if there is no such job.
        """
        deadline = time.monotonic() + timeout
        pause = 0.02
        while True:
            job = await self.get(job_id)
            left = deadline - time.monotonic()
            if job.is_at_rest or left <= 0:
                return job
            await asyncio.sleep(min(pause, left))
            pause = min(pause * 1.2, 0.25)

    async def retry(self, job_id: str, *, fresh: bool = False) -> Job:
        """Queue a failed job again from its failed step, or end a job's wait for a model.

        With `fresh`, a failed job starts from its first step, without the earlier model answers.

        Raises NotFound, or Conflict if the job neither failed nor waits.
        """
        job = await self.get(job_id)
        if job.waits_until is not None:
            await self._calls.run(self._store.end_waits, job.partition)
            return await self.get(job_id)
        if job.status is not JobStatus.FAILED:
            raise Conflict(f"Job {job_id} is {job.status.value}; only a failed or waiting job can be retried.")
        await self._calls.run(self._store.retry, job, fresh)
        return await self.get(job_id)

    async def list(
        self, partition: str | None = None, kind: JobKind[Any] | None = None, limit: int = 50
    ) -> builtins.list[Job]:
        """Return jobs, newest first."""

        def matches(job: Job) -> bool:
            return kind is None or job.kind == kind.name

        return await self._calls.run(self._store.list, partition, limit, matches, None)

    async def list_page(self, tenant: str, partition: str | None, query: JobListQuery) -> Page[Job]:
        """Return a page of a tenant's jobs, newest first, optionally from one partition only."""
        position = TIME_CURSOR.decode(query.cursor) if query.cursor else None

        def matches(job: Job) -> bool:
            return (
                job.partition.startswith(f"{tenant}:")
                and query.status in (None, job.status)
                and (position is None or (job.created_at, job.id) < position)
            )

        before = position[0] if position else None
        found = await self._calls.run(self._store.list, partition, query.limit + 1, matches, before)
        return TIME_CURSOR.make_page(found, query.limit, lambda job: (job.created_at, job.id))

    async def forget(self, partition: str) -> int:
        """Erase every job of a partition with its text, and return the number of jobs.

        Queued jobs never start; running jobs, on any worker, are stopped first; jobs queued meanwhile are erased too.
        Raises JobStoreUnavailable if a job does not stop or new jobs keep arriving for a minute; the call can then be
        repeated.
        """
        deadline = time.monotonic() + FORGET_TIMEOUT_SECONDS
        total = 0
        while True:
            ids = await self._calls.run(self._store.cancel, partition, seconds=ERASURE_SECONDS)
            while await self._calls.run(self._abort_and_check_running, ids):
                if time.monotonic() > deadline:
                    raise JobStoreUnavailable("A job of this user does not stop; forget the user again in a minute.")
                await asyncio.sleep(0.1)
            erased, is_done = await self._calls.run(self._store.erase, partition, seconds=ERASURE_SECONDS)
            total += erased
            if is_done:
                return total
            if time.monotonic() > deadline:
                raise JobStoreUnavailable("Jobs of this user keep being queued: forget the user again in a minute.")

    def _abort_and_check_running(self, ids: set[str]) -> bool:
        if self._worker is not None:
            for job_id in ids:
                self._worker.running.abort(job_id)
        return self._registry.is_any_claimed(ids)

    async def erase_step_results(self, partition_prefix: str, texts: Sequence[str]) -> None:
        """Erase the step records of finished jobs that contain one of the texts.

        Only jobs whose partition starts with `partition_prefix` are affected. The jobs and their results stay.
        """
        await self._calls.run(self._store.erase_step_results, partition_prefix, texts, seconds=ERASURE_SECONDS)

    async def is_busy(self, partition: str) -> bool:
        """Return whether a job of a partition is queued or running."""
        return await self._calls.run(self._store.is_busy, partition)

    async def measure(self) -> None:
        """Set the metrics of the queue; they are unknown (NaN) while the job store is unavailable."""
        try:
            counts = await self._calls.run(self._store.count_unfinished)
        except JobStoreUnavailable:
            for status in UNFINISHED_NAMES.values():
                JOBS_UNFINISHED.labels(status).set(math.nan)
            OLDEST_QUEUED_JOB_SECONDS.set(math.nan)
            return
        for dbos_status, status in UNFINISHED_NAMES.items():
            JOBS_UNFINISHED.labels(status).set(counts.get(dbos_status, (0, 0))[0])
        _, oldest = counts.get("ENQUEUED", (0, None))
        OLDEST_QUEUED_JOB_SECONDS.set(0 if oldest is None else max(0.0, time.time() - oldest / 1000))

    async def prune(self, before: datetime) -> int:
        """Erase the jobs that finished before a time, and return their number."""
        return await self._calls.run(self._store.prune, before, seconds=ERASURE_SECONDS)

    async def schedule(self, name: str, cron: str, timezone: str, kind: JobKind[S], payload: S) -> None:
        """Queue a job at every tick of `cron` in the IANA zone, once regardless of the number of workers.

        A schedule outlives the process and replaces an earlier one with the same name. Its jobs go to the partition
        `_system:<name>` with the time of the tick in `scheduled_at`. Ticks that pass while no worker runs are dropped.
        Raises InvalidInput for an invalid cron expression or zone.
        """
        stored = payload.model_dump(mode="json", exclude={"scheduled_at"})
        await self._calls.run(self._store.schedule, name, cron, timezone, kind.name, stored)

    async def unschedule(self, name: str) -> None:
        """Remove a schedule, if it exists; jobs it has queued stay."""
        await self._calls.run(self._store.unschedule, name)


_pause: ContextVar[Callable[[], AbstractContextManager[None]]] = ContextVar("pause", default=nullcontext)


def pause_while_waiting(pause: Callable[[], AbstractContextManager[None]]) -> None:
    """Let a request's task enter `pause` while it only waits for a job."""
    _pause.set(pause)


class JobWaiting:
    """Waits for jobs on behalf of requests.

    While the database is unavailable, a job is postponed for up to a day. A request must not wait that long: it fails
    as soon as the database stops answering, and the job continues without it.
    """

    def __init__(self, graph: Graph, jobs: JobRunner) -> None:
        self._graph = graph
        self._jobs = jobs

    async def check_database(self) -> None:
        """Raise DatabaseUnavailable if the database is unavailable, before a job is queued in vain."""
        await self._graph.check_server()

    async def wait(self, job_id: str, seconds: float) -> Job:
        """Return the job once it is final or waits for a model, or as it is after `seconds` seconds.

        Raises DatabaseUnavailable, naming the job, if the database stops answering; NotFound if there is no such job.
        """
        try:
            with _pause.get()():
                async with self._graph.watch_others():
                    return await self._jobs.wait(job_id, seconds)
        except DatabaseUnavailable as error:
            raise DatabaseUnavailable(
                f"{error.detail} The request is not lost: job {job_id} continues when Neo4j answers again."
            ) from error
