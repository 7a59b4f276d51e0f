"""Kinds of jobs: the name a kind is stored under, the model of its payload, and the function that handles it."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from pydantic import BaseModel, ConfigDict

from graphmem.jobs.job import JobOutcome
from graphmem.jobs.steps import Steps
from graphmem.tenants.owners import Owner

SYSTEM_PARTITION = "_system:"
"""Prefix of the partitions of jobs that belong to no user, such as those of schedules; no tenant's name starts so."""


class JobPayload(BaseModel):
    """What a job is asked to do, stored as JSON; fields that a version does not know are ignored."""

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
        """The user the job works for."""
        return Owner(self.tenant, self.user_id)

    @property
    def partition(self) -> str:
        """The group id of the user."""
        return self.owner.group_id


class ScheduledPayload(JobPayload):
    """The payload of a job that a schedule may queue; `scheduled_at` is the time of the tick in ISO 8601."""

    scheduled_at: str | None = None


P = TypeVar("P", bound=JobPayload)


@dataclass(frozen=True, slots=True)
class JobKind(Generic[P]):
    """One kind of job; `name` is stored with each job and shown to callers."""

    name: str
    payload_type: type[P]


@dataclass(frozen=True, slots=True)
class JobHandler(Generic[P]):
    """The function that does the jobs of a kind."""

    kind: JobKind[P]
    function: Callable[[P, Steps], Awaitable[JobOutcome]]

    async def run(self, payload: Mapping[str, Any], steps: Steps) -> JobOutcome:
        """Do one job; raise ValidationError when the stored payload does not fit the kind."""
        return await self.function(self.kind.payload_type.model_validate(payload), steps)
