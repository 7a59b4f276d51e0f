"""Workers that are killed, frozen or disconnected: no job is lost and no finished step is repeated."""

from __future__ import annotations

import asyncio
import os
import signal
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from graphmem.jobs.job import Job, JobOutcome, JobStatus
from graphmem.jobs.kinds import Steps
from graphmem.jobs.runner import JobRunner
from graphmem.runtime.errors import JobStoreUnavailable
from graphmem.runtime.settings import Settings
from tests.jobs.conftest import OpenRunner, PostgresServer, WorkerSubprocess, get_job, postgres_first, wait_to_the_end
from tests.jobs.kinds import HandleJob, JobInput, Report, handlers_of, kind, open_worker

TIMEOUT_SECONDS = 60


async def _run_until_killed(worker: WorkerSubprocess) -> int:
    return await asyncio.to_thread(worker.start().wait, TIMEOUT_SECONDS)


async def test_job_killed_in_and_between_its_steps_repeats_only_the_step_it_was_in(
    open_runner: OpenRunner, worker_process: WorkerSubprocess
) -> None:
    front = await open_runner()
    job_id = await front.enqueue(kind("three"), JobInput(text="Ada"))
    behind = await front.enqueue(kind("three"), JobInput(text="Bob"))
    for moment in ("after-one", "in-two", "after-three"):
        (worker_process.folder / f"kill-{moment}").touch()
        assert await _run_until_killed(worker_process) == -signal.SIGKILL
        assert (await get_job(front, job_id)).status is JobStatus.RUNNING
    worker_process.start()
    assert (await front.wait(behind, TIMEOUT_SECONDS)).status is JobStatus.SUCCEEDED
    job: Job = await get_job(front, job_id)
    assert (job.status, job.attempts) == (JobStatus.SUCCEEDED, 4)
    assert job.actions == [{"done": ["one of Ada", "two of Ada", "three of Ada"]}]
    steps = [line for line in worker_process.lines() if line != "ready"]
    assert steps == ["one", "two", "two", "three", "one", "two", "three"]


def blocking_job(folder: Path) -> HandleJob:
    """The job of the same name in `worker_process.py`, passing its gate at once."""

    async def run(payload: JobInput, steps: Steps) -> JobOutcome:
        async def mine() -> str:
            return "here"

        first, second = await steps.run("first", mine), await steps.run("second", mine)
        return JobOutcome(actions=[Report(first=first, second=second)])

    return run


async def test_job_of_a_killed_worker_is_recovered_by_another_worker(
    open_runner: OpenRunner, worker_process: WorkerSubprocess
) -> None:
    worker_process.start()
    await asyncio.to_thread(worker_process.wait_for_line, "ready")
    front = await open_runner()
    job_id = await front.enqueue(kind("blocking_job"), JobInput())
    await asyncio.to_thread(worker_process.wait_for_line, "second")
    await open_runner({"blocking_job": blocking_job(worker_process.folder)})
    assert (await front.wait(job_id, 1)).status is JobStatus.RUNNING
    worker_process.stop()
    assert (await front.wait(job_id, TIMEOUT_SECONDS)).actions == [{"first": "child", "second": "here"}]


@postgres_first
async def test_job_of_a_frozen_worker_is_recovered_and_its_late_result_is_ignored(
    open_runner: OpenRunner, worker_process: WorkerSubprocess
) -> None:
    process = worker_process.start()
    await asyncio.to_thread(worker_process.wait_for_line, "ready")
    front = await open_runner()
    job_id = await front.enqueue(kind("blocking_job"), JobInput())
    await asyncio.to_thread(worker_process.wait_for_line, "second")
    await open_runner({"blocking_job": blocking_job(worker_process.folder)})
    os.kill(process.pid, signal.SIGSTOP)
    taken_over = [{"first": "child", "second": "here"}]
    assert (await front.wait(job_id, TIMEOUT_SECONDS)).actions == taken_over
    (worker_process.folder / "open").touch()
    os.kill(process.pid, signal.SIGCONT)
    second = await front.enqueue(kind("three"), JobInput(text="Ada"))
    assert (await wait_to_the_end(front, second)).status is JobStatus.SUCCEEDED, "it works again"
    assert (await get_job(front, job_id)).actions == taken_over


