"""The worker of a process: it claims jobs, runs their handlers on the event loop, and takes over from dead ones."""

from __future__ import annotations

import asyncio
import concurrent.futures
import logging
import queue
import threading
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
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
from graphmem.jobs.store import APPLICATION, APPLICATION_VERSION, JOB_WORKFLOW, SERIALIZER, TICK_WORKFLOW, JobStore
from graphmem.neo4j.work import working_for, working_in
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

log = logging.getLogger(__name__)

POSTPONING_ERRORS = (DatabaseUnavailable, JobStoreUnavailable)
"""Errors after which a job is tried again later: the work was not at fault, and no other worker can do it either."""

_POSTPONING_NAMES = {error.__name__ for error in POSTPONING_ERRORS}

MAX_WAITS_FOR_ANSWER = 2
"""How often a job waits after answers that cannot be used, which often stay so."""


@dataclass(frozen=True, slots=True)
class WorkerOptions:
    """How a worker runs jobs.

    It runs `concurrency` jobs side by side. After `dead_worker_seconds` without a heartbeat others run its jobs.
    `retry_delays` are the pauses in seconds before each further try of a step that met an unavailable dependency.
    A job that meets an unavailable database is tried again after `first_postponement` seconds, then after pauses that
    double. One that meets an unavailable model gives its worker back and waits as long as `model_pauses` say, time
    after time, about a day in total; then it fails. So does one of a kind that the worker does not know, which a newer
    version has queued, as long as `handover_pauses` say: a worker of that version takes it meanwhile.
    """

    concurrency: int = 8
    dead_worker_seconds: float = 30.0
    retry_delays: Sequence[float] = (2.0, 8.0, 20.0)
    first_postponement: float = 5.0
    model_pauses: Sequence[float] = (30.0, 120.0, 600.0, 1800.0, *[3600.0] * 23)
    handover_pauses: Sequence[float] = (2.0, 2.0, 5.0, 10.0, 30.0, *[60.0] * 1440)


@dataclass(slots=True)
class WorkerContext:
    """What the parts of a worker share."""

    store: JobStore
    registry: WorkerRegistry
    handlers: Mapping[str, JobHandler[Any]]
    loop: asyncio.AbstractEventLoop
    options: WorkerOptions
    process: WorkerProcess
    running: RunningJobs
    postponements: Postponements


class JobPostponed(JobInterrupted):
    """The job stops here without an outcome: a database is unavailable, and this worker runs it again later."""


@dataclass(frozen=True, slots=True)
class _PendingStep:
    """A step the handler waits for; `record` is set on the event loop."""

    name: str
    execute: ExecuteStep
    record: asyncio.Future[StepRecord]

    def resolve(self, record: StepRecord) -> None:
        if not self.record.done():
            self.record.set_result(record)


