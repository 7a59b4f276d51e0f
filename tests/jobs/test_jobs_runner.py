"""The job queue through its public interface, on SQLite and Postgres."""

from __future__ import annotations

import asyncio
import logging
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import psutil
import pytest

from graphmem.jobs.job import JobOutcome, JobStatus
from graphmem.jobs.kinds import Steps
from graphmem.jobs.runner import JobRunner
from graphmem.jobs.store import DEMO_QUEUE
from graphmem.models.language_model import Receipt
from graphmem.runtime.errors import (
    ConfigurationError,
    Conflict,
    DatabaseUnavailable,
    InvalidInput,
    JobStoreUnavailable,
    ModelUnavailable,
    NotFound,
    Unavailable,
)
from graphmem.runtime.settings import Settings
from tests.jobs.conftest import OpenRunner, WorkerSubprocess, get_job, postgres_first, wait_to_the_end
from tests.jobs.kinds import JobInput, Report, handlers_of, kind, open_worker

TIMEOUT_SECONDS = 60


class BlockingHandler:
    """A handler that records its calls and their ends, and blocks until it is opened."""

    def __init__(self, *, opened: bool = False) -> None:
        self.events: list[tuple[str, Any]] = []
        self.inside = asyncio.Semaphore(0)
        self._open = asyncio.Event()
        if opened:
            self._open.set()

    def open(self) -> None:
        self._open.set()

    async def __call__(self, payload: JobInput, steps: Steps) -> JobOutcome:
        self.events.append(("in", payload.number))
        self.inside.release()
        await self._open.wait()
        self.events.append(("out", payload.number))
        return JobOutcome()


async def shout_text(payload: JobInput, steps: Steps) -> JobOutcome:
    async def shout() -> dict[str, Any]:
        return {"said": payload.text.upper(), "pair": (1, 2)}

    said = await steps.run("shout", shout)
    return JobOutcome(actions=[Report(**said)], receipt=Receipt(llm_calls=1, prompt_tokens=7))


@postgres_first
async def test_jobs_of_a_demo_are_left_to_its_own_worker_and_forgotten_with_their_user(
    open_runner: OpenRunner, settings: Settings
) -> None:
    runner = await open_runner({"shout_text": shout_text})
    async with await JobRunner.open(settings, DEMO_QUEUE) as demo:
        of_demo = await demo.enqueue(kind("shout_text"), JobInput(queue="mara", text="a demo"))
        await runner.wait(await runner.enqueue(kind("shout_text"), JobInput(text="hello")), TIMEOUT_SECONDS)
        assert (await runner.wait(of_demo, 0.5)).status is JobStatus.QUEUED
    await runner.close()

    async with await JobRunner.open(settings, DEMO_QUEUE) as demo:
        of_server = await queue_for_servers(settings)
        await demo.start_worker(handlers_of({"shout_text": shout_text}))
        assert (await demo.wait(of_demo, TIMEOUT_SECONDS)).status is JobStatus.SUCCEEDED
        assert (await demo.wait(of_server, 0.5)).status is JobStatus.QUEUED
    async with await JobRunner.open(settings) as runner:
        assert await runner.forget("mara") == 1


async def queue_for_servers(settings: Settings) -> str:
    """Queue a job as a server does, and return its id."""
    async with await JobRunner.open(settings) as runner:
        return await runner.enqueue(kind("shout_text"), JobInput(text="hello again"))


async def test_a_job_ends_with_its_outcome_receipt_and_times(open_runner: OpenRunner) -> None:
    runner = await open_runner({"shout_text": shout_text})
    job_id = await runner.enqueue(kind("shout_text"), JobInput(text="hello", user_id="a", session_id="s1"))
    job = await runner.wait(job_id, TIMEOUT_SECONDS)
    assert (job.id, job.kind, job.status, job.attempts) == (job_id, "shout_text", JobStatus.SUCCEEDED, 1)
    assert job.actions == [{"said": "HELLO", "pair": [1, 2]}]
    assert (job.receipt.llm_calls, job.receipt.prompt_tokens, job.error) == (1, 7, None)
    assert (job.user_id, job.session_id, job.partition) == ("a", "s1", "alice")
    assert job.finished_at is not None
    assert job.finished_at >= job.created_at
    assert "partition" not in job.model_dump()


