"""Job kinds, their payloads, and the steps of their handlers; step results outlive the process."""

from __future__ import annotations

import asyncio
import traceback
from abc import abstractmethod
from collections.abc import Awaitable, Callable, Coroutine, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import Any, Generic, TypeVar

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter
from tenacity import AsyncRetrying, retry_if_exception, stop_after_attempt, wait_chain, wait_fixed

from graphmem.jobs.job import JobOutcome, JobStatus
from graphmem.models.language_model import Receipt
from graphmem.runtime.errors import ConfigurationError, GraphmemError, ModelUnavailable, Unavailable
from graphmem.runtime.tracing import span
from graphmem.tenants.owners import Owner


class StepRecord(BaseModel):
    """How a step ended: with a JSON value, or with an error.

    `error` is the class name of a GraphmemError, empty for another exception, None for a step that succeeded.
    """

    value: Any = None
    error: str | None = None
    detail: str = ""

    @property
    def has_failed(self) -> bool:
        """Whether the step ended with an error."""
        return self.error is not None


class JobResult(BaseModel):
    """How a job ended.

    `retries` counts the retries of its steps. `restarts_when_retried` is true if its step records do not match its
    handler, so that a retry must not use them.
    """

    status: JobStatus
    reason: str | None = None
    error: str | None = None
    actions: list[dict[str, Any]] = Field(default_factory=list)
    receipt: Receipt = Field(default_factory=Receipt)
    retries: int = 0
    restarts_when_retried: bool = False
    finished_at: datetime | None = None

    @classmethod
    def from_outcome(cls, outcome: JobOutcome) -> JobResult:
        """Return the result of a handler that returned."""
        return cls(
            status=outcome.status,
            reason=outcome.reason,
            actions=[action.to_json() for action in outcome.actions],
            receipt=outcome.receipt,
        )

    @classmethod
    def failed(cls, error: str, receipt: Receipt, *, restarts_when_retried: bool = False) -> JobResult:
        """Return the result of a handler that raised; `receipt` is the cost of its steps."""
        return cls(status=JobStatus.FAILED, error=error, receipt=receipt, restarts_when_retried=restarts_when_retried)


T = TypeVar("T")

ExecuteStep = Callable[[], Coroutine[Any, Any, StepRecord]]
"""Run a step and return its record; never raises."""

RecordStep = Callable[[str, ExecuteStep], Awaitable[StepRecord]]
"""Return the stored record of the job's next step, or run the step and store its record."""


FindWait = Callable[[Exception], "JobInterrupted | None"]
"""Return how a job waits after a dependency's error, or None if the error is final; blocks."""


class JobInterrupted(BaseException):
    """The job stops here without an outcome: this process is closing or no longer owns it.

    Not an Exception, because DBOS records those as the job's end.
    """


class WaitCause(StrEnum):
    """Why a job waits; the value is the job's attribute that counts these waits.

    A job that waits for a time takes its place in the queue at that time: jobs queued meanwhile run first.
    """

    OUTSIDE = "waits"
    DATABASE = "postponements"
    NEWER_WORKER = "handovers"
    EARLIER_JOB = "waits_behind"
    ITS_TIME = "waits_for_time"


class JobWaits(JobInterrupted):
    """The job stops here and continues after `seconds`; `reason` says why.

    A step of the job raises it when a model is unavailable; a handler may raise it between its steps.
    """

    def __init__(self, reason: str, seconds: float, cause: WaitCause = WaitCause.OUTSIDE) -> None:
        super().__init__(reason)
        self.reason = reason
        self.seconds = seconds
        self.cause = cause


class Steps:
    """The steps of one attempt at a job. Belongs to the event loop of the handler.

    A step that fails because of an unavailable dependency is retried after each of `retry_delays`, in seconds, long
    enough for Neo4j to restart. Calls to an unavailable model are not, because the model client has its own retries.
    After that, the job releases its worker and waits as `find_wait` says.
    """

    def __init__(self, job_id: str, record: RecordStep, retry_delays: Sequence[float], find_wait: FindWait) -> None:
        self.job_id = job_id
        """The id of the job, the same in every attempt."""
        self.retry_count = 0
        """Number of step retries."""
        self.receipt = Receipt()
        """The cost of the finished steps whose results have a receipt, for a job that fails."""
        self._record = record
        self._retry_delays = retry_delays
        self._find_wait = find_wait

    async def run(self, name: str, fn: Callable[[], Awaitable[T]], returns: type[T] | None = None) -> T:
        """Run `fn` once in the job's life and return its result; a finished step returns its recorded result.

        The result is stored as JSON and read back as the type `returns`, if given. A permanent error, or the last of
        several transient ones, is recorded and raised: a GraphmemError unchanged, any other exception as a
        GraphmemError that names it.
        """
        step = _Step(name, fn, returns)
        value = step.unwrap(await self._record(name, partial(self._execute, step)))
        cost = getattr(value, "receipt", None)
        if isinstance(cost, Receipt):
            self.receipt += cost
        return value

    async def run_idempotent(self, name: str, fn: Callable[[], Awaitable[T]], returns: type[T] | None = None) -> T:
        """Run `fn` each time the job reaches it, with a step's retries but without a record.

        Use it for work that records itself: running it again changes nothing and returns the same result.
        """
        step = _Step(name, fn, returns)
        return step.unwrap(await self._execute(step))

    async def _execute(self, step: _Step[Any]) -> StepRecord:
        retrying = AsyncRetrying(
            retry=retry_if_exception(_is_transient),
            stop=stop_after_attempt(len(self._retry_delays) + 1),
            wait=wait_chain(*map(wait_fixed, self._retry_delays)),
            reraise=True,
        )
        value: Any = None
        try:
            async for attempt in retrying:
                with attempt:
                    self.retry_count += attempt.retry_state.attempt_number > 1
                    with span(f"step {step.name}"):
                        value = await step.fn()
            return StepRecord(value=step.to_json(value))
        except Exception as error:
            if wait := await asyncio.to_thread(self._find_wait, error):
                raise wait from None
            step.cause = error
            name = type(error).__name__ if isinstance(error, GraphmemError) else ""
            return StepRecord(error=name, detail=error_detail(error))


