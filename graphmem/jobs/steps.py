"""A running job: its handler on the application's event loop, its records on a thread of DBOS."""

from __future__ import annotations

import asyncio
import concurrent.futures
import json
import logging
import queue
import threading
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from datetime import UTC, datetime
from typing import Any, TypeVar

from dbos import DBOS
from dbos import error as dbos_error
from tenacity import AsyncRetrying, retry_if_exception, stop_after_attempt, wait_chain, wait_fixed

from graphmem.domain.job import JobOutcome, JobStatus, Receipt
from graphmem.errors import ConfigurationError, GraphmemError, Unavailable
from graphmem.tracing import span

log = logging.getLogger(__name__)

T = TypeVar("T")
JobHandler = Callable[[dict[str, Any], "Steps"], Awaitable[JobOutcome]]
StepResult = dict[str, Any]


class JobInterrupted(BaseException):
    """The job stops here without an outcome: this process is closing or no longer owns it.

    Not an Exception, because DBOS records those as the job's end.
    """


class Steps:
    """What a handler does its work with: steps whose results outlive the process."""

    def __init__(self, run: JobRun) -> None:
        self._run = run

    @property
    def job_id(self) -> str:
        """The id of the job, the same in every attempt."""
        return self._run.job_id

    async def run(self, name: str, fn: Callable[[], Awaitable[T]]) -> T:
        """Do `fn` once in the life of the job and return its result; a finished step is answered from its record.

        The result must survive JSON, and comes back as JSON gives it (tuples as lists). A model, Neo4j or the job
        store being away is tried again with growing delays; any other error, and the last of these, is recorded and
        raised: as itself when it is a GraphmemError, else as a GraphmemError naming it.
        """
        call = _StepCall(name, fn)
        return _unwrap(await self._run.run_recorded(call), call.cause)  # type: ignore[no-any-return]

    async def run_idempotent(self, name: str, fn: Callable[[], Awaitable[T]]) -> T:
        """Do `fn` each time the job gets there, tried again as a step is, but without a record to write.

        It is for work that keeps a record of its own: done again, it changes nothing and answers what it did.
        """
        call = _StepCall(name, fn)
        return _unwrap(await self._run.run_with_retries(call), call.cause)  # type: ignore[no-any-return]


class _StepCall:
    """One step asked for by the handler."""

    def __init__(self, name: str, fn: Callable[[], Awaitable[Any]]) -> None:
        self.name = name
        self.fn = fn
        self.done: asyncio.Future[StepResult] = asyncio.get_running_loop().create_future()
        self.cause: BaseException | None = None

    def set_result(self, step_result: StepResult) -> None:
        if not self.done.done():
            self.done.set_result(step_result)