class JobRun:
    """One attempt at one job. `run` is called on DBOS's thread, `abort` on any thread."""

    def __init__(self, context: WorkerContext, job_id: str, kind: str, payload: dict[str, Any]) -> None:
        self.job_id = job_id
        self._context = context
        self._kind = kind
        self._payload = payload
        self._loop = context.loop
        self._steps = Steps(job_id, self._record, context.options.retry_delays, self._find_pause)
        self._pending: queue.SimpleQueue[_PendingStep | None] = queue.SimpleQueue()
        self._task: asyncio.Task[JobOutcome] | None = None
        self._executing: concurrent.futures.Future[StepRecord] | None = None
        self._ended = threading.Event()
        self._aborted = False

    # On DBOS's thread

    def run(self) -> JobResult:
        """Run the handler to its end, recording each step it asks for.

        A step that met an unavailable database is not recorded when the job is postponed, so that it is done again.
        Raises JobInterrupted when the job must stop, and JobWaits when it must go on later.
        """
        store = self._context.store
        self._context.running.add(self)
        # The handler runs on the event loop with a copy of what is bound here.
        with (
            bound_contextvars(job_id=self.job_id),
            _working_for(self._payload),
            span(f"job {self._kind}", graphmem__job_id=self.job_id) as current,
        ):
            try:
                self._context.registry.claim(self.job_id, self._context.process.id)
                if (seconds := store.seconds_of_earlier_wait(self.job_id)) is not None:
                    raise JobWaits("an earlier job of this user waits", seconds, WaitCause.EARLIER_JOB)
                if (seconds := self._find_handover_pause()) is not None:
                    reason = f"this worker knows no job of kind {self._kind!r}; a newer one does it"
                    raise JobWaits(reason, seconds, WaitCause.NEWER_WORKER)
                result = self._run_handler()
                current.set_attribute("graphmem.job_status", result.status)
                JOBS_FINISHED.labels(self._kind, result.status).inc()
                seconds = result.receipt.seconds
                log.info("job", extra={"kind": self._kind, "status": result.status, "seconds": seconds})
                return result
            except JobWaits as wait:
                log.warning("Job %s waits %.0f s: %s", self.job_id, wait.seconds, wait.reason)
                store.delay(self.job_id, wait)
                raise
            finally:
                self._release()

    def _find_handover_pause(self) -> float | None:
        """Return how long the job waits for a worker that knows its kind; None when it waits no longer, or is known."""
        if self._kind in self._context.handlers:
            return None
        pauses = self._context.options.handover_pauses
        handovers = self._context.store.count_waits(self.job_id, WaitCause.NEWER_WORKER)
        return pauses[handovers] if handovers < len(pauses) else None

    def _run_handler(self) -> JobResult:
        started = time.monotonic()
        self._call_on_loop(self._start_handler)
        try:
            for step in self._pending_steps():
                stored = DBOS.run_step({"name": step.name}, self._execute, step)
                self._call_on_loop(step.resolve, StepRecord.model_validate(stored))
            result = self._result()
        except dbos_error.DBOSException as error:
            # Other steps than recorded: the handler is not deterministic, or changed with an upgrade.
            self._abort_and_wait()
            log.warning("Job %s failed: %s", self.job_id, error.message)
            result = JobResult.failed(error.message, self._steps.receipt, restarts_when_retried=True)
        except BaseException:
            self._abort_and_wait()
            raise
        result.receipt = result.receipt.model_copy(update={"seconds": round(time.monotonic() - started, 3)})
        result.retries = self._steps.retry_count
        result.finished_at = datetime.now(UTC)
        return result

    def _pending_steps(self) -> Iterator[_PendingStep]:
        while True:
            try:
                step = self._pending.get(timeout=1)
            except queue.Empty:
                if self._loop.is_closed():
                    raise JobInterrupted from None
                continue
            if step is None:
                return
            yield step

    def _execute(self, step: _PendingStep) -> dict[str, Any]:
        if self._aborted:
            raise JobInterrupted
        self._executing = asyncio.run_coroutine_threadsafe(step.execute(), self._loop)
        if self._aborted:
            self._executing.cancel()
        try:
            record = self._executing.result()
        except concurrent.futures.CancelledError:
            raise JobInterrupted from None
        if record.error in _POSTPONING_NAMES and self._postpone():
            raise JobPostponed
        return record.model_dump(exclude_unset=True)

    def _result(self) -> JobResult:
        task = self._task
        if task is None or task.cancelled() or self._aborted:
            raise JobInterrupted
        error = task.exception()
        if isinstance(error, JobInterrupted):
            raise error
        if error is None:
            return JobResult.from_outcome(task.result())
        if isinstance(error, POSTPONING_ERRORS) and self._postpone():
            raise JobPostponed
        if isinstance(error, GraphmemError):
            bug = error.__cause__ if not isinstance(error.__cause__, GraphmemError) else None
            log.warning("Job %s failed: %s", self.job_id, error.detail, exc_info=bug)
        else:
            log.warning("Job %s failed", self.job_id, exc_info=error)
        return JobResult.failed(error_detail(error), self._steps.receipt)

    def _postpone(self) -> bool:
        pause = self._context.postponements.postpone(self.job_id)
        if pause is not None:
            log.warning("job postponed", extra={"kind": self._kind, "seconds": pause})
        return pause is not None

    def _release(self) -> None:
        try:
            self._context.registry.release(self.job_id, self._context.process.id)
        except JobStoreUnavailable as error:
            log.warning("Job %s is still registered as running here: %s", self.job_id, error.detail)
        finally:
            self._context.running.remove(self.job_id)

    def _abort_and_wait(self) -> None:
        self.abort()
        while not self._ended.wait(1) and not self._loop.is_closed():
            pass

    def _call_on_loop(self, callback: Callable[..., object], *args: Any) -> None:
        try:
            self._loop.call_soon_threadsafe(callback, *args)
        except RuntimeError:  # the application's event loop is closed
            raise JobInterrupted from None

    # On any thread

    def _find_pause(self, error: ModelUnavailable) -> float | None:
        """Return how long the job waits for a model, at least as long as its server asks; None to let it fail."""
        limit = MAX_WAITS_FOR_ANSWER if isinstance(error, ModelAnswerUnusable) else None
        pauses = self._context.options.model_pauses[:limit]
        waits = self._context.store.count_waits(self.job_id, WaitCause.OUTSIDE)
        if waits >= len(pauses):
            return None
        asked = error.retry_after or 0
        return max(pauses[waits], asked) if asked > DEFAULT_RETRY_AFTER_SECONDS else pauses[waits]

    def abort(self) -> None:
        """Cancel the handler and the step it waits for."""
        self._aborted = True
        if self._executing is not None:
            self._executing.cancel()
        try:
            self._loop.call_soon_threadsafe(self._cancel_handler)
        except RuntimeError:
            return

    # On the event loop

    def _start_handler(self) -> None:
        self._task = self._loop.create_task(self._handle())
        self._task.add_done_callback(self._on_handler_done)
        if self._aborted:
            self._task.cancel()

    async def _handle(self) -> JobOutcome:
        handler = self._context.handlers.get(self._kind)
        if handler is None:
            raise ConfigurationError(f"This worker knows no job of kind {self._kind!r}; update it, then retry the job.")
        return await handler.run(self._payload, self._steps)

    def _on_handler_done(self, _: object) -> None:
        self._ended.set()
        self._pending.put(None)

    def _cancel_handler(self) -> None:
        if self._task is not None:
            self._task.cancel()

    async def _record(self, name: str, execute: ExecuteStep) -> StepRecord:
        if self._aborted:
            raise asyncio.CancelledError
        step = _PendingStep(name, execute, asyncio.get_running_loop().create_future())
        self._pending.put(step)
        return await step.record