async def test_a_job_may_be_skipped_with_a_reason(open_runner: OpenRunner) -> None:
    async def skip(payload: JobInput, steps: Steps) -> JobOutcome:
        return JobOutcome(status=JobStatus.SKIPPED, reason="nothing memorable")

    runner = await open_runner({"skip": skip})
    job = await runner.wait(await runner.enqueue(kind("skip"), JobInput()), TIMEOUT_SECONDS)
    assert (job.status, job.reason) == (JobStatus.SKIPPED, "nothing memorable")


@pytest.mark.req("UMB-01")
async def test_enqueue_does_not_wait_for_the_job(open_runner: OpenRunner) -> None:
    gate = BlockingHandler()
    runner = await open_runner({"gate": gate})
    job_id = await runner.enqueue(kind("gate"), JobInput(number=1))
    await gate.inside.acquire()
    behind = await runner.enqueue(kind("gate"), JobInput(number=2))
    assert (await runner.wait(job_id, 0)).status is JobStatus.RUNNING
    assert (await runner.wait(behind, 0.5)).status is JobStatus.QUEUED
    gate.open()
    assert (await runner.wait(behind, TIMEOUT_SECONDS)).status is JobStatus.SUCCEEDED


@postgres_first
async def test_the_jobs_of_one_user_run_one_at_a_time_in_order(open_runner: OpenRunner) -> None:
    gate = BlockingHandler(opened=True)
    runner = await open_runner({"gate": gate})
    ids = [await runner.enqueue(kind("gate"), JobInput(number=n), job_id=f"alice-{9 - n}") for n in range(5)]
    await runner.wait(ids[-1], TIMEOUT_SECONDS)
    assert gate.events == [(way, n) for n in range(5) for way in ("in", "out")]


async def test_the_jobs_of_different_users_run_side_by_side(open_runner: OpenRunner) -> None:
    gate = BlockingHandler()
    runner = await open_runner({"gate": gate})
    ids = [await runner.enqueue(kind("gate"), JobInput(queue=user, number=user)) for user in ("alice", "bob", "carol")]
    for _ in ids:
        await gate.inside.acquire()
    gate.open()
    assert [(await runner.wait(job_id, TIMEOUT_SECONDS)).status for job_id in ids] == [JobStatus.SUCCEEDED] * 3


@pytest.mark.req("GO-02")
@postgres_first
async def test_same_id_enqueued_concurrently_is_one_job(open_runner: OpenRunner) -> None:
    gate = BlockingHandler(opened=True)
    runner = await open_runner({"gate": gate})
    ids = await asyncio.gather(*(runner.enqueue(kind("gate"), JobInput(number=1), job_id="m1") for _ in range(5)))
    await runner.wait("m1", TIMEOUT_SECONDS)
    ids.append(await runner.enqueue(kind("gate"), JobInput(number=2), job_id="m1"))
    last = await runner.enqueue(kind("gate"), JobInput(number=3))
    await runner.wait(last, TIMEOUT_SECONDS)
    assert set(ids) == {"m1"}
    assert [n for way, n in gate.events if way == "in"] == [1, 3]


async def test_step_is_retried_after_a_transient_error(open_runner: OpenRunner) -> None:
    tries = []

    async def fail_twice(payload: JobInput, steps: Steps) -> JobOutcome:
        async def step() -> int:
            tries.append(1)
            if len(tries) < 3:
                raise DatabaseUnavailable("Neo4j is unavailable.")
            return len(tries)

        return JobOutcome(actions=[Report(tries=await steps.run("step", step))])

    runner = await open_runner({"fail_twice": fail_twice})
    job = await runner.wait(await runner.enqueue(kind("fail_twice"), JobInput()), TIMEOUT_SECONDS)
    assert (job.status, job.attempts, job.actions) == (JobStatus.SUCCEEDED, 3, [{"tries": 3}])


