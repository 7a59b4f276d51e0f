"""The worker of a process: it runs jobs until it is closed, and takes over those of workers that have ended."""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from collections import Counter
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime
from itertools import product
from typing import Any, ClassVar

from dbos import DBOS, WorkflowStatus

from graphmem.jobs.dbos_internals import recover_jobs_of
from graphmem.jobs.job import JobStatus
from graphmem.jobs.job_run import JobRun, RunningJobs, WorkerContext, WorkerOptions
from graphmem.jobs.kinds import JobHandler
from graphmem.jobs.registry import WorkerProcess, WorkerRegistry
from graphmem.jobs.store import APPLICATION, APPLICATION_VERSION, JOB_WORKFLOW, SERIALIZER, TICK_WORKFLOW, JobStore
from graphmem.runtime.errors import ConfigurationError, JobStoreUnavailable
from graphmem.runtime.metrics import JOBS_FINISHED

log = logging.getLogger(__name__)

MAX_RECOVERY_ATTEMPTS = 10
"""Workers that a job may stop before it is given up."""

SHUTDOWN_TIMEOUT_SECONDS = 5.0
"""Seconds that closing waits for the handlers it has aborted."""


class Worker:
    """Runs jobs until closed. DBOS is global, so that a process has one worker at a time. Methods block."""

    _active: ClassVar[Worker | None] = None

    def __init__(
        self,
        store: JobStore,
        registry: WorkerRegistry,
        handlers: Iterable[JobHandler[Any]],
        loop: asyncio.AbstractEventLoop,
        options: WorkerOptions,
    ) -> None:
        self.running = RunningJobs()
        self._context = WorkerContext(
            store=store,
            registry=registry,
            handlers={handler.kind.name: handler for handler in handlers},
            loop=loop,
            options=options,
            process=WorkerProcess.current(),
            running=self.running,
            threads=ThreadPoolExecutor(options.concurrency, thread_name_prefix="graphmem-job-steps"),
        )
        for kind, status in product(self._context.handlers, JobStatus):
            if status.is_final:
                JOBS_FINISHED.labels(kind, status)  # from 0, so that an alert sees the first failure
        self._recovery = JobRecovery(self._context)

    def launch(self) -> None:
        """Start to work; raise ConfigurationError when this process already does."""
        if Worker._active is not None:
            raise ConfigurationError(
                "This process already runs jobs: close the other worker, or open this one with worker=False."
            )
        Worker._active = self
        try:
            self._context.registry.heartbeat(self._context.process)
            self._context.store.register_queues(self._context.options.concurrency)
            self._launch_dbos()
            self._recovery.start()
        except BaseException:
            self.close()
            raise

    def _launch_dbos(self) -> None:
        store = self._context.store
        DBOS(
            config={
                "name": APPLICATION,
                "system_database_engine": store.engine,
                "dbos_system_schema": store.schema,
                "serializer": SERIALIZER,
                "application_version": APPLICATION_VERSION,
                "executor_id": self._context.process.id,
                "run_migrations": False,
                "log_level": "WARNING",
                "enable_otlp": False,
                "scheduler_polling_interval_sec": 10.0,
                # Nothing here waits for notifications; this only bounds how long closing waits for their listener.
                "notification_listener_polling_interval_sec": 0.2,
            }
        )

        @DBOS.workflow(name=JOB_WORKFLOW, max_recovery_attempts=MAX_RECOVERY_ATTEMPTS)
        def job(kind: str, payload: dict[str, Any]) -> dict[str, Any]:
            return JobRun(self._context, str(DBOS.workflow_id), kind, payload).run().model_dump(mode="json")

        @DBOS.workflow(name=TICK_WORKFLOW, max_recovery_attempts=MAX_RECOVERY_ATTEMPTS)
        def tick(scheduled_at: datetime, context: dict[str, Any]) -> None:
            store.enqueue_scheduled(scheduled_at.isoformat(), context)

        DBOS.listen_queues(store.listened_queues)
        with store.translate_errors():
            DBOS.launch()

    def close(self) -> None:
        """Stop working; the next worker resumes the jobs that are cut short, at their last finished step."""
        self._recovery.stop()
        self.running.close(SHUTDOWN_TIMEOUT_SECONDS)
        self._context.threads.shutdown(wait=False, cancel_futures=True)
        DBOS.destroy(destroy_registry=True)
        Worker._active = None
        try:
            self._context.registry.remove([self._context.process.id])
        except JobStoreUnavailable as error:
            log.warning("Other workers will find out late that this one has closed: %s", error.detail)