def _working_for(payload: Mapping[str, Any]) -> AbstractContextManager[None]:
    """Return a block that works for the tenant of a job, or on the graph whose tenants it is for."""
    tenant = payload.get("tenant")
    return working_for(tenant) if tenant else working_in(payload.get("graph") or HOME_GRAPH)


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
        """Return the ids of the jobs that run."""
        with self._lock:
            return set(self._runs)

    def abort(self, job_id: str) -> None:
        """Stop a job without an outcome; do nothing when it does not run here."""
        with self._lock:
            run = self._runs.get(job_id)
        if run is not None:
            run.abort()

    def close(self, timeout: float) -> None:
        """Take no further run, abort all, and wait up to `timeout` seconds for them to end."""
        with self._lock:
            self._closed = True
            runs = list(self._runs.values())
        for run in runs:
            run.abort()
        deadline = time.monotonic() + timeout
        while self.ids() and time.monotonic() < deadline:
            time.sleep(0.02)


MAX_PAUSE_SECONDS = 300.0
"""Longest pause in seconds."""

MAX_WAIT_SECONDS = 86_400.0
"""Seconds after which a job that is still postponed fails, so that one that always fails does not block its user."""


@dataclass(slots=True)
class _Postponement:
    since: float
    pause: float
    due: float


class Postponements:
    """The postponed jobs of a worker. Safe to use from any thread.

    They are not stored: a job that is postponed counts as running in the job store, so that another worker runs it when
    this one ends.
    """

    def __init__(self, first_pause: float) -> None:
        self._first_pause = first_pause
        self._jobs: dict[str, _Postponement] = {}
        self._lock = threading.Lock()

    def postpone(self, job_id: str) -> float | None:
        """Return the seconds until a job shall be tried again; None when it has been postponed for too long."""
        now = time.monotonic()
        with self._lock:
            known = self._jobs.get(job_id)
            since = known.since if known else now
            if now - since > MAX_WAIT_SECONDS:
                return None
            pause = min(2 * known.pause, MAX_PAUSE_SECONDS) if known else self._first_pause
            self._jobs[job_id] = _Postponement(since, pause, now + pause)
            return pause

    def is_due(self, job_id: str) -> bool | None:
        """Return whether the pause of a postponed job is over; None for another job."""
        with self._lock:
            known = self._jobs.get(job_id)
            return None if known is None else known.due <= time.monotonic()

    def retain(self, job_ids: Collection[str]) -> None:
        """Forget all other jobs, which have ended or belong to another worker now."""
        with self._lock:
            self._jobs = {job_id: known for job_id, known in self._jobs.items() if job_id in job_ids}


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
        self._postponements = context.postponements
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
        # Claimed by this worker but run by none of its threads: postponed, or the job store failed between the two.
        running = self._running.ids()
        self._postponements.retain(own_jobs.keys() | running)
        is_due = {job_id: self._postponements.is_due(job_id) for job_id in own_jobs.keys() - running}
        unstarted = [job_id for job_id, due in is_due.items() if due is None]
        self._unstarted_checks = Counter({job_id: self._unstarted_checks[job_id] + 1 for job_id in unstarted})
        for job_id, due in is_due.items():
            if due or self._unstarted_checks[job_id] >= CHECKS_BEFORE_REQUEUE:
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
            postponements=Postponements(options.first_postponement),
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
        DBOS.destroy(destroy_registry=True)
        Worker._active = None
        try:
            self._context.registry.remove([self._context.process.id])
        except JobStoreUnavailable as error:
            log.warning("Other workers will find out late that this one has closed: %s", error.detail)