@postgres_first
async def test_job_that_met_an_unavailable_database_is_queued_again_until_it_succeeds(open_runner: OpenRunner) -> None:
    calls: list[str] = []
    is_away = True

    async def work(payload: JobInput, steps: Steps) -> JobOutcome:
        async def read() -> str:
            calls.append("read")
            return "read"

        async def write() -> str:
            if is_away:
                raise DatabaseUnavailable("Neo4j is unavailable.")
            return "written"

        first = await steps.run("read", read)
        if payload.number:
            calls.append("unguarded")
            await write()
        return JobOutcome(actions=[Report(got=[first, await steps.run("write", write)])])

    runner = await open_runner({"work": work})
    in_step = await runner.enqueue(kind("work"), JobInput(queue="alice"))
    outside = await runner.enqueue(kind("work"), JobInput(queue="bob", number=1))
    behind = await runner.enqueue(kind("work"), JobInput(queue="alice"))
    for job_id in (in_step, outside):
        assert not (await runner.wait(job_id, 1)).status.is_final
    assert (await runner.wait(behind, 0)).status is JobStatus.QUEUED, "the jobs of a user keep their order"
    assert calls.count("unguarded") >= 2, "it is tried again and again"
    is_away = False
    for job_id in (in_step, outside, behind):
        job = await wait_to_the_end(runner, job_id)
        assert (job.status, job.actions) == (JobStatus.SUCCEEDED, [{"got": ["read", "written"]}])
    assert calls.count("read") == 3, "a finished step is not repeated"


async def test_job_that_a_database_refuses_for_too_long_fails(open_runner: OpenRunner) -> None:
    async def work(payload: JobInput, steps: Steps) -> JobOutcome:
        async def write() -> str:
            raise DatabaseUnavailable("Neo4j is unavailable.")

        await steps.run("write", write)
        return JobOutcome()

    runner = await open_runner({"work": work}, database_pauses=(0.01,))
    job = await runner.wait(await runner.enqueue(kind("work"), JobInput()), TIMEOUT_SECONDS)
    assert (job.status, job.error) == (JobStatus.FAILED, "Neo4j is unavailable.")


async def test_run_idempotent_is_retried_and_runs_again_when_the_job_is_retried(
    open_runner: OpenRunner,
) -> None:
    calls: list[str] = []

    async def extract(payload: JobInput, steps: Steps) -> JobOutcome:
        async def ask() -> str:
            calls.append("ask")
            return "answered"

        async def write() -> str:
            calls.append("write")
            if len(calls) < 5:
                raise Unavailable("The service is unavailable.")
            return "written"

        got = [await steps.run("ask", ask), await steps.run_idempotent("write", write)]
        return JobOutcome(actions=[Report(got=got)])

    runner = await open_runner({"extract": extract})
    job_id = await runner.enqueue(kind("extract"), JobInput())
    job = await runner.wait(job_id, TIMEOUT_SECONDS)
    assert (job.status, job.error, job.attempts) == (JobStatus.FAILED, "The service is unavailable.", 3)
    await runner.retry(job_id)
    job = await runner.wait(job_id, TIMEOUT_SECONDS)
    assert (job.status, job.actions) == (JobStatus.SUCCEEDED, [{"got": ["answered", "written"]}])
    assert calls == ["ask", "write", "write", "write", "write"]


@pytest.mark.req("UMB-01")
@postgres_first
async def test_failed_job_logs_one_warning_and_retries_from_its_failed_step(
    open_runner: OpenRunner, caplog: pytest.LogCaptureFixture
) -> None:
    calls: list[str] = []

    async def extract(payload: JobInput, steps: Steps) -> JobOutcome:
        async def read() -> str:
            calls.append("read")
            return "read"

        async def ask() -> str:
            calls.append("ask")
            if len(calls) < 5:
                raise Unavailable("The service did not answer.")
            return "answered"

        return JobOutcome(actions=[Report(got=[await steps.run("read", read), await steps.run("ask", ask)])])

    runner = await open_runner({"extract": extract})
    job_id = await runner.enqueue(kind("extract"), JobInput())
    with caplog.at_level(logging.INFO):
        job = await runner.wait(job_id, TIMEOUT_SECONDS)
    assert (job.status, job.error, job.attempts) == (JobStatus.FAILED, "The service did not answer.", 3)
    assert [record.levelname for record in caplog.records if record.levelno > logging.INFO] == ["WARNING"]
    again = await runner.retry(job_id)
    assert again.status in (JobStatus.QUEUED, JobStatus.RUNNING)
    job = await runner.wait(job_id, TIMEOUT_SECONDS)
    assert (job.status, job.attempts, job.error) == (JobStatus.SUCCEEDED, 4, None)
    assert job.actions == [{"got": ["read", "answered"]}]
    assert calls == ["read", "ask", "ask", "ask", "ask"]
    with pytest.raises(Conflict):
        await runner.retry(job_id)


