"""Forgetting a user or a memory erases it from the job store."""

from __future__ import annotations

import asyncio
import signal

import psycopg
import pytest

from graphmem.jobs.job import JobOutcome, JobStatus
from graphmem.jobs.kinds import Steps
from graphmem.jobs.runner import JobRunner
from graphmem.jobs.store import JobStore
from graphmem.runtime.settings import Settings
from tests.jobs.conftest import OpenRunner, WorkerSubprocess, both_stores, get_job, postgres_first
from tests.jobs.kinds import JobInput, Report, kind

TIMEOUT_SECONDS = 60
SECRET_TEXT = "the-cat-is-called-Möhre"


async def write_secret(payload: JobInput, steps: Steps) -> JobOutcome:
    async def repeat() -> str:
        return payload.text * 400

    async def fail() -> str:
        raise ValueError(payload.text)

    repeated = await steps.run("repeat", repeat)
    if payload.fails:
        await steps.run("fail", fail)
    return JobOutcome(actions=[Report(text=repeated)], reason=payload.text)


def places_containing(settings: Settings, word: str) -> list[str]:
    """Return the files of SQLite, or the tables of Postgres, that contain the word."""
    if settings.jobs_url is None:
        files = settings.data_dir.glob("jobs.sqlite*")
        return [path.name for path in files if word.encode() in path.read_bytes()]
    found = []
    with psycopg.connect(settings.jobs_url) as connection:
        tables = connection.execute("SELECT schemaname, tablename FROM pg_tables WHERE schemaname = 'graphmem_jobs'")
        for schema, table in tables.fetchall():
            rows = connection.execute(f"SELECT t::text FROM {schema}.{table} t".encode()).fetchall()
            if any(word in row[0] for row in rows):
                found.append(table)
    return found


@both_stores
async def test_forget_leaves_no_residue_and_keeps_other_users(open_runner: OpenRunner, settings: Settings) -> None:
    runner: JobRunner = await open_runner({"write_secret": write_secret})
    for n in range(7):
        await runner.enqueue(kind("write_secret"), JobInput(text=f"{SECRET_TEXT}-{n}", fails=n == 3))
    last = await runner.enqueue(kind("write_secret"), JobInput(text=SECRET_TEXT))
    others = await runner.enqueue(kind("write_secret"), JobInput(queue="bob", text="bob knows alice"))
    await runner.wait(last, TIMEOUT_SECONDS)
    await runner.wait(others, TIMEOUT_SECONDS)
    assert places_containing(settings, SECRET_TEXT)
    assert await runner.forget("alice") == 8
    assert places_containing(settings, SECRET_TEXT) == []
    assert await runner.list("alice") == []
    assert (await get_job(runner, others)).actions == [{"text": "bob knows alice" * 400}]
    again = await runner.enqueue(kind("write_secret"), JobInput(text="a new job"))
    assert (await runner.wait(again, TIMEOUT_SECONDS)).status is JobStatus.SUCCEEDED


@pytest.mark.parametrize("in_a_step", [True, False])
async def test_forget_stops_running_and_queued_jobs_first(
    open_runner: OpenRunner, settings: Settings, in_a_step: bool
) -> None:
    entered, ended = asyncio.Event(), asyncio.Event()

    async def hold(payload: JobInput, steps: Steps) -> JobOutcome:
        async def wait() -> None:
            entered.set()
            try:
                await asyncio.Event().wait()
            finally:
                ended.set()

        await (steps.run("wait", wait) if in_a_step else wait())
        return JobOutcome()

    runner = await open_runner({"hold": hold, "write_secret": write_secret})
    running = await runner.enqueue(kind("hold"), JobInput(text=SECRET_TEXT))
    await runner.enqueue(kind("write_secret"), JobInput(text=SECRET_TEXT))
    await entered.wait()
    assert await runner.forget("alice") == 2
    assert ended.is_set()
    assert await runner.find(running) is None
    assert places_containing(settings, SECRET_TEXT) == []


