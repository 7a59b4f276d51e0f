"""Runs as durable jobs: on demand, night by night, through crashes."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import uuid
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from graphmem.consolidation.analyse import Analyst
from graphmem.consolidation.discover import Discovery
from graphmem.consolidation.pipeline import KIND, NO_MODEL, Consolidator, Stage
from graphmem.domain.identity import Owner
from graphmem.domain.job import Job, JobStatus
from graphmem.domain.proposals import Phase, Run, RunStatus, Trigger, Verdict
from graphmem.errors import Conflict, InvalidInput, NotFound
from graphmem.jobs import JobRunner
from graphmem.llm.client import LanguageModel
from graphmem.llm.prompts import load_prompts
from graphmem.service.consolidations import Consolidations
from graphmem.settings import Settings
from tests.consolidation.conftest import Bench
from tests.consolidation.test_analyse import action
from tests.consolidation.test_execute import DIET, current, merge
from tests.llm.scripted import ScriptedServer, Step, fails, says
from tests.model_server import ModelServer

PATIENCE = 60


class Night:
    """A user's consolidation with its jobs."""

    def __init__(self, bench: Bench, jobs: JobRunner, verbs: Consolidations) -> None:
        self.bench = bench
        self.jobs = jobs
        self.verbs = verbs

    async def start(self, **given: Any) -> Run:
        started = await self.verbs.start(self.bench.owner.tenant, wait=True, **given)
        assert isinstance(started, Run)
        return started

    async def tick(self, stage: Stage) -> Job:
        at = self.bench.clock().isoformat()
        payload = {"stage": stage.value, "tenant": self.bench.owner.tenant, "scheduled_at": at}
        job = await self.jobs.wait(await self.jobs.enqueue(KIND, f"system:{uuid.uuid4()}", payload), PATIENCE)
        assert job.status is JobStatus.SUCCEEDED, job.error
        for each in await self.jobs.list(kind=KIND):
            await self.jobs.wait(each.id, PATIENCE)
        return job

    async def runs(self) -> list[Run]:
        page = await self.verbs.page(self.bench.owner.tenant)
        return [await self.verbs.get(self.bench.owner.tenant, each.id) for each in page.items]


@asynccontextmanager
async def night_of(bench: Bench, settings: Settings, model: LanguageModel | None = None) -> AsyncIterator[Night]:
    held: list[JobRunner] = []

    async def enqueue(kind: str, partition: str, payload: dict[str, Any], job_id: str) -> str:
        return await held[0].enqueue(kind, partition, payload, job_id)

    discovery = Discovery(bench.graph, batch_size=25, max_batches=400)
    analyst = Analyst(bench.graph, model, load_prompts())
    consolidator = Consolidator(bench.graph, bench.runs, discovery, analyst, bench.executor, bench.clock, enqueue)
    waits = (0.01,)
    async with await JobRunner.open(settings, {KIND: consolidator.handle}, retry_waits=waits) as jobs:
        held.append(jobs)
        verbs = Consolidations(bench.graph, bench.runs, bench.executor, bench.rollbacks, jobs, bench.clock)
        yield Night(bench, jobs, verbs)


@pytest.fixture
async def night(bench: Bench, tmp_path: Path) -> AsyncIterator[Night]:
    async with night_of(bench, Settings(data_dir=tmp_path)) as night:
        yield night


@asynccontextmanager
async def modelled(bench: Bench, tmp_path: Path, *steps: Step) -> AsyncIterator[tuple[Night, ScriptedServer]]:
    with ScriptedServer(*steps) as server:
        async with (
            LanguageModel(base_url=server.base_url, attempts=1) as model,
            night_of(bench, Settings(data_dir=tmp_path), model) as night,
        ):
            yield night, server


def answer(*actions: dict[str, Any]) -> Step:
    return says(json.dumps({"steps": [], "actions": list(actions)}))


async def test_curated_proposals_are_carried_out_by_a_job(night: Night) -> None:
    memories = await night.bench.save("User is vegetarian", "User eats no dairy")
    run = await night.start(user_id=night.bench.owner.user_id, proposals=[merge(memories, DIET)], actor="key1")
    assert (run.status, run.trigger, run.actor) == (RunStatus.SUCCEEDED, Trigger.CURATED, "key1")
    assert [each.verdict for each in run.proposals] == [Verdict.EXECUTED]
    assert run.changes
    undone = await night.verbs.rollback(night.bench.owner.tenant, run.id)
    assert undone.restored == run.change_count
    assert set(await current(night.bench)) == {each.content for each in memories}