@postgres_first
async def test_a_fresh_retry_forgets_what_the_steps_recorded(open_runner: OpenRunner) -> None:
    answers: list[str] = []

    async def extract(payload: JobInput, steps: Steps) -> JobOutcome:
        async def ask() -> str:
            answers.append("unusable" if len(answers) == 0 else "usable")
            return answers[-1]

        answer = await steps.run("ask", ask)
        if answer == "unusable":
            raise ValueError("it cannot be applied")
        return JobOutcome(actions=[Report(got=[answer])])

    runner = await open_runner({"extract": extract})
    job_id = await runner.enqueue(kind("extract"), JobInput())
    assert (await runner.wait(job_id, TIMEOUT_SECONDS)).status is JobStatus.FAILED
    await runner.retry(job_id)
    assert (await runner.wait(job_id, TIMEOUT_SECONDS)).status is JobStatus.FAILED
    assert answers == ["unusable"]
    await runner.retry(job_id, fresh=True)
    job = await runner.wait(job_id, TIMEOUT_SECONDS)
    assert (job.status, job.actions, job.attempts) == (JobStatus.SUCCEEDED, [{"got": ["usable"]}], 3)
    with pytest.raises(Conflict):
        await runner.retry(job_id, fresh=True)


async def test_handler_that_catches_a_step_error_gets_the_same_error_on_replay(open_runner: OpenRunner) -> None:
    seen: list[str] = []

    async def careful(payload: JobInput, steps: Steps) -> JobOutcome:
        async def ask() -> str:
            raise ModelUnavailable("No model today.")

        async def finish() -> str:
            if len(seen) < 2:
                raise ValueError("a bug")
            return "done"

        try:
            await steps.run("ask", ask)
        except ModelUnavailable as error:
            seen.append(error.detail)
        return JobOutcome(actions=[Report(end=await steps.run("finish", finish))])

    runner = await open_runner({"careful": careful})
    job_id = await runner.enqueue(kind("careful"), JobInput())
    job = await runner.wait(job_id, TIMEOUT_SECONDS)
    assert job.status is JobStatus.FAILED
    assert (job.error or "").startswith("ValueError at test_jobs_runner.py:")
    await runner.retry(job_id)
    assert (await runner.wait(job_id, TIMEOUT_SECONDS)).actions == [{"end": "done"}]
    assert seen == ["No model today."] * 2


async def test_job_whose_handler_changed_fails_and_a_retry_starts_it_over(
    settings: Settings,
) -> None:
    async def step() -> str:
        return "x"

    async def bug() -> str:
        raise ValueError("a bug")

    async def before(payload: JobInput, steps: Steps) -> JobOutcome:
        await steps.run("old", step)
        await steps.run("bug", bug)
        return JobOutcome()

    async def after(payload: JobInput, steps: Steps) -> JobOutcome:
        await steps.run("new", step)
        return JobOutcome()

    async with open_worker(settings, {"work": before}) as runner:
        job_id = await runner.enqueue(kind("work"), JobInput())
        assert (await runner.wait(job_id, TIMEOUT_SECONDS)).status is JobStatus.FAILED
    async with open_worker(settings, {"work": after}) as runner:
        await runner.retry(job_id)
        job = await runner.wait(job_id, TIMEOUT_SECONDS)
        assert job.status is JobStatus.FAILED
        assert "deterministic" in str(job.error)
        await runner.retry(job_id)
        assert (await runner.wait(job_id, TIMEOUT_SECONDS)).status is JobStatus.SUCCEEDED


