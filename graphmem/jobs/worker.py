"""A process's worker: its attempts at jobs, and the jobs it takes over from dead workers."""

from __future__ import annotations

import asyncio
import concurrent.futures
import logging
import threading
import time
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from contextvars import copy_context
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import product
from typing import Any, ClassVar

from dbos import DBOS, WorkflowStatus
from dbos import error as dbos_error
from structlog.contextvars import bound_contextvars

from graphmem.jobs.dbos_internals import recover_jobs_of
from graphmem.jobs.job import JobOutcome, JobStatus
from graphmem.jobs.kinds import (
    ExecuteStep,
    JobHandler,
    JobInterrupted,
    JobResult,
    JobWaits,
    StepRecord,
    Steps,
    WaitCause,
    error_detail,
)
from graphmem.jobs.registry import WorkerProcess, WorkerRegistry
from graphmem.jobs.store import (
    APPLICATION,
    APPLICATION_VERSION,
    BEHIND_REASON,
    JOB_WORKFLOW,
    SERIALIZER,
    TICK_WORKFLOW,
    JobStore,
)
from graphmem.neo4j.placed_graph import use_graph, use_tenant
from graphmem.runtime.errors import (
    ConfigurationError,
    DatabaseUnavailable,
    GraphmemError,
    JobStoreUnavailable,
    ModelAnswerUnusable,
    ModelUnavailable,
)
from graphmem.runtime.metrics import JOBS_FINISHED
from graphmem.runtime.retries import DEFAULT_RETRY_AFTER_SECONDS
from graphmem.runtime.settings import HOME_GRAPH
from graphmem.runtime.tracing import span

MAX_WAITS_FOR_ANSWER = 2
"""Maximum number of waits after unusable model answers, which often stay unusable."""


@dataclass(frozen=True, slots=True)
class WorkerOptions:
    """How a worker runs jobs.

    It runs `concurrency` jobs at a time. After `dead_worker_seconds` without a heartbeat, others run its jobs.
    `retry_delays` are the seconds before each retry of a step whose dependency is unavailable.

    A job that cannot continue releases its worker and waits; after the last pause it fails. The pauses last about a day
    in total: `database_pauses` for the database, `model_pauses` for a model, and `handover_pauses` for a worker that
    knows the job's kind, if a newer version queued the job.
    """

    concurrency: int = 8
    dead_worker_seconds: float = 30.0
    retry_delays: Sequence[float] = (2.0, 8.0, 20.0)
    database_pauses: Sequence[float] = (5.0, 10.0, 20.0, 40.0, 80.0, 160.0, *[300.0] * 287)
    model_pauses: Sequence[float] = (30.0, 120.0, 600.0, 1800.0, *[3600.0] * 23)
    handover_pauses: Sequence[float] = (2.0, 2.0, 5.0, 10.0, 30.0, *[60.0] * 1440)


@dataclass(slots=True)
class WorkerContext:
    """State shared by the parts of a worker; `threads` record the results of steps."""

    store: JobStore
    registry: WorkerRegistry
    handlers: Mapping[str, JobHandler[Any]]
    loop: asyncio.AbstractEventLoop
    options: WorkerOptions
    process: WorkerProcess
    running: RunningJobs
    threads: ThreadPoolExecutor


