"""Running jobs: a handler on the application's event loop, its records on a thread of DBOS."""

from __future__ import annotations

import asyncio
import concurrent.futures
import logging
import queue
import threading
import time
from collections.abc import Callable, Coroutine, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from dbos import DBOS
from dbos import error as dbos_error

from graphmem.jobs.job import JobOutcome
from graphmem.jobs.postponement import POSTPONING_ERRORS
from graphmem.jobs.records import JobResult, StepRecord
from graphmem.jobs.steps import ExecuteStep, FindPause, JobInterrupted, Steps, error_detail
from graphmem.runtime.errors import GraphmemError

log = logging.getLogger(__name__)

_POSTPONING_NAMES = {error.__name__ for error in POSTPONING_ERRORS}

StartHandler = Callable[[Steps], Coroutine[Any, Any, JobOutcome]]
"""Start the handler of a job with its steps."""


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
    """One attempt at one job. `run` is called on DBOS's thread, `abort` on any thread.

    `postpone` decides whether a job that met an unavailable database is tried again later.
    """

    def __init__(
        self,
        job_id: str,
        start: StartHandler,
        *,
        loop: asyncio.AbstractEventLoop,
        retry_delays: Sequence[float],
        postpone: Callable[[], bool],
        find_pause: FindPause,
    ) -> None:
        self.job_id = job_id
        self._postpone = postpone
        self._start = start
        self._loop = loop
        self._steps = Steps(job_id, self._record, retry_delays, find_pause)
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
        seconds = round(time.monotonic() - started, 3)
        return result.model_copy(
            update={
                "receipt": result.receipt.model_copy(update={"seconds": seconds}),
                "retries": self._steps.retry_count,
                "finished_at": datetime.now(UTC),
            }
        )

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
        self._task = self._loop.create_task(self._start(self._steps))
        self._task.add_done_callback(self._on_handler_done)
        if self._aborted:
            self._task.cancel()

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