@postgres_first
async def test_forget_stops_a_job_running_in_another_process(
    open_runner: OpenRunner, settings: Settings, worker_process: WorkerSubprocess
) -> None:
    front = await open_runner()
    job_id = await front.enqueue(kind("blocking_job"), JobInput(text=SECRET_TEXT))
    worker_process.start()
    await asyncio.to_thread(worker_process.wait_for_line, "second")
    assert await front.forget("alice") == 1
    (worker_process.folder / "open").touch()
    after = await front.enqueue(kind("three"), JobInput(text="Ada"))
    assert (await front.wait(after, TIMEOUT_SECONDS)).status is JobStatus.SUCCEEDED
    assert "passed" not in worker_process.lines()
    assert await front.find(job_id) is None
    assert places_containing(settings, SECRET_TEXT) == []


@postgres_first
async def test_a_worker_that_was_frozen_leaves_nothing_of_a_job_forgotten_meanwhile(
    open_runner: OpenRunner, settings: Settings, worker_process: WorkerSubprocess
) -> None:
    process = worker_process.start()
    await asyncio.to_thread(worker_process.wait_for_line, "ready")
    front = await open_runner()
    job_id = await front.enqueue(kind("blocking_job"), JobInput(text=SECRET_TEXT))
    await asyncio.to_thread(worker_process.wait_for_line, "second")
    assert places_containing(settings, job_id)
    await open_runner({"write_secret": write_secret})
    process.send_signal(signal.SIGSTOP)
    assert await front.forget("alice") == 1
    (worker_process.folder / "open").touch()
    process.send_signal(signal.SIGCONT)
    after = await front.enqueue(kind("three"), JobInput(queue="bob", text="Ada"))
    await front.wait(after, TIMEOUT_SECONDS)
    process.send_signal(signal.SIGINT)  # it closes, after all that it still writes
    await asyncio.to_thread(process.wait, TIMEOUT_SECONDS)
    assert places_containing(settings, SECRET_TEXT) == places_containing(settings, job_id) == []


async def test_forget_erases_user_data_recorded_by_scheduled_jobs(open_runner: OpenRunner, settings: Settings) -> None:
    done = asyncio.Event()

    async def fan_out(payload: JobInput, steps: Steps) -> JobOutcome:
        async def list_users() -> list[str]:
            return ["alice:group", "bob:group"]

        await steps.run("list_users", list_users)
        done.set()
        return JobOutcome()

    runner = await open_runner({"fan_out": fan_out})
    job_id = await runner.enqueue(kind("fan_out"), JobInput(queue="_system:nightly"))
    await runner.wait(job_id, TIMEOUT_SECONDS)
    assert places_containing(settings, "alice:group")
    assert await runner.forget("alice:group") == 0
    assert places_containing(settings, "alice:group") == []


@postgres_first
async def test_erase_step_results_of_one_memory_keeps_the_jobs(open_runner: OpenRunner, settings: Settings) -> None:
    async def extract(payload: JobInput, steps: Steps) -> JobOutcome:
        async def read() -> list[str]:
            return [payload.text]

        async def apply() -> dict[str, str]:
            return {"memory_id": payload.memory_id}

        await steps.run("read", read)
        return JobOutcome(actions=[Report(**await steps.run("apply", apply))])

    runner = await open_runner({"extract": extract})
    inputs = [
        ("t:mara", "one", SECRET_TEXT),
        ("t:mara", "two", "tea"),
        ("other:mara", "one", "rain"),
        ("t:mara", "3", SECRET_TEXT),
    ]
    jobs = [
        await runner.enqueue(
            kind("extract"), JobInput(queue=queue, user_id="mara", memory_id=memory_id, text=text * 300)
        )
        for queue, memory_id, text in inputs
    ]
    for job_id in jobs:
        await runner.wait(job_id, TIMEOUT_SECONDS)
    await runner.erase_step_results("t:mara", ["one"])
    await runner.erase_step_results("t:", ["3", SECRET_TEXT])
    for job_id, (_, memory_id, _) in zip(jobs, inputs, strict=True):
        job = await get_job(runner, job_id)
        assert (job.status, job.actions) == (JobStatus.SUCCEEDED, [{"memory_id": memory_id}])
    store = JobStore.open(settings)
    assert [len(store.client.list_workflow_steps(job_id)) for job_id in jobs] == [0, 2, 2, 0]
    store.close()
    assert not await runner.is_busy("t:mara")
