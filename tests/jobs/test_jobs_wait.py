"""Jobs that wait for a model that is unavailable, on SQLite and Postgres."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta

import pytest

from graphmem.jobs.job import JobOutcome, JobStatus
from graphmem.jobs.kinds import JobWaits, Steps, WaitCause
from graphmem.runtime.errors import Conflict, ModelAnswerUnusable, ModelUnavailable
from tests.jobs.conftest import OpenRunner, postgres_first, wait_to_the_end
from tests.jobs.kinds import JobInput, Report, kind

TIMEOUT_SECONDS = 60
LONG = (600.0,) * 9


class Model:
    """A handler that asks a model, which is unavailable until `answers` is set; `asked` are the jobs that asked it."""

    def __init__(self, error: ModelUnavailable | None = None) -> None:
        self.answers = False
        self.asked: list[int | str] = []
        self.read: list[int | str] = []
        self._error = error or ModelUnavailable("The model limits the rate of calls.")

    async def __call__(self, payload: JobInput, steps: Steps) -> JobOutcome:
        async def read() -> None:
            self.read.append(payload.number)

        async def ask() -> str:
            self.asked.append(payload.number)
            if not self.answers:
                raise self._error
            return "answered"

        await steps.run("read", read)
        run = steps.run_idempotent if payload.text == "idempotent" else steps.run
        return JobOutcome(actions=[Report(got=await run("ask", ask))])


@pytest.mark.parametrize(
    ("settings", "text"), [("sqlite", "recorded"), ("postgres", "idempotent")], indirect=["settings"]
)
async def test_a_job_waits_for_its_model_says_why_and_goes_on_where_it_stopped(
    open_runner: OpenRunner, text: str
) -> None:
    model = Model()
    runner = await open_runner({"ask": model}, model_pauses=LONG)
    job_id = await runner.enqueue(kind("ask"), JobInput(text=text))
    job = await runner.wait(job_id, TIMEOUT_SECONDS)
    assert (job.status, job.reason, job.error) == (JobStatus.QUEUED, "The model limits the rate of calls.", None)
    assert job.waits_until is not None
    assert timedelta(minutes=9) < job.waits_until - datetime.now(UTC) < timedelta(minutes=11)
    assert model.asked == [0], "the pause is the job's, the step is not repeated"
    model.answers = True
    assert (await runner.retry(job_id)).waits_until is None, "a retry ends the wait"
    job = await runner.wait(job_id, TIMEOUT_SECONDS)
    assert (job.status, job.actions, job.reason) == (JobStatus.SUCCEEDED, [{"got": "answered"}], None)
    assert (model.read, model.asked) == ([0], [0, 0])
    assert job.attempts == 2


async def test_a_waiting_job_outlives_its_worker_and_wakes_by_itself(open_runner: OpenRunner) -> None:
    model = Model()
    first = await open_runner({"ask": model}, model_pauses=(0.5, 600.0))
    job_id = await first.enqueue(kind("ask"), JobInput())
    assert (await first.wait(job_id, TIMEOUT_SECONDS)).waits_until
    await first.close()
    model.answers = True
    second = await open_runner({"ask": model})
    await asyncio.sleep(0.5)
    job = await second.wait(job_id, TIMEOUT_SECONDS)
    assert job.status is JobStatus.SUCCEEDED


async def test_later_jobs_of_the_partition_wait_too_and_keep_their_order(open_runner: OpenRunner) -> None:
    model = Model()
    runner = await open_runner({"ask": model}, model_pauses=LONG)
    jobs = [await runner.enqueue(kind("ask"), JobInput(number=number)) for number in (1, 2, 3)]
    waiting = [await runner.wait(job_id, TIMEOUT_SECONDS) for job_id in jobs]
    assert [job.status for job in waiting] == [JobStatus.QUEUED] * 3
    assert model.asked == [1], "only the first asked"
    other = await runner.enqueue(kind("ask"), JobInput(queue="bob", number=4))
    model.answers = True
    assert (await runner.wait(other, TIMEOUT_SECONDS)).waits_until or model.asked[-1] == 4
    await runner.retry(jobs[0])
    for job_id in jobs:
        assert (await runner.wait(job_id, TIMEOUT_SECONDS)).status is JobStatus.SUCCEEDED
    assert [number for number in model.asked if number != 4] == [1, 1, 2, 3]


@postgres_first
async def test_a_job_that_waits_for_its_time_lets_later_jobs_of_its_partition_go_first(open_runner: OpenRunner) -> None:
    done: list[int | str] = []
    is_time = asyncio.Event()

    async def handle(payload: JobInput, steps: Steps) -> JobOutcome:
        if payload.text == "later" and not is_time.is_set():
            raise JobWaits("it begins later", 600.0, WaitCause.ITS_TIME)
        done.append(payload.number)
        return JobOutcome()

    runner = await open_runner({"ask": handle})
    first = await runner.enqueue(kind("ask"), JobInput(number=1, text="later"))
    waiting = await runner.wait(first, TIMEOUT_SECONDS)
    assert (waiting.status, waiting.reason) == (JobStatus.QUEUED, "it begins later")
    for number in (2, 3):
        later = await runner.enqueue(kind("ask"), JobInput(number=number))
        assert (await runner.wait(later, TIMEOUT_SECONDS)).status is JobStatus.SUCCEEDED
    is_time.set()
    await runner.retry(first)
    assert (await runner.wait(first, TIMEOUT_SECONDS)).status is JobStatus.SUCCEEDED
    assert done == [2, 3, 1]


async def test_pauses_end_and_the_job_fails_then_with_the_reason(open_runner: OpenRunner) -> None:
    model = Model()
    runner = await open_runner({"ask": model}, model_pauses=(0.05, 0.05, 0.05))
    job_id = await runner.enqueue(kind("ask"), JobInput())
    job = await wait_to_the_end(runner, job_id)
    assert (job.status, job.error) == (JobStatus.FAILED, "The model limits the rate of calls.")
    assert len(model.asked) == 4
    model.answers = True
    await runner.retry(job_id)
    assert (await runner.wait(job_id, TIMEOUT_SECONDS)).status is JobStatus.SUCCEEDED


@pytest.mark.parametrize(
    ("error", "asked"),
    [
        (ModelAnswerUnusable("The answer holds no JSON."), 3),
        (ModelUnavailable("The key is refused.", retry_after=None), 1),
    ],
)
async def test_unusable_answers_are_waited_for_twice_and_wrong_settings_never(
    open_runner: OpenRunner, error: ModelUnavailable, asked: int
) -> None:
    model = Model(error)
    runner = await open_runner({"ask": model}, model_pauses=(0.05,) * 9)
    job_id = await runner.enqueue(kind("ask"), JobInput())
    job = await wait_to_the_end(runner, job_id)
    assert job.error == error.detail
    assert len(model.asked) == asked


async def test_a_longer_pause_that_the_server_asks_for_is_kept(open_runner: OpenRunner) -> None:
    model = Model(ModelUnavailable("Come back in an hour.", retry_after=3600))
    runner = await open_runner({"ask": model}, model_pauses=(0.05,))
    job = await runner.wait(await runner.enqueue(kind("ask"), JobInput()), TIMEOUT_SECONDS)
    assert job.waits_until is not None
    assert job.waits_until - datetime.now(UTC) > timedelta(minutes=59)


async def test_waiting_jobs_are_forgotten_and_busy(open_runner: OpenRunner) -> None:
    runner = await open_runner({"ask": Model()}, model_pauses=LONG)
    job_id = await runner.enqueue(kind("ask"), JobInput())
    await runner.wait(job_id, TIMEOUT_SECONDS)
    assert await runner.is_busy("alice")
    assert await runner.forget("alice") == 1
    assert await runner.find(job_id) is None


async def test_a_running_job_cannot_be_retried(open_runner: OpenRunner) -> None:
    runner = await open_runner()
    job_id = await runner.enqueue(kind("ask"), JobInput())
    with pytest.raises(Conflict, match="failed or waiting"):
        await runner.retry(job_id)