async def test_claimed_job_that_never_started_is_requeued(open_runner: OpenRunner, settings: Settings) -> None:
    async def work(payload: JobInput, steps: Steps) -> JobOutcome:
        return JobOutcome(reason="begun")

    front = await open_runner()
    job_id = await front.enqueue(kind("work"), JobInput())
    with closing(sqlite3.connect(settings.data_dir / "jobs.sqlite")) as store, store:
        store.execute("UPDATE workflow_status SET status = 'PENDING', executor_id = 'nobody'")
    await open_runner({"work": work}, handover_pauses=())
    assert (await front.wait(job_id, TIMEOUT_SECONDS)).reason == "begun"
    second = await front.enqueue(kind("other"), JobInput(), job_id="second")
    with closing(sqlite3.connect(settings.data_dir / "jobs.sqlite")) as store, store:
        store.execute(
            "UPDATE workflow_status SET status = 'PENDING', executor_id = (SELECT id FROM worker)"
            " WHERE workflow_uuid = 'second'"
        )
    assert (await front.wait(second, TIMEOUT_SECONDS)).status is JobStatus.FAILED


async def test_enqueue_fails_during_a_store_outage_and_running_jobs_resume_after_it(
    postgres_server: PostgresServer, tmp_path: Path
) -> None:
    calls: list[str] = []
    entered, opened = asyncio.Event(), asyncio.Event()

    async def work(payload: JobInput, steps: Steps) -> JobOutcome:
        async def first() -> None:
            calls.append("first")
            entered.set()
            await opened.wait()

        async def second() -> None:
            calls.append("second")

        await steps.run("first", first)
        await steps.run("second", second)
        return JobOutcome()

    settings = Settings(data_dir=tmp_path, jobs_url=postgres_server.url)
    async with open_worker(settings, {"work": work}) as runner:
        job_id = await runner.enqueue(kind("work"), JobInput())
        await entered.wait()
        await asyncio.to_thread(postgres_server.stop)
        opened.set()
        try:
            with pytest.raises(JobStoreUnavailable, match="cannot be used"):
                await runner.enqueue(kind("work"), JobInput())
            with pytest.raises(JobStoreUnavailable):
                await runner.get(job_id)
        finally:
            await asyncio.to_thread(postgres_server.start)
        job = await runner.wait(job_id, TIMEOUT_SECONDS)
        assert (job.status, calls) == (JobStatus.SUCCEEDED, ["first", "second"])


async def test_close_during_a_store_outage_does_not_hang_and_loses_no_job(
    postgres_server: PostgresServer, tmp_path: Path
) -> None:
    entered, opened = asyncio.Event(), asyncio.Event()

    async def work(payload: JobInput, steps: Steps) -> JobOutcome:
        async def step() -> None:
            entered.set()
            await opened.wait()

        await steps.run("step", step)
        return JobOutcome()

    settings = Settings(data_dir=tmp_path, jobs_url=postgres_server.url)
    runner = await JobRunner.open(settings)
    await runner.start_worker(handlers_of({"work": work}))
    job_id = await runner.enqueue(kind("work"), JobInput())
    await entered.wait()
    await asyncio.to_thread(postgres_server.stop)
    try:
        await runner.close()
    finally:
        await asyncio.to_thread(postgres_server.start)
    opened.set()
    async with open_worker(settings, {"work": work}, dead_worker_seconds=1.0) as runner:
        assert (await runner.wait(job_id, TIMEOUT_SECONDS)).status is JobStatus.SUCCEEDED