async def test_proposals_need_a_user_and_a_known_action(night: Night) -> None:
    with pytest.raises(InvalidInput):
        await night.start(proposals=[{"action": "ASSOCIATE", "memory_ids": ["a", "b"]}])
    with pytest.raises(InvalidInput):
        await night.start(user_id="mara", proposals=[{"action": "FORGET", "memory_ids": ["a", "b"]}])


async def test_a_dry_run_shows_the_difference_and_cannot_be_rolled_back(night: Night) -> None:
    memories = await night.bench.save("User is vegetarian", "User eats no dairy")
    before = await night.bench.everything()
    run = await night.start(user_id=night.bench.owner.user_id, proposals=[merge(memories, DIET)], dry_run=True)
    assert (run.status, run.dry_run) == (RunStatus.SUCCEEDED, True)
    assert [each.verdict for each in run.proposals] == [Verdict.PLANNED]
    assert DIET in {change.after["fact"] for change in run.changes if change.after and not change.before}
    assert await night.bench.everything() == before
    with pytest.raises(Conflict):
        await night.verbs.rollback(night.bench.owner.tenant, run.id)


async def test_an_aborted_run_says_why_and_changes_nothing(night: Night) -> None:
    contents = [f"User likes {thing}" for thing in ("tea", "jazz", "maps", "rain", "salt", "clay")]
    memories = await night.bench.save(*contents)
    proposal = merge(memories, "User likes tea, jazz, maps, rain, salt and clay")
    run = await night.start(user_id=night.bench.owner.user_id, proposals=[proposal])
    assert run.status is RunStatus.ABORTED
    assert "6 of 6" in (run.reason or "")
    assert set(await current(night.bench)) == set(contents)


async def test_runs_are_listed_by_tenant_and_user_page_by_page(night: Night) -> None:
    bench = night.bench
    for _ in range(3):
        await night.start(user_id=bench.owner.user_id)
    first = await night.verbs.page(bench.owner.tenant, user_id=bench.owner.user_id, limit=2)
    rest = await night.verbs.page(bench.owner.tenant, user_id=bench.owner.user_id, limit=2, cursor=first.next_cursor)
    assert len({each.id for each in (*first.items, *rest.items)}) == 3
    assert (await night.verbs.page(bench.owner.tenant, user_id="noor")).items == []
    with pytest.raises(NotFound):
        await night.verbs.get("another", first.items[0].id)


async def test_a_run_of_all_users_is_one_run_with_parts(night: Night) -> None:
    bench = night.bench
    other = replace(bench, owner=Owner(bench.owner.tenant, "noor"))
    for each in (bench, other):
        await each.save("User likes green tea", "User likes green tea a lot")
    before = [await each.everything() for each in (bench, other)]
    run = await night.start()
    assert run.status is RunStatus.SUCCEEDED
    assert (run.user_id, len(run.parts), run.executed) == (None, 2, 2)
    assert run.change_count == len(run.changes) == 4
    undone = await night.verbs.rollback(bench.owner.tenant, run.id)
    assert undone.restored == 4
    assert [await each.everything() for each in (bench, other)] == before
    assert (await night.verbs.get(bench.owner.tenant, run.id)).status is RunStatus.ROLLED_BACK


async def test_without_a_model_the_run_says_so(night: Night) -> None:
    await night.bench.save("User likes green tea", "User likes green tea a lot", "User repairs bicycles")
    run = await night.start(user_id=night.bench.owner.user_id)
    assert run.reason == NO_MODEL
    assert (run.candidates, run.batches, run.executed) == (3, 1, 1)


@pytest.mark.req("UMB-10", "UMB-11", "UMB-12", "QUINN-10")
async def test_a_night_discovers_then_analyses_then_executes(bench: Bench, tmp_path: Path) -> None:
    memories = await bench.save("User is vegetarian", "User eats no dairy")
    proposed = action("MERGE", memories=[1, 2], content=DIET)
    async with modelled(bench, tmp_path, answer(proposed)) as (night, server):
        await night.tick(Stage.DISCOVERY)
        (run,) = await night.runs()
        assert (run.phase, run.trigger, run.candidates, server.requests) == (Phase.DISCOVERED, Trigger.NIGHTLY, 2, [])
        await night.tick(Stage.ANALYSIS)
        (run,) = await night.runs()
        assert (run.phase, len(run.proposals), len(server.requests)) == (Phase.ANALYSED, 1, 1)
        assert set(await current(bench)) == {each.content for each in memories}
        await night.tick(Stage.EXECUTION)
        (run,) = await night.runs()
        assert (run.phase, run.status, run.receipt.llm_calls) == (Phase.DONE, RunStatus.SUCCEEDED, 1)
        assert list(await current(bench)) == [DIET]
        await night.tick(Stage.DISCOVERY)
        assert len(await night.runs()) == 1, "nothing is new"