class JobRun:
    """One attempt at one job. `run` is called on DBOS's thread, `abort` on any thread, the rest on the event loop."""

    def __init__(self, context: WorkerContext, job_id: str, kind: str, payload: dict[str, Any]) -> None:
        self.job_id = job_id
        self._context = context
        self._kind = kind
        self._payload = payload
        self._steps = Steps(job_id, self._record, context.options.retry_delays, self._find_wait)
        self._recorded_steps = 0
        self._task: asyncio.Task[Any] | None = None
        self._aborted = False

    def run(self) -> JobResult:
        """Run the handler to its end, recording each of its steps.

        Raises JobInterrupted if the job must stop without an outcome, and JobWaits if it must continue later.
        """
        try:
            return self._run()
        except JobStoreUnavailable as error:  # the worker queues the job again when the store is back
            log.warning("Job %s goes on when the job store answers again: %s", self.job_id, error.detail)
            raise JobInterrupted from error

    def _run(self) -> JobResult:
        self._context.running.add(self)
        # The handler runs on the event loop with a copy of what is bound here.
        with (
            bound_contextvars(job_id=self.job_id),
            _use_scope_of(self._payload),
            span(f"job {self._kind}", graphmem__job_id=self.job_id) as current,
        ):
            try:
                self._context.registry.claim(self.job_id, self._context.process.id)
                self._check_turn()
                result = self._run_handler()
                current.set_attribute("graphmem.job_status", result.status)
                JOBS_FINISHED.labels(self._kind, result.status).inc()
                seconds = result.receipt.seconds
                log.info("job", extra={"kind": self._kind, "status": result.status, "seconds": seconds})
                return result
            except JobWaits as wait:
                level = logging.INFO if wait.cause is WaitCause.EARLIER_JOB else logging.WARNING
                log.log(level, "Job %s waits %.0f s: %s", self.job_id, wait.seconds, wait.reason)
                self._context.store.delay(self.job_id, wait)
                raise
            finally:
                self._release()

    def _check_turn(self) -> None:
        """Raise JobWaits if the job is behind an earlier one or this worker does not know its kind."""
        store = self._context.store
        if (seconds := store.seconds_of_earlier_job(self.job_id)) is not None:
            raise JobWaits(BEHIND_REASON, seconds, WaitCause.EARLIER_JOB)
        if self._kind not in self._context.handlers:
            pauses = self._context.options.handover_pauses
            reason = f"this worker knows no job of kind {self._kind!r}; a newer one does it"
            if wait := self._next_wait(WaitCause.NEWER_WORKER, pauses, reason):
                raise wait

    def _run_handler(self) -> JobResult:
        started = time.monotonic()
        try:
            self._recorded_steps = self._context.store.count_steps(self.job_id)
            result = JobResult.from_outcome(self._wait_for_handler())
        except dbos_error.DBOSException as error:
            # The steps differ from the records: the handler is not deterministic, or changed with an upgrade.
            log.warning("Job %s failed: %s", self.job_id, error.message)
            result = JobResult.failed(error.message, self._steps.receipt, restarts_when_retried=True)
        except Exception as error:
            if isinstance(error, DatabaseUnavailable | JobStoreUnavailable) and (wait := self._find_wait(error)):
                raise wait from None
            self._log_failure(error)
            result = JobResult.failed(error_detail(error), self._steps.receipt)
        result.receipt = result.receipt.model_copy(update={"seconds": round(time.monotonic() - started, 3)})
        result.retries = self._steps.retry_count
        result.finished_at = datetime.now(UTC)
        return result

    def _wait_for_handler(self) -> JobOutcome:
        """Return the outcome of the handler; raise its error, or JobInterrupted, only once it has ended."""
        handling = self._handle()
        try:
            ended = asyncio.run_coroutine_threadsafe(handling, self._context.loop)
        except RuntimeError:  # the application's event loop is closed
            handling.close()
            raise JobInterrupted from None
        while not concurrent.futures.wait({ended}, timeout=1).done:
            if self._context.loop.is_closed():
                raise JobInterrupted
        if self._aborted or ended.cancelled():
            raise JobInterrupted
        return ended.result()

    def _log_failure(self, error: Exception) -> None:
        if isinstance(error, GraphmemError):
            bug = error.__cause__ if not isinstance(error.__cause__, GraphmemError) else None
            log.warning("Job %s failed: %s", self.job_id, error.detail, exc_info=bug)
        else:
            log.warning("Job %s failed", self.job_id, exc_info=error)

    def _release(self) -> None:
        try:
            self._context.registry.release(self.job_id, self._context.process.id)
        except JobStoreUnavailable as error:
            log.warning("Job %s is still registered as running here: %s", self.job_id, error.detail)
        finally:
            self._context.running.remove(self.job_id)

    def _find_wait(self, error: Exception) -> JobInterrupted | None:
        """Return how the job waits after an error of a dependency; None to let it fail."""
        options = self._context.options
        if isinstance(error, JobStoreUnavailable):
            return JobInterrupted()  # nothing can be stored; the worker queues the job again when the store is back
        if isinstance(error, DatabaseUnavailable):
            return self._next_wait(WaitCause.DATABASE, options.database_pauses, error.detail)
        if isinstance(error, ModelUnavailable) and error.retry_after is not None:
            limit = MAX_WAITS_FOR_ANSWER if isinstance(error, ModelAnswerUnusable) else None
            asked = error.retry_after if error.retry_after > DEFAULT_RETRY_AFTER_SECONDS else 0.0
            return self._next_wait(WaitCause.OUTSIDE, options.model_pauses[:limit], error.detail, asked)
        return None

    def _next_wait(
        self, cause: WaitCause, pauses: Sequence[float], reason: str, at_least: float = 0.0
    ) -> JobWaits | None:
        waits = self._context.store.count_waits(self.job_id, cause)
        return JobWaits(reason, max(pauses[waits], at_least), cause) if waits < len(pauses) else None

    def abort(self) -> None:
        """Cancel the handler and its current step."""
        self._aborted = True
        try:
            self._context.loop.call_soon_threadsafe(self._cancel_handler)
        except RuntimeError:  # the event loop is closed
            return

    def _cancel_handler(self) -> None:
        if self._task is not None:
            self._task.cancel()

    async def _handle(self) -> JobOutcome:
        if self._aborted:
            raise JobInterrupted
        self._task = asyncio.current_task()
        handler = self._context.handlers.get(self._kind)
        if handler is None:
            raise ConfigurationError(f"This worker knows no job of kind {self._kind!r}; update it, then retry the job.")
        return await handler.run(self._payload, self._steps)

    async def _record(self, name: str, execute: ExecuteStep) -> StepRecord:
        """Return the next step's record, executing the step unless an earlier attempt recorded it.

        A step that makes the job wait is not recorded, so that it runs again.
        """
        if self._aborted:
            raise asyncio.CancelledError
        new = None
        if self._recorded_steps:
            self._recorded_steps -= 1
        else:
            new = (await execute()).model_dump(exclude_unset=True)
        in_context = copy_context().run
        loop, threads = asyncio.get_running_loop(), self._context.threads
        return StepRecord.model_validate(
            await loop.run_in_executor(threads, lambda: in_context(_store_step, name, new))
        )


