"""A job store that does not answer, or whose disk is full: calls fail in time and say what to do."""

from __future__ import annotations

import asyncio
import sqlite3
from contextlib import closing, suppress

import psycopg
import pytest
from sqlalchemy import event

from graphmem.jobs.job import JobOutcome, JobStatus
from graphmem.jobs.kinds import Steps
from graphmem.runtime.errors import JobStoreUnavailable
from graphmem.runtime.settings import Settings
from tests.jobs.conftest import OpenRunner, PostgresServer
from tests.jobs.kinds import JobInput, kind

FULL_DISK = """
CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS
$$ BEGIN RAISE EXCEPTION USING ERRCODE = 'disk_full', MESSAGE = 'kein Platz'; END $$;
CREATE TRIGGER refuse BEFORE INSERT ON graphmem_jobs.workflow_status EXECUTE FUNCTION refuse();
"""


@pytest.mark.parametrize("settings", ["postgres"], indirect=True)
async def test_a_frozen_postgres_is_reported_in_time(
    open_runner: OpenRunner, postgres_server: PostgresServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    runner = await open_runner()
    monkeypatch.setattr("graphmem.jobs.runner.CALL_SECONDS", 0.3)
    with postgres_server.frozen():
        for _ in range(3):
            with pytest.raises(JobStoreUnavailable, match="does not answer"):
                await runner.enqueue(kind("echo"), JobInput(text="Ada"), "job")
            monkeypatch.setattr("graphmem.jobs.runner.CALL_SECONDS", 600.0)  # only the first call waits
    monkeypatch.undo()
    async with asyncio.timeout(60):
        while True:
            with suppress(JobStoreUnavailable):  # until the call that hung has ended
                await runner.list()
                break
            await asyncio.sleep(0.05)
    assert await runner.enqueue(kind("echo"), JobInput(text="Ada"), "job") == "job"
    assert [job.id for job in await runner.list()] == ["job"], "the call that hung and the repeated one are one job"


@pytest.mark.parametrize("settings", ["postgres"], indirect=True)
async def test_a_full_disk_of_postgres_is_named_in_any_language(open_runner: OpenRunner, settings: Settings) -> None:
    runner = await open_runner()
    assert settings.jobs_url
    with psycopg.connect(settings.jobs_url, autocommit=True) as connection:
        connection.execute(FULL_DISK)
    with pytest.raises(JobStoreUnavailable, match="disk is full: free disk space"):
        await runner.enqueue(kind("echo"), JobInput(text="Ada"))


async def test_calls_wait_while_another_process_compacts_the_file_of_sqlite(
    open_runner: OpenRunner, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    runner = await open_runner()
    monkeypatch.setattr("graphmem.jobs.runner.CALL_SECONDS", 0.2)
    with closing(sqlite3.connect(settings.data_dir / "jobs.sqlite", isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")  # as VACUUM does
        queued = asyncio.create_task(runner.enqueue(kind("echo"), JobInput(text="Ada"), "job"))
        await asyncio.sleep(0.5)
        assert await runner.list() == [], "others read meanwhile"
        assert not queued.done()
        other.execute("COMMIT")
    assert await queued == "job"


async def test_a_full_disk_of_sqlite_is_named(
    open_runner: OpenRunner, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    runner = await open_runner()

    def limit_size(connection: sqlite3.Connection, _: object) -> None:
        connection.execute("PRAGMA max_page_count = 1")  # SQLite answers as on a full disk

    runner._store.engine.dispose()
    event.listen(runner._store.engine, "connect", limit_size)
    with pytest.raises(JobStoreUnavailable, match="disk is full: free disk space"):
        await runner.enqueue(kind("echo"), JobInput(text="Ada" * 100_000))


@pytest.mark.req("UMB-01")
@pytest.mark.parametrize(("part", "call"), [("registry", "claim"), ("store", "seconds_of_earlier_job")])
async def test_a_job_that_meets_an_outage_of_the_job_store_before_its_handler_goes_on(
    open_runner: OpenRunner, monkeypatch: pytest.MonkeyPatch, part: str, call: str
) -> None:

    async def echo(payload: JobInput, steps: Steps) -> JobOutcome:
        return JobOutcome()

    runner = await open_runner({"echo": echo})
    assert runner._worker
    owner = getattr(runner._worker._context, part)
    answers, outages = getattr(owner, call), [JobStoreUnavailable("The job store does not answer.")]

    def fail_once(*arguments: object) -> object:
        if outages:
            raise outages.pop()
        return answers(*arguments)

    monkeypatch.setattr(owner, call, fail_once)
    job_id = await runner.enqueue(kind("echo"), JobInput(text="Ada"), "job")
    assert (await runner.wait(job_id, 30)).status is JobStatus.SUCCEEDED
