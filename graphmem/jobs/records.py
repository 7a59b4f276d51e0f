"""What DBOS stores of a job: the record of each step, and the result of the whole."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from pydantic import BaseModel, Field

from graphmem.jobs.job import JobOutcome, JobStatus
from graphmem.models.receipt import Receipt


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

    `retries` counts the repeated tries of its steps. `restarts_when_retried` says that its step records do not fit its
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
        """Return the result of a handler that raised after steps with a receipt."""
        return cls(status=JobStatus.FAILED, error=error, receipt=receipt, restarts_when_retried=restarts_when_retried)
