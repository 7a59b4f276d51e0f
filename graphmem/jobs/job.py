"""Jobs as callers see them: status, actions and cost."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from enum import StrEnum
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from graphmem.models.language_model import Receipt
from graphmem.runtime.field_types import Id
from graphmem.runtime.paging import PageQuery
from graphmem.tenants.spaces import SpaceId


class JobStatus(StrEnum):
    """The status of a job; the last three are final, and only a failed job can be retried."""

    QUEUED = "queued"
    RUNNING = "running"
    SUCCEEDED = "succeeded"
    SKIPPED = "skipped"
    FAILED = "failed"

    @property
    def is_final(self) -> bool:
        """Whether the status stays until the job is retried."""
        return self in (JobStatus.SUCCEEDED, JobStatus.SKIPPED, JobStatus.FAILED)


class JobAction(BaseModel):
    """One action of a job; each job kind has its own models."""

    model_config = ConfigDict(frozen=True)

    def to_json(self) -> dict[str, Any]:
        """Return the action as shown in `Job.actions`, without fields that are None."""
        return self.model_dump(mode="json", exclude_none=True)


class JobOutcome(BaseModel):
    """The result of a handler: the job is done, or skipped for a reason."""

    model_config = ConfigDict(frozen=True)

    status: Literal[JobStatus.SUCCEEDED, JobStatus.SKIPPED] = JobStatus.SUCCEEDED
    reason: str | None = None
    actions: Sequence[JobAction] = ()
    receipt: Receipt = Field(default_factory=Receipt)


class Job(BaseModel):
    """One job; `attempts` counts its starts and the repeated tries of its steps.

    A queued job that waits for an unavailable model has `waits_until`, and says why in `reason`. `user_id`, `space` and
    `session_id` are those of its payload. `partition` is its queue, one per user; it is used to authorize
    callers and is not part of the JSON.
    """

    model_config = ConfigDict(frozen=True)

    id: str
    kind: str
    status: JobStatus
    attempts: int = 0
    reason: str | None = None
    error: str | None = None
    actions: list[dict[str, Any]] = Field(default_factory=list)
    receipt: Receipt = Field(default_factory=Receipt)
    user_id: str | None = None
    space: str | None = Field(None, description="The space that the job works for.")
    session_id: str | None = None
    created_at: datetime
    finished_at: datetime | None = None
    waits_until: datetime | None = None
    partition: str = Field("", exclude=True)

    @property
    def is_at_rest(self) -> bool:
        """Whether nothing will happen soon: the job is final or waits for a model."""
        return self.status.is_final or self.waits_until is not None


class JobListQuery(PageQuery):
    """Filters for listing jobs."""

    model_config = ConfigDict(extra="forbid")

    user_id: Id | None = Field(None, description="Only the jobs of this user.")
    space: SpaceId | None = Field(None, description="Only the jobs of this space.")
    status: JobStatus | None = None


class RetryQuery(BaseModel):
    """Where a retried job starts."""

    fresh: bool = Field(False, description="true: start from the messages; false: from the failed step.")