async def test_close_during_a_step_loses_nothing_and_repeats_no_finished_step(settings: Settings) -> None:
    calls: list[str] = []
    entered, opened = asyncio.Event(), asyncio.Event()

    async def work(payload: JobInput, steps: Steps) -> JobOutcome:
        async def first() -> None:
            calls.append("first")

        async def second() -> None:
            calls.append("second")
            entered.set()
            await opened.wait()

        await steps.run("first", first)
        await steps.run("second", second)
        return JobOutcome()

    async with open_worker(settings, {"work": work}) as runner:
        job_id = await runner.enqueue(kind("work"), JobInput())
        await entered.wait()
    opened.set()
    async with open_worker(settings, {"work": work}) as runner:
        assert (await runner.wait(job_id, TIMEOUT_SECONDS)).status is JobStatus.SUCCEEDED
    assert calls == ["first", "second", "second"]


async def test_runner_without_a_worker_only_enqueues(open_runner: OpenRunner) -> None:
    front = await open_runner()
    job_id = await front.enqueue(kind("shout_text"), JobInput(text="hi"))
    assert (await get_job(front, job_id)).status is JobStatus.QUEUED
    await open_runner({"shout_text": shout_text})
    assert (await front.wait(job_id, TIMEOUT_SECONDS)).status is JobStatus.SUCCEEDED


async def test_jobs_are_listed_newest_first_by_user_and_kind(open_runner: OpenRunner) -> None:
    runner = await open_runner()
    await runner.enqueue(kind("shout_text"), JobInput(text="1"), job_id="a1")
    await runner.enqueue(kind("other"), JobInput(), job_id="a2")
    await runner.enqueue(kind("shout_text"), JobInput(text="2"), job_id="a3")
    await runner.enqueue(kind("shout_text"), JobInput(queue="bob", text="3"), job_id="b1")
    assert [job.id for job in await runner.list("alice")] == ["a3", "a2", "a1"]
    assert [job.id for job in await runner.list("alice", kind("shout_text"), limit=1)] == ["a3"]
    assert {job.id for job in await runner.list(kind=kind("shout_text"))} == {"a1", "a3", "b1"}


async def test_old_finished_jobs_are_pruned_and_young_or_waiting_ones_stay(open_runner: OpenRunner) -> None:
    runner = await open_runner({"shout_text": shout_text, "gate": (gate := BlockingHandler())})
    done = await runner.enqueue(kind("shout_text"), JobInput(text="x"))
    await runner.wait(done, TIMEOUT_SECONDS)
    waiting = await runner.enqueue(kind("gate"), JobInput(number=1))
    await gate.inside.acquire()
    assert await runner.prune(datetime.now(UTC) - timedelta(days=1)) == 0
    assert await runner.prune(datetime.now(UTC) + timedelta(days=1)) == 1
    assert await runner.find(done) is None
    assert (await get_job(runner, waiting)).status is JobStatus.RUNNING
    gate.open()
    assert (await runner.wait(waiting, TIMEOUT_SECONDS)).status is JobStatus.SUCCEEDED


async def test_invalid_requests_are_rejected_with_a_reason(open_runner: OpenRunner) -> None:
    runner = await open_runner({"shout_text": shout_text})
    with pytest.raises(InvalidInput, match="partition"):
        await runner.enqueue(kind("shout_text"), JobInput(queue=" "))
    with pytest.raises(NotFound):
        await runner.retry("nobody")
    with pytest.raises(NotFound):
        await runner.wait("nobody", 1)
    with pytest.raises(ConfigurationError, match="already runs jobs"):
        await open_runner({"shout_text": shout_text})
    assert await runner.find("nobody") is None
    await runner.wait(await runner.enqueue(kind("shout_text"), JobInput(text="still works")), TIMEOUT_SECONDS)


async def test_step_result_must_be_json_serializable(open_runner: OpenRunner) -> None:
    async def bad(payload: JobInput, steps: Steps) -> JobOutcome:
        async def step() -> object:
            return object()

        await steps.run("odd", step)
        return JobOutcome()

    runner = await open_runner({"bad": bad})
    job = await runner.wait(await runner.enqueue(kind("bad"), JobInput()), TIMEOUT_SECONDS)
    assert job.status is JobStatus.FAILED
    assert "Step 'odd' must return what JSON can hold" in str(job.error)


