"""Jobs of schedules."""

from __future__ import annotations

import asyncio

import pytest

from graphmem.jobs.job import JobOutcome, JobStatus
from graphmem.jobs.kinds import Steps
from graphmem.jobs.runner import JobRunner
from graphmem.runtime.errors import InvalidInput
from tests.jobs.conftest import OpenRunner, WorkerSubprocess
from tests.jobs.kinds import JobInput, kind

EVERY_SECOND = "* * * * * *"


async def test_schedule_queues_one_job_per_tick_with_several_workers(
    open_runner: OpenRunner, worker_process: WorkerSubprocess
) -> None:
    async def tick(payload: JobInput, steps: Steps) -> JobOutcome:
        async def write() -> None:
            with worker_process.journal.open("a") as journal:
                journal.write(f"{payload.scheduled_at}\n")

        await steps.run("write", write)
        return JobOutcome()

    worker_process.start()
    runner: JobRunner = await open_runner({"tick": tick})
    await runner.schedule("nightly", EVERY_SECOND, "Europe/Stockholm", kind("tick"), JobInput(text="deep"))
    await asyncio.to_thread(worker_process.wait_for_line, "ready")
    while len(await runner.list("_system:nightly")) < 3:  # noqa: ASYNC110 - another process queues them too
        await asyncio.sleep(0.1)
    jobs = await runner.list("_system:nightly")
    ended = [await runner.wait(job.id, 60) for job in jobs]
    assert {job.status for job in ended} == {JobStatus.SUCCEEDED}
    ticks = [line for line in worker_process.lines() if line != "ready"]
    assert len(ticks) == len(set(ticks)) >= 3


async def test_invalid_schedule_is_rejected(open_runner: OpenRunner) -> None:
    runner = await open_runner()
    with pytest.raises(InvalidInput, match="nightly"):
        await runner.schedule("nightly", "at two", "UTC", kind("tick"), JobInput())
    with pytest.raises(InvalidInput, match="nightly"):
        await runner.schedule("nightly", "0 2 * * *", "Mars/Olympus", kind("tick"), JobInput())
