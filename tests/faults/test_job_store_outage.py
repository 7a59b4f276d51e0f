"""A job store that cannot be written: callers learn it without a path, and stored messages are not forgotten."""

from __future__ import annotations

import asyncio
import sqlite3
import uuid
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from graphmem.app.bootstrap import Services
from graphmem.consolidation.models import RunStatus, RunTrigger
from graphmem.consolidation.run_store import RunStore
from graphmem.consolidation.service import CONSOLIDATION_JOB, ConsolidationPayload
from graphmem.conversations.session import MessagesIn
from graphmem.ingestion.jobs import EXTRACTION_JOB
from graphmem.jobs.worker import WorkerOptions
from graphmem.memories.memory import MemoryIn
from graphmem.models.embedder import Embedder
from graphmem.neo4j.driver import Graph
from graphmem.runtime.errors import JobStoreUnavailable
from graphmem.runtime.settings import Settings
from graphmem.runtime.times import utc_now
from graphmem.tenants.owners import Owner

TRIGGER = (
    "CREATE TRIGGER broken BEFORE INSERT ON workflow_status BEGIN SELECT RAISE(ABORT, 'database or disk is full'); END"
)


@contextmanager
def broken_job_store(data_dir: Path) -> Iterator[None]:
    """A job store in which no job can be queued."""
    for statement in (TRIGGER, "DROP TRIGGER broken"):
        with closing(sqlite3.connect(data_dir / "jobs.sqlite", timeout=10)) as store, store:
            store.execute(statement)
        if statement is TRIGGER:
            yield


@pytest.fixture
def settings(database: Settings, tmp_path: Path) -> Settings:
    return database.model_copy(update={"data_dir": tmp_path, "nightly": False})


async def test_messages_whose_job_could_not_be_queued_are_extracted_without_a_restart(
    settings: Settings, owner: Owner, graph: Graph, embedder: Embedder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("graphmem.app.health.SWEEP_SECONDS", 0.2)
    batch = MessagesIn.model_validate({"session_id": "s1", "messages": [{"role": "user", "content": "I have a cat"}]})
    async with Services.open(settings, embedder=embedder) as services:
        with broken_job_store(settings.data_dir):
            with pytest.raises(JobStoreUnavailable) as refusal:
                await services.messages.add(owner, batch)
            assert str(settings.data_dir) not in refusal.value.detail
            assert "try again" in refusal.value.detail
        async with asyncio.timeout(60):
            while not await services.jobs.list(owner.group_id, EXTRACTION_JOB):  # noqa: ASYNC110 - it sets no event
                await asyncio.sleep(0.1)
        [job] = await services.jobs.list(owner.group_id, EXTRACTION_JOB)
        assert (await services.jobs.wait(job.id, 60)).status.is_final


async def test_run_whose_job_has_failed_does_not_stay_unfinished(
    settings: Settings, owner: Owner, graph: Graph, embedder: Embedder
) -> None:
    runs, run_id = RunStore(graph), str(uuid.uuid4())
    properties = {"group_id": owner.group_id, "tenant": owner.tenant, "user_id": owner.user_id, "now": utc_now()}
    await graph.execute("users.lock_or_create", **properties)
    await runs.create(run_id, owner.tenant, owner, RunTrigger.ON_DEMAND, utc_now())
    async with Services.open(settings, worker=False, embedder=embedder) as services:
        # It knows no kind of job and waits for no other worker, so that the job fails.
        await services.jobs.start_worker([], WorkerOptions(handover_pauses=()))
        payload = ConsolidationPayload(run_id=run_id, tenant=owner.tenant, user_id=owner.user_id)
        job = await services.jobs.wait(await services.jobs.enqueue(CONSOLIDATION_JOB, payload, run_id), 60)
        assert (await services.consolidations.get(owner.tenant, run_id)).status is RunStatus.QUEUED
        assert await services.consolidations.end_stranded() == 1
        run = await services.consolidations.get(owner.tenant, run_id)
        assert (run.status, run.reason) == (RunStatus.FAILED, job.error)


async def test_run_that_cannot_be_queued_has_failed(
    settings: Settings, owner: Owner, graph: Graph, embedder: Embedder
) -> None:
    async with Services.open(settings, worker=False, embedder=embedder) as services:
        await services.memories.save(owner, [MemoryIn(content="Mara likes tea")])
        with broken_job_store(settings.data_dir), pytest.raises(JobStoreUnavailable):
            await services.consolidations.start(owner.tenant, user_id=owner.user_id)
        [run] = await RunStore(graph).list_page(owner.tenant, owner, None, 10)
        assert run.status is RunStatus.FAILED