CHECKS_BEFORE_REQUEUE = 5
"""Checks in a row that must find a claimed job without a handler before it is queued again."""

MAX_CHECK_SECONDS = 2.0
"""Most seconds between two checks; a quarter of the time after which a silent worker is dead, where that is less."""


class JobRecovery:
    """A thread that checks the job store at regular intervals.

    A worker is dead when it has left, when its process on this machine is gone, or when its heartbeat has not changed
    for `dead_worker_seconds` seconds by this machine's clock, so that the clocks of two machines need not agree. A
    check that fails discards the heartbeats seen, so that no worker counts as dead after an outage of the job store.
    """

    def __init__(self, context: WorkerContext) -> None:
        self._process = context.process
        self._running = context.running
        self._store = context.store
        self._registry = context.registry
        self._dead_worker_seconds = context.options.dead_worker_seconds
        self._interval = min(MAX_CHECK_SECONDS, self._dead_worker_seconds / 4)
        self._last_heartbeats: dict[str, tuple[int, float]] = {}
        self._unstarted_checks: Counter[str] = Counter()
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run_loop, name="graphmem-jobs-recovery", daemon=True)

    def start(self) -> None:
        """Check once, which recovers the jobs of a crash on this machine, and then at intervals."""
        self.check()
        self._thread.start()

    def stop(self) -> None:
        """Stop checking."""
        self._stop.set()
        if self._thread.is_alive():
            self._thread.join()

    def _run_loop(self) -> None:
        while not self._stop.wait(self._interval):
            try:
                self.check()
            except JobStoreUnavailable as error:
                self._last_heartbeats.clear()
                log.warning("Job recovery cannot read the job store: %s", error.detail)
            except Exception:
                self._last_heartbeats.clear()
                log.warning("Job recovery failed", exc_info=True)

    def check(self) -> None:
        """Send a heartbeat, abort jobs that another worker has claimed, and recover the jobs of dead workers."""
        self._registry.heartbeat(self._process)
        running = self._running.ids()
        pending = self._store.list_statuses(status="PENDING")
        own_jobs = {status.workflow_id: status for status in pending if status.executor_id == self._process.id}
        for job_id in running - own_jobs.keys():
            self._running.abort(job_id)
        self._requeue_unstarted(own_jobs)
        self._recover_abandoned({str(status.executor_id) for status in pending} - {self._process.id})

    def _requeue_unstarted(self, own_jobs: dict[str, WorkflowStatus]) -> None:
        # Claimed by this worker but run by none of its threads: the job store failed after the claim, or during a step.
        unstarted = own_jobs.keys() - self._running.ids()
        self._unstarted_checks = Counter({job_id: self._unstarted_checks[job_id] + 1 for job_id in unstarted})
        for job_id, checks in self._unstarted_checks.items():
            if checks >= CHECKS_BEFORE_REQUEUE:
                self._store.resume(own_jobs[job_id])

    def _recover_abandoned(self, executor_ids: set[str]) -> None:
        others = {worker.id: worker for worker in self._registry.list_workers() if worker.id != self._process.id}
        dead = {worker.id for worker in others.values() if self._is_dead(worker)}
        abandoned = sorted(executor_ids & dead | executor_ids - others.keys())
        if abandoned:
            recover_jobs_of(abandoned)
            log.info("Recovered the jobs of dead workers: %s", ", ".join(abandoned))
        if dead:
            self._registry.remove(dead)

    def _is_dead(self, worker: WorkerProcess) -> bool:
        now = time.monotonic()
        heartbeat, since = self._last_heartbeats.get(worker.id, (None, now))
        if heartbeat != worker.heartbeat:
            since = now
        self._last_heartbeats[worker.id] = (worker.heartbeat, since)
        return worker.has_exited() or now - since > self._dead_worker_seconds
