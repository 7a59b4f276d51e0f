"""One attempt at one job: its handler and its steps run on the event loop, while a thread of DBOS waits for the end."""

from __future__ import annotations

import asyncio
import concurrent.futures
import logging
import threading
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from contextvars import copy_context
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
from graphmem.jobs.registry import WorkerProcess, WorkerRegistry
from graphmem.jobs.store import BEHIND_REASON, JobStore
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

MAX_WAITS_FOR_ANSWER = 2
"""How often a job waits after answers that cannot be used, which often stay so."""


@dataclass(frozen=True, slots=True)
class WorkerOptions:
    """How a worker runs jobs.

    It runs `concurrency` jobs side by side. After `dead_worker_seconds` without a heartbeat others run its jobs.
    `retry_delays` are the pauses in seconds before each further try of a step that met an unavailable dependency.

    A job that cannot go on gives its worker back and waits, time after time; after the last of the pauses it fails.
    They last about a day in total: `database_pauses` for the database, `model_pauses` for a model, and
    `handover_pauses` for a worker that knows the kind of the job, which a newer version has queued.
    """

    concurrency: int = 8
    dead_worker_seconds: float = 30.0
    retry_delays: Sequence[float] = (2.0, 8.0, 20.0)
    database_pauses: Sequence[float] = (5.0, 10.0, 20.0, 40.0, 80.0, 160.0, *[300.0] * 287)
    model_pauses: Sequence[float] = (30.0, 120.0, 600.0, 1800.0, *[3600.0] * 23)
    handover_pauses: Sequence[float] = (2.0, 2.0, 5.0, 10.0, 30.0, *[60.0] * 1440)


@dataclass(slots=True)
class WorkerContext:
    """What the parts of a worker share; `threads` record the results of steps."""

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

        Raises JobInterrupted when the job must stop without an outcome, and JobWaits when it must go on later.
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
        """Raise JobWaits for a job behind an earlier one, and for one of a kind that this worker does not know."""
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
            # Other steps than recorded: the handler is not deterministic, or changed with an upgrade.
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
        """Cancel the handler with the step it waits for."""
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
        """Return the record of the next step, after executing it unless an earlier attempt has recorded it.

        A step that makes the job wait is not recorded, so that it is done again.
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
        return StepRecord.model_validate(await loop.run_in_executor(threads, in_context, _store_step, name, new))


def _store_step(name: str, record: dict[str, Any] | None) -> dict[str, Any]:
    """Store the record of the next step of the job whose context this is; without one, return what is stored."""

    def return_record() -> dict[str, Any]:
        if record is None:
            raise JobInterrupted  # what was recorded has been erased meanwhile
        return record

    return DBOS.run_step({"name": name}, return_record)


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