class JobRun:
    """One attempt at one job. `run_handler` is called on DBOS's thread, `abort` anywhere, the rest on the event loop."""

    def __init__(
        self,
        job_id: str,
        handler: JobHandler,
        payload: dict[str, Any],
        *,
        loop: asyncio.AbstractEventLoop,
        retry_delays: Sequence[float],
    ) -> None:
        self.job_id = job_id
        self._handler = handler
        self._payload = payload
        self._loop = loop
        self._retry_delays = retry_delays
        self._calls: queue.SimpleQueue[_StepCall | None] = queue.SimpleQueue()
        self._task: asyncio.Task[JobOutcome] | None = None
        self._step: concurrent.futures.Future[StepResult] | None = None
        self._ended = threading.Event()
        self._aborted = False
        self._retry_count = 0

    # On DBOS's thread

    def run_handler(self) -> dict[str, Any]:
        """Run the handler to its end, recording each step it asks for; raise JobInterrupted when the job must stop."""
        started = time.monotonic()
        self._call_on_loop(self._start_handler)
        try:
            for call in self._step_calls():
                step_result = DBOS.run_step({"name": call.name}, self._record_step, call)
                self._call_on_loop(call.set_result, step_result)
            result = self._job_result()
        except dbos_error.DBOSException as error:
            # Other steps than recorded: the handler is not deterministic, or changed with an upgrade.
            self._abort_and_wait()
            log.warning("Job %s failed: %s", self.job_id, error.message)
            result = {**_failed_result(error.message), "from_start": True}
        except BaseException:
            self._abort_and_wait()
            raise
        receipt = {**result["receipt"], "seconds": round(time.monotonic() - started, 3)}
        return {
            **result,
            "receipt": receipt,
            "retries": self._retry_count,
            "finished_at": datetime.now(UTC).isoformat(),
        }

    def _step_calls(self) -> Iterator[_StepCall]:
        while True:
            try:
                call = self._calls.get(timeout=1)
            except queue.Empty:
                if self._loop.is_closed():
                    raise JobInterrupted from None
                continue
            if call is None:
                return
            yield call

    def _record_step(self, call: _StepCall) -> StepResult:
        if self._aborted:
            raise JobInterrupted
        self._step = asyncio.run_coroutine_threadsafe(self.run_with_retries(call), self._loop)
        if self._aborted:
            self._step.cancel()
        try:
            return self._step.result()
        except concurrent.futures.CancelledError:
            raise JobInterrupted from None

    def _job_result(self) -> dict[str, Any]:
        task = self._task
        if task is None or task.cancelled() or self._aborted:
            raise JobInterrupted
        error = task.exception()
        if error is None:
            return {**task.result().model_dump(mode="json"), "error": None}
        if isinstance(error, GraphmemError):
            bug = error.__cause__ if not isinstance(error.__cause__, GraphmemError) else None
            log.warning("Job %s failed: %s", self.job_id, error.detail, exc_info=bug)
            return _failed_result(error.detail)
        log.warning("Job %s failed", self.job_id, exc_info=error)
        return _failed_result(_error_detail(error))

    def _abort_and_wait(self) -> None:
        self.abort()
        while not self._ended.wait(1) and not self._loop.is_closed():
            pass

    def _call_on_loop(self, callback: Callable[..., object], *args: Any) -> None:
        try:
            self._loop.call_soon_threadsafe(callback, *args)
        except RuntimeError:  # the application's event loop is gone
            raise JobInterrupted from None

    # Anywhere

    def abort(self) -> None:
        """Cancel the handler and the step it delays for."""
        self._aborted = True
        if self._step is not None:
            self._step.cancel()
        try:
            self._loop.call_soon_threadsafe(self._cancel_handler)
        except RuntimeError:
            return

    # On the event loop

    def _start_handler(self) -> None:
        self._task = asyncio.ensure_future(self._handler(self._payload, Steps(self)))
        self._task.add_done_callback(self._on_handler_done)
        if self._aborted:
            self._task.cancel()

    def _on_handler_done(self, _: object) -> None:
        self._ended.set()
        self._calls.put(None)

    def _cancel_handler(self) -> None:
        if self._task is not None:
            self._task.cancel()

    async def run_recorded(self, call: _StepCall) -> StepResult:
        """Have a step done and recorded."""
        if self._aborted:
            raise asyncio.CancelledError
        self._calls.put(call)
        return await call.done

    async def run_with_retries(self, call: _StepCall) -> StepResult:
        """Do a step, again while its failure may pass."""
        delays = self._retry_delays
        retrying = AsyncRetrying(
            retry=retry_if_exception(_is_transient),
            stop=stop_after_attempt(len(delays) + 1),
            wait=wait_chain(*map(wait_fixed, delays)),
            reraise=True,
        )
        try:
            async for attempt in retrying:
                with attempt:
                    self._retry_count += attempt.retry_state.attempt_number > 1
                    with span(f"step {call.name}"):
                        value = await call.fn()
            return {"value": _to_json(call.name, value)}
        except Exception as error:
            call.cause = error
            known = isinstance(error, GraphmemError)
            return {"error": type(error).__name__ if known else "", "detail": _error_detail(error)}


def _is_transient(error: BaseException) -> bool:
    return (
        isinstance(error, Unavailable) and not isinstance(error, ConfigurationError) and error.retry_after is not None
    )


def _to_json(name: str, value: Any) -> Any:
    try:
        return json.loads(json.dumps(value))
    except (TypeError, ValueError) as error:
        raise GraphmemError(f"Step {name!r} must return what JSON can hold: {error}.") from error


def _unwrap(step_result: StepResult, cause: BaseException | None) -> Any:
    # The error is rebuilt from its record on the first run too, so that a handler meets the same one after a crash.
    if "error" not in step_result:
        return step_result["value"]
    known = {error.__name__: error for error in _all_subclasses(GraphmemError)}
    raise known.get(step_result["error"], GraphmemError)(step_result["detail"]) from cause


def _all_subclasses(root: type[GraphmemError]) -> Iterator[type[GraphmemError]]:
    yield root
    for child in root.__subclasses__():
        yield from _all_subclasses(child)


def _error_detail(error: BaseException) -> str:
    return error.detail if isinstance(error, GraphmemError) else f"{type(error).__name__}: {error}"


def _failed_result(error: str) -> dict[str, Any]:
    return {
        "status": JobStatus.FAILED.value,
        "reason": None,
        "error": error,
        "actions": [],
        "receipt": Receipt().model_dump(),
    }