@pytest.mark.req("UMB-10")
async def test_a_missed_night_is_caught_up_with(bench: Bench, tmp_path: Path) -> None:
    await bench.save("User is vegetarian", "User eats no dairy")
    async with modelled(bench, tmp_path, answer(action("MERGE", memories=[1, 2], content=DIET))) as (night, _):
        await night.tick(Stage.DISCOVERY)
        bench.clock.advance(timedelta(days=2))
        await bench.save("User likes jazz")
        for stage in Stage:
            await night.tick(stage)
        assert set(await current(bench)) == {DIET, "User likes jazz"}
        bench.clock.advance(timedelta(days=1))
        await night.tick(Stage.DISCOVERY)
        runs = await night.runs()
        assert [run.candidates for run in runs if run.phase is Phase.DISCOVERED] == [1], "what came meanwhile"


@pytest.mark.req("UMB-11")
async def test_a_model_that_fails_leaves_everything_and_the_run_can_be_retried(bench: Bench, tmp_path: Path) -> None:
    memories = await bench.save("User is vegetarian", "User eats no dairy")
    steps = [fails(500), fails(500), answer(action("MERGE", memories=[1, 2], content=DIET))]
    async with modelled(bench, tmp_path, *steps) as (night, _):
        run = await night.start(user_id=bench.owner.user_id)
        assert run.status is RunStatus.FAILED
        assert set(await current(bench)) == {each.content for each in memories}
        await night.jobs.retry(run.id)
        await night.jobs.wait(run.id, PATIENCE)
        assert (await night.verbs.get(bench.owner.tenant, run.id)).status is RunStatus.SUCCEEDED
        assert list(await current(bench)) == [DIET]


POINTS = [
    ("snapshots.record", 1),
    ("facts.write", 1),
    ("snapshots.finish", 1),
    ("consolidation.update_run", 1),
    ("commit", 1),
]


@pytest.fixture
def killed(database: Settings, models: ModelServer, tmp_path: Path) -> Iterator[Any]:
    processes: list[subprocess.Popen[bytes]] = []

    def start(query: str, times: int) -> subprocess.Popen[bytes]:
        assert database.neo4j_password
        environment = {
            **os.environ,
            **models.environment,
            "KILLED_URI": str(database.neo4j_uri),
            "KILLED_USER": database.neo4j_user,
            "KILLED_PASSWORD": database.neo4j_password.get_secret_value(),
        }
        script = Path(__file__).with_name("killed_worker.py")
        command = [sys.executable, str(script), str(tmp_path), query, str(times)]
        processes.append(subprocess.Popen(command, env=environment, cwd=Path(__file__).parents[2]))
        return processes[-1]

    yield start
    for process in processes:
        process.kill()
        process.wait()


@pytest.mark.timeout(600)
@pytest.mark.req("UMB-12")
async def test_killed_in_any_phase_a_run_has_done_all_or_nothing(bench: Bench, tmp_path: Path, killed: Any) -> None:
    memories = await bench.save("User is vegetarian", "User eats no dairy", "User likes tea", "User likes jazz")
    before = await bench.everything()
    async with await JobRunner.open(Settings(data_dir=tmp_path), {}, worker=False) as jobs:
        verbs = Consolidations(bench.graph, bench.runs, bench.executor, bench.rollbacks, jobs, bench.clock)
        together = {"action": "ASSOCIATE", "memory_ids": [each.id for each in memories[2:]]}
        proposals = [merge(memories[:2], DIET), together]
        run_id = await verbs.start(bench.owner.tenant, user_id=bench.owner.user_id, proposals=proposals)
        assert isinstance(run_id, str)
        for query, times in POINTS:
            process = killed(query, times)
            assert await asyncio.to_thread(process.wait, 90) == -signal.SIGKILL
            found = await bench.everything()
            done = (await bench.runs.get(bench.owner.tenant, run_id)).phase is Phase.DONE
            assert done is (query == "commit")
            assert (found == before) is not done
        killed("nothing", 0)
        job = await jobs.wait(run_id, 90)
    assert job.status is JobStatus.SUCCEEDED
    assert await bench.everything() == found, "what was done is not done again"
    assert set(await current(bench)) == {DIET, "User likes tea", "User likes jazz"}
    await bench.undo(run_id)
    assert await bench.everything() == before