@postgres_first
async def test_job_of_an_unknown_kind_waits_for_a_newer_worker(open_runner: OpenRunner) -> None:
    front = await open_runner()
    job_id = await front.enqueue(kind("sing"), JobInput())
    behind = await front.enqueue(kind("shout_text"), JobInput(text="then this"))
    older = await open_runner({"shout_text": shout_text})
    job = await front.wait(job_id, TIMEOUT_SECONDS)
    assert job.status is JobStatus.QUEUED
    assert job.waits_until
    assert job.reason == "this worker knows no job of kind 'sing'; a newer one does it"
    assert (await front.get(behind)).status is JobStatus.QUEUED, "the user's jobs keep their order"
    await older.close()

    await open_runner({"shout_text": shout_text, "sing": shout_text})
    for queued in (job_id, behind):
        assert (await wait_to_the_end(front, queued)).status is JobStatus.SUCCEEDED


async def test_two_versions_of_workers_do_the_jobs_of_both(
    open_runner: OpenRunner, worker_process: WorkerSubprocess
) -> None:
    older = await open_runner({"shout_text": shout_text})
    worker_process.start()
    worker_process.wait_for_line("ready")
    kinds = {f"user-{number}": "three" if number % 2 else "shout_text" for number in range(6)}
    ids = [await older.enqueue(kind(name), JobInput(queue=user, text="x")) for user, name in kinds.items()]
    assert {(await wait_to_the_end(older, job_id)).status for job_id in ids} == {JobStatus.SUCCEEDED}


async def test_job_of_a_kind_that_no_worker_knows_fails_after_its_waits(open_runner: OpenRunner) -> None:
    front = await open_runner()
    job_id = await front.enqueue(kind("sing"), JobInput())
    await open_runner({"shout_text": shout_text}, handover_pauses=(0.05, 0.05))
    job = await wait_to_the_end(front, job_id)
    assert job.status is JobStatus.FAILED
    assert "no job of kind 'sing'" in str(job.error)


async def test_runner_prints_nothing_opens_no_port_and_logs_job_start_and_end(
    open_runner: OpenRunner, capfd: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    def listening() -> set[Any]:
        return {socket.laddr for socket in psutil.Process().net_connections() if socket.status == psutil.CONN_LISTEN}

    before = listening()
    with caplog.at_level(logging.INFO):
        runner = await open_runner({"shout_text": shout_text})
        await runner.wait(await runner.enqueue(kind("shout_text"), JobInput(text="hush")), TIMEOUT_SECONDS)
        assert listening() == before
        await runner.close()
    assert capfd.readouterr() == ("", "")
    assert [record.getMessage() for record in caplog.records] == ["job queued", "job"]
    assert "hush" not in str([vars(record) for record in caplog.records])


async def test_unreachable_job_store_raises_unavailable(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(JobStoreUnavailable, match="cannot be written"):
        await JobRunner.open(Settings(data_dir=tmp_path / "file"))
    (tmp_path / "jobs.sqlite").write_text("this is no database, and long enough to be read as a header of one" * 20)
    with pytest.raises(JobStoreUnavailable, match="not a database"):
        await JobRunner.open(Settings(data_dir=tmp_path))
    with pytest.raises(JobStoreUnavailable) as caught:
        await JobRunner.open(Settings(data_dir=tmp_path, jobs_url="postgresql://u:secret@127.0.0.1:1/jobs"))
    assert "secret" not in caught.value.detail
    with pytest.raises(ConfigurationError, match="GRAPHMEM_JOBS_URL"):
        await JobRunner.open(Settings(data_dir=tmp_path, jobs_url="mysql://localhost/jobs"))


async def test_closed_runner_raises_unavailable(settings: Settings) -> None:
    runner = await JobRunner.open(settings)
    await runner.close()
    await runner.close()
    with pytest.raises(JobStoreUnavailable, match="closed"):
        await runner.enqueue(kind("shout_text"), JobInput())
