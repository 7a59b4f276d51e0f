"""One attempt at one job: its handler runs on the event loop, its steps are recorded on a thread of DBOS."""

from __future__ import annotations

import asyncio
import concurrent.futures
import logging
import queue
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from dbos import DBOS
from dbos import error as dbos_error
from structlog.contextvars import bound_contextvars

from graphmem.jobs.job import JobOutcome
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
from graphmem.jobs.postponements import Postponements
from graphmem.jobs.registry import WorkerProcess, WorkerRegistry
from graphmem.jobs.store import JobStore
from graphmem.neo4j.tenant_context import use_graph, use_tenant
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
            _use_scope_of(self._payload),
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


def _use_scope_of(payload: Mapping[str, Any]) -> AbstractContextManager[None]:
    """Return a block that works for the tenant of a job, or on the graph whose tenants it is for."""
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
