"""Durable jobs: asked for anywhere, run once by some worker, kept through crashes."""

from __future__ import annotations

import asyncio
import logging
import time
import uuid
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from graphmem.domain.job import Job, JobStatus
from graphmem.errors import Conflict, InvalidInput, JobStoreUnavailable, NotFound
from graphmem.jobs.erasure import JobEraser
from graphmem.jobs.steps import JobHandler
from graphmem.jobs.store import JobStore
from graphmem.jobs.worker import Worker
from graphmem.jobs.worker_registry import WorkerRegistry
from graphmem.settings import Settings

log = logging.getLogger(__name__)

CONCURRENCY = 8
DEAD_WORKER_SECONDS = 30.0
RETRY_DELAYS = (2.0, 8.0, 20.0)
FORGET_TIMEOUT_SECONDS = 60.0


class JobRunner:
    """The job queue. Jobs of one partition run one at a time in the order they were queued, partitions side by side.

    Every method raises JobStoreUnavailable when the job store cannot be reached.
    """

    def __init__(self, store: JobStore, registry: WorkerRegistry, worker: Worker | None, kinds: frozenset[str]) -> None:
        self._store = store
        self._registry = registry
        self._worker = worker
        self._kinds = kinds
        self._eraser = JobEraser(store)
        self._closed = False

    @classmethod
    async def open(
        cls,
        settings: Settings,
        handlers: Mapping[str, JobHandler],
        *,
        worker: bool = True,
        concurrency: int = CONCURRENCY,
        dead_worker_seconds: float = DEAD_WORKER_SECONDS,
        retry_delays: Sequence[float] = RETRY_DELAYS,
    ) -> JobRunner:
        """Open the job store and, with `worker`, run jobs on this event loop by the handlers of their kinds.

        A worker runs `concurrency` jobs side by side, takes over from workers silent for `dead_worker_seconds` seconds, and
        repeats a step that met something unavailable after each of `retry_delays` seconds. A process has one worker;
        enqueue-only runners are as many as wanted. Raises JobStoreUnavailable, and ConfigurationError on a second worker.
        """
        store = await asyncio.to_thread(JobStore.open, settings)
        try:
            registry = WorkerRegistry(store)
            await asyncio.to_thread(registry.create_tables)
            running = None
            if worker:
                loop = asyncio.get_running_loop()
                running = Worker(
                    store,
                    registry,
                    handlers,
                    loop=loop,
                    dead_worker_seconds=dead_worker_seconds,
                    retry_delays=retry_delays,
                )
                await asyncio.to_thread(running.launch, concurrency)
        except BaseException:
            store.close()
            raise
        return cls(store, registry, running, frozenset(handlers))

    async def close(self) -> None:
        """Stop working and let go of the job store; unfinished jobs go on where the next worker finds them."""
        if self._closed:
            return
        self._closed = True
        if self._worker is not None:
            await asyncio.to_thread(self._worker.close)
        await asyncio.to_thread(self._store.close)

    async def __aenter__(self) -> JobRunner:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def enqueue(self, kind: str, partition: str, payload: dict[str, Any], job_id: str | None = None) -> str:
        """Queue a job without waiting for it and answer its id; the same `job_id` is the same job, whatever it carries.

        `payload` is JSON; its `user_id` and `session_id`, where given, show on the job.
        """
        if self._kinds and kind not in self._kinds:
            raise InvalidInput(f"There is no job of kind {kind!r}; known are {', '.join(sorted(self._kinds))}.")
        if not partition.strip():
            raise InvalidInput("A job needs a partition.")
        job_id = job_id or str(uuid.uuid4())
        await asyncio.to_thread(self._store.enqueue, job_id, kind, partition, payload)
        log.info("job queued", extra={"kind": kind, "job_id": job_id})
        return job_id

    async def get(self, job_id: str) -> Job | None:
        """The job of that id, or None."""
        return await asyncio.to_thread(self._store.get, job_id)

    async def wait(self, job_id: str, timeout: float) -> Job:  # noqa: ASYNC109 - it answers instead of raising
        """The job once it is final, or as it stands after `timeout` seconds; raise NotFound when there is none."""
        deadline = time.monotonic() + timeout
        pause = 0.02
        while True:
            job = await self._get_or_raise(job_id)
            left = deadline - time.monotonic()
            if job.status.is_final or left <= 0:
                return job
            await asyncio.sleep(min(pause, left))
            pause = min(pause * 1.2, 0.25)

    async def retry(self, job_id: str) -> Job:
        """Queue a failed job again from the step it failed at; raise NotFound, and Conflict when it has not failed."""
        job = await self._get_or_raise(job_id)
        if job.status is not JobStatus.FAILED:
            raise Conflict(f"Job {job_id} is {job.status.value}; only a failed job can be retried.")
        await asyncio.to_thread(self._store.retry, job)
        return await self._get_or_raise(job_id)

    async def list(self, partition: str | None = None, kind: str | None = None, limit: int = 50) -> list[Job]:
        """The newest jobs first."""
        return await asyncio.to_thread(self._store.list, partition, kind, limit)

    async def forget(self, partition: str) -> int:
        """Erase every job of a partition with its text, and answer how many there were.

        Queued jobs never start; running ones, on any worker, are stopped first. Raises JobStoreUnavailable when one does
        not stop or new ones came in meanwhile: nothing is then wrong with forgetting again.
        """
        ids = await asyncio.to_thread(self._eraser.cancel, partition)
        deadline = time.monotonic() + FORGET_TIMEOUT_SECONDS
        while await asyncio.to_thread(self._abort_and_check_running, ids):
            if time.monotonic() > deadline:
                raise JobStoreUnavailable("A job of this user does not stop; forget the user again in a minute.")
            await asyncio.sleep(0.1)
        return await asyncio.to_thread(self._eraser.erase, partition)

    def _abort_and_check_running(self, ids: set[str]) -> bool:
        if self._worker is not None:
            for job_id in ids & self._worker.running_job_ids():
                self._worker.abort(job_id)
        return self._registry.is_any_claimed(ids)

    async def erase_step_results(self, partition_prefix: str, texts: Sequence[str]) -> None:
        """Erase what the steps of finished jobs recorded where a job holds one of some texts.

        `within` is how their partitions begin. The jobs stay, with what came of them.
        """
        await asyncio.to_thread(self._eraser.erase_step_results, partition_prefix, texts)

    async def is_busy(self, partition: str) -> bool:
        """Whether a job of a partition is queued or running."""
        return await asyncio.to_thread(self._store.is_busy, partition)

    async def prune(self, before: datetime) -> int:
        """Erase the jobs that were finished before that time, and answer how many."""
        return await asyncio.to_thread(self._eraser.prune, before)

    async def schedule(
        self, name: str, cron: str, timezone: str, kind: str, payload: dict[str, Any] | None = None
    ) -> None:
        """Queue a job of `kind` at every tick of `cron` in the IANA zone, once however many workers there are.

        The schedule outlives the process and is replaced by its name. Its jobs stand in the partition `system:<name>`
        with `scheduled_at` added to the payload; ticks that pass while no worker runs are not made up for. Raises
        InvalidInput for a cron or zone that cannot be read.
        """
        await asyncio.to_thread(self._store.schedule, name, cron, timezone, kind, payload or {})

    async def unschedule(self, name: str) -> None:
        """End a schedule; what it has queued stays. Without one of that name nothing happens."""
        await asyncio.to_thread(self._store.unschedule, name)

    async def _get_or_raise(self, job_id: str) -> Job:
        job = await self.get(job_id)
        if job is None:
            raise NotFound(f"There is no job {job_id}.")
        return job