def _store_step(name: str, record: dict[str, Any] | None) -> dict[str, Any]:
    """Store the record of the current job's next step; without a record, return the stored one."""

    def return_record() -> dict[str, Any]:
        if record is None:
            raise JobInterrupted  # the record has been erased meanwhile
        return record

    return DBOS.run_step({"name": name}, return_record)


def _use_scope_of(payload: Mapping[str, Any]) -> AbstractContextManager[None]:
    """Return a context manager that selects the job's tenant, or its graph if it has no tenant."""
    tenant = payload.get("tenant")
    return use_tenant(tenant) if tenant else use_graph(payload.get("graph") or HOME_GRAPH)


class RunningJobs:
    """The jobs whose handlers run in this process, by id. Safe to use from any thread."""

    def __init__(self) -> None:
        self._runs: dict[str, JobRun] = {}
        self._lock = threading.Lock()
        self._closed = False

    def add(self, run: JobRun) -> None:
        """Add a run; raise JobInterrupted after `close`."""
        with self._lock:
            if self._closed:
                raise JobInterrupted
            self._runs[run.job_id] = run

    def remove(self, job_id: str) -> None:
        """Remove a run that has ended."""
        with self._lock:
            del self._runs[job_id]

    def ids(self) -> set[str]:
        """Return the ids of the running jobs."""
        with self._lock:
            return set(self._runs)

    def abort(self, job_id: str) -> None:
        """Stop a job without an outcome; do nothing when it does not run here."""
        with self._lock:
            run = self._runs.get(job_id)
        if run is not None:
            run.abort()

    def close(self, timeout: float) -> None:
        """Accept no more runs, abort all current ones, and wait up to `timeout` seconds for them to end."""
        with self._lock:
            self._closed = True
            runs = list(self._runs.values())
        for run in runs:
            run.abort()
        deadline = time.monotonic() + timeout
        while self.ids() and time.monotonic() < deadline:
            time.sleep(0.02)


log = logging.getLogger(__name__)

MAX_RECOVERY_ATTEMPTS = 10
"""Number of workers that a job may crash before it is given up."""

SHUTDOWN_TIMEOUT_SECONDS = 5.0
"""Seconds that closing waits for aborted handlers."""


class Worker:
    """Runs jobs until closed. DBOS is global, so a process has one worker at a time. Methods block."""

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
        """Start working; raise ConfigurationError if this process already has a worker."""
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
        """Stop working; the next worker resumes interrupted jobs after their last finished step."""
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
"""Number of consecutive checks that must find a claimed job without a handler before it is queued again."""

MAX_CHECK_SECONDS = 2.0
"""Maximum seconds between checks; a quarter of `dead_worker_seconds` if that is less."""


class JobRecovery:
    """A thread that checks the job store at regular intervals.

    A worker is dead if it has left, if its process on this machine is gone, or if its heartbeat has not changed for
    `dead_worker_seconds` seconds by this machine's clock, so that the clocks of two machines need not agree. A check
    that fails discards the heartbeats seen, so that no worker counts as dead after an outage of the job store.
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
        """Check once, recovering jobs after a crash on this machine, and then at intervals."""
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