class _Step(Generic[T]):
    """One step; `cause` is the exception it ended with, if it ended in this process."""

    def __init__(self, name: str, fn: Callable[[], Awaitable[T]], returns: type[T] | None) -> None:
        self.name = name
        self.fn = fn
        self.cause: BaseException | None = None
        self._adapter: TypeAdapter[T] = TypeAdapter(Any if returns is None else returns)

    def to_json(self, value: T) -> Any:
        try:
            return self._adapter.dump_python(value, mode="json")
        except ValueError as error:
            raise GraphmemError(f"Step {self.name!r} must return what JSON can hold: {error}.") from error

    def unwrap(self, record: StepRecord) -> T:
        # Also read from its record in the process that ran it, so that a handler sees the same value after a crash.
        if record.error is None:
            return self._adapter.validate_python(record.value)
        known = {error.__name__: error for error in _all_subclasses(GraphmemError)}
        raise known.get(record.error, GraphmemError)(record.detail) from self.cause


def error_detail(error: BaseException) -> str:
    """Return the text to show for an error; for an unexpected one, its class and location, without user text."""
    if isinstance(error, GraphmemError):
        return error.detail
    frames = traceback.extract_tb(error.__traceback__)
    place = f" at {Path(frames[-1].filename).name}:{frames[-1].lineno}" if frames else ""
    return f"{type(error).__name__}{place}"


def _is_transient(error: BaseException) -> bool:
    excluded = (ConfigurationError, ModelUnavailable)
    return isinstance(error, Unavailable) and not isinstance(error, excluded) and error.retry_after is not None


def _all_subclasses(root: type[GraphmemError]) -> Iterator[type[GraphmemError]]:
    yield root
    for child in root.__subclasses__():
        yield from _all_subclasses(child)


SYSTEM_PARTITION = "_system:"
"""Prefix of the partitions of jobs without a user, such as scheduled jobs; no tenant's name starts with it."""


class JobPayload(BaseModel):
    """The input of a job, stored as JSON; fields unknown to a version are ignored."""

    model_config = ConfigDict(frozen=True)

    @property
    @abstractmethod
    def partition(self) -> str:
        """The queue the job goes to; the jobs of one partition run one at a time, in the order they were queued."""


class UserJobPayload(JobPayload):
    """The payload of a job that works for one user, in the user's partition."""

    tenant: str
    user_id: str

    @property
    def owner(self) -> Owner:
        """The user or the space that the job works for."""
        return Owner.from_stored(self.tenant, self.user_id)

    @property
    def partition(self) -> str:
        """The group id of the user."""
        return self.owner.group_id


class ScheduledPayload(JobPayload):
    """The payload of a job that a schedule may queue; `scheduled_at` is the time of the tick in ISO 8601.

    Without a tenant, it is for all tenants of `graph`, by default the home graph.
    """

    scheduled_at: str | None = None
    graph: str | None = None


P = TypeVar("P", bound=JobPayload)


@dataclass(frozen=True, slots=True)
class JobKind(Generic[P]):
    """One kind of job; `name` is stored with each job and shown to callers."""

    name: str
    payload_type: type[P]


@dataclass(frozen=True, slots=True)
class JobHandler(Generic[P]):
    """The function that runs the jobs of a kind."""

    kind: JobKind[P]
    function: Callable[[P, Steps], Awaitable[JobOutcome]]

    async def run(self, payload: Mapping[str, Any], steps: Steps) -> JobOutcome:
        """Run one job; raise ValidationError if the stored payload does not fit the kind."""
        return await self.function(self.kind.payload_type.model_validate(payload), steps)
