"""Jobs of these tests: one payload and one action for all kinds."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any

from pydantic import ConfigDict

from graphmem.jobs.job import JobAction, JobOutcome
from graphmem.jobs.kinds import JobHandler, JobKind, ScheduledPayload, Steps
from graphmem.jobs.runner import JobRunner
from graphmem.jobs.worker import WorkerOptions
from graphmem.runtime.settings import Settings

HANDOVER_PAUSES = (0.1,) * 1000
"""How long a job waits that a worker of a test does not know: another one is there that does."""


class JobInput(ScheduledPayload):
    """A payload for the partition `queue`; each test sets the fields it needs."""

    queue: str = "alice"
    text: str = ""
    number: int | str = 0
    fails: bool = False
    user_id: str | None = None
    session_id: str | None = None
    memory_id: str = ""

    @property
    def partition(self) -> str:
        return self.queue


class Report(JobAction):
    """An action with any fields."""

    model_config = ConfigDict(extra="allow")


HandleJob = Callable[[JobInput, Steps], Awaitable[JobOutcome]]


def kind(name: str) -> JobKind[JobInput]:
    return JobKind(name, JobInput)


def handlers_of(functions: Mapping[str, HandleJob]) -> list[JobHandler[JobInput]]:
    return [JobHandler(kind(name), function) for name, function in functions.items()]


@asynccontextmanager
async def open_worker(
    settings: Settings, functions: Mapping[str, HandleJob], **options: Any
) -> AsyncIterator[JobRunner]:
    """A runner that runs jobs by these functions."""
    async with await JobRunner.open(settings) as runner:
        await runner.start_worker(handlers_of(functions), WorkerOptions(**options))
        yield runner
