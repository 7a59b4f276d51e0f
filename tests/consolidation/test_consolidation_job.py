"""Runs as durable jobs: on demand, at night, and through crashes."""

from __future__ import annotations

import asyncio
import json
import os
import signal
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from graphmem.consolidation.analysis import ProposalAnalyser
from graphmem.consolidation.consolidation_job import RUN_WITHOUT_MODEL_REASON, ConsolidationJob
from graphmem.consolidation.discovery import Discovery
from graphmem.consolidation.models import (
    ConsolidationRun,
    ProposalVerdict,
    RunListQuery,
    RunPhase,
    RunStatus,
    RunTrigger,
)
from graphmem.consolidation.service import CONSOLIDATION_JOB, NIGHT_JOB, ConsolidationService, NightPayload
from graphmem.jobs.job import Job, JobStatus
from graphmem.jobs.kinds import JobHandler
from graphmem.jobs.runner import JobRunner
from graphmem.models.language_model import load_prompts
from graphmem.models.provider_model import ProviderModel
from graphmem.runtime.errors import (
    Conflict,
    Gone,
    InvalidInput,
    NotFound,
)
from graphmem.runtime.retries import RetryPolicy
from graphmem.runtime.settings import Settings
from graphmem.tenants.owners import Owner
from graphmem.tenants.tenant_settings import InstructionStore
from tests.consolidation.conftest import ConsolidationHarness, Worker
from tests.consolidation.test_analysis import action
from tests.consolidation.test_execution import DIET, current, merge, verified
from tests.consolidation.verifications import carried, checked
from tests.forks import Fork, start_script
from tests.model_server import ModelServer
from tests.models.scripted_server import ScriptedServer, Step, fails, replies

PATIENCE = 60
STAGES = {"analysis": "5 2 * * *", "execution": "30 2 * * *", "timezone": "UTC"}


class RunClient:
    """A user's consolidation with its jobs."""

    def __init__(self, harness: ConsolidationHarness, jobs: JobRunner, service: ConsolidationService) -> None:
        self.harness = harness
        self.jobs = jobs
        self.service = service

    async def start(self, **given: Any) -> ConsolidationRun:
        started = await self.service.start(self.harness.owner.tenant, wait=True, **given)
        assert isinstance(started, ConsolidationRun)
        return started

    async def begin_night(self) -> Job:
        """Queue the nightly runs as the schedule does at 02:00, and return the job of the only one."""
        at = self.harness.clock().isoformat()
        payload = NightPayload(tenant=self.harness.owner.tenant, scheduled_at=at, **STAGES)
        night = await self.jobs.wait(await self.jobs.enqueue(NIGHT_JOB, payload), PATIENCE)
        assert night.status is JobStatus.SUCCEEDED, night.error
        job, *_ = await self.jobs.list(kind=CONSOLIDATION_JOB)
        return await self.jobs.wait(job.id, PATIENCE)

    async def go_on(self, job: Job, minutes: int) -> Job:
        """Let the time of a job's next stage come."""
        self.harness.clock.advance(timedelta(minutes=minutes))
        await self.jobs.retry(job.id)
        return await self.jobs.wait(job.id, PATIENCE)

    async def runs(self) -> list[ConsolidationRun]:
        page = await self.service.page(self.harness.owner.tenant, RunListQuery())
        return [await self.service.get(self.harness.owner.tenant, run.id) for run in page.items]


def make_run_client(harness: ConsolidationHarness, worker: Worker, model: ProviderModel | None = None) -> RunClient:
    discovery = Discovery(harness.graph, batch_size=25, max_batches=400)
    analyser = ProposalAnalyser(harness.graph, InstructionStore(harness.graph), model, load_prompts(), harness.clock)
    job = ConsolidationJob(
        harness.graph, harness.runs, discovery, analyser, harness.executor, harness.clock, worker.jobs
    )
    worker.dispatcher.use(JobHandler(CONSOLIDATION_JOB, job.handle), JobHandler(NIGHT_JOB, job.handle_night))
    return RunClient(harness, worker.jobs, harness.service(discovery, worker.jobs))


@pytest.fixture
def run_client(harness: ConsolidationHarness, worker: Worker) -> RunClient:
    return make_run_client(harness, worker)


@asynccontextmanager
async def open_run_client_with_model(
    harness: ConsolidationHarness, worker: Worker, *steps: Step
) -> AsyncIterator[tuple[RunClient, ScriptedServer]]:
    with ScriptedServer(*steps) as server:
        async with ProviderModel(base_url=server.base_url, retries=RetryPolicy(attempts=1)) as model:
            yield make_run_client(harness, worker, model), server


def model_answers(*actions: dict[str, Any]) -> Step:
    return replies(json.dumps({"steps": [], "actions": list(actions)}))


def model_verifies(*answers: dict[str, Any]) -> Step:
    return replies(json.dumps({"proposals": list(answers)}))


_PROPOSED = action("MERGE", memories=[1, 2], content=DIET)
_CHECKED = checked(
    statements=[
        carried(1, ("User is vegetarian", "User is vegetarian")),
        carried(2, ("User", "User"), ("eats no dairy", "eats no dairy")),
    ]
)
PROPOSES_DIET, VERIFIES_DIET = model_answers(_PROPOSED), model_verifies(_CHECKED)
PROPOSES_AND_VERIFIES_DIET = replies(json.dumps({"steps": [], "actions": [_PROPOSED], "proposals": [_CHECKED]}))
"""Answers both questions, however often each is asked: a step that fails on a busy machine is repeated."""


async def test_curated_proposals_are_carried_out_by_a_job(run_client: RunClient) -> None:
    memories = await run_client.harness.save("User is vegetarian", "User eats no dairy")
    run = await run_client.start(
        user_id=run_client.harness.owner.user_id, proposals=[verified(merge(memories, DIET))], actor="key1"
    )
    assert (run.status, run.trigger, run.actor) == (RunStatus.SUCCEEDED, RunTrigger.CURATED, "key1")
    assert [proposal.verdict for proposal in run.proposals] == [ProposalVerdict.EXECUTED]
    assert run.changes
    undone = await run_client.service.rollback(run_client.harness.owner.tenant, run.id)
    assert undone.restored == run.change_count
    assert set(await current(run_client.harness)) == {memory.content for memory in memories}


async def test_proposals_need_a_user_and_a_known_action(run_client: RunClient) -> None:
    with pytest.raises(InvalidInput):
        await run_client.start(proposals=[{"action": "ASSOCIATE", "memory_ids": ["a", "b"]}])
    with pytest.raises(InvalidInput):
        await run_client.start(user_id="mara", proposals=[{"action": "FORGET", "memory_ids": ["a", "b"]}])


async def test_a_dry_run_shows_the_difference_and_cannot_be_rolled_back(run_client: RunClient) -> None:
    memories = await run_client.harness.save("User is vegetarian", "User eats no dairy")
    before = await run_client.harness.graph_state()
    run = await run_client.start(
        user_id=run_client.harness.owner.user_id, proposals=[verified(merge(memories, DIET))], dry_run=True
    )
    assert (run.status, run.dry_run) == (RunStatus.SUCCEEDED, True)
    assert [proposal.verdict for proposal in run.proposals] == [ProposalVerdict.PLANNED]
    assert DIET in {change.after.properties["fact"] for change in run.changes if change.after and not change.before}
    assert await run_client.harness.graph_state() == before
    with pytest.raises(Conflict):
        await run_client.service.rollback(run_client.harness.owner.tenant, run.id)


async def test_an_aborted_run_says_why_and_changes_nothing(run_client: RunClient) -> None:
    contents = [f"User likes {thing}" for thing in ("tea", "jazz", "maps", "rain", "salt", "clay")]
    memories = await run_client.harness.save(*contents)
    proposal = verified(merge(memories, "User likes tea, jazz, maps, rain, salt and clay"))
    run = await run_client.start(user_id=run_client.harness.owner.user_id, proposals=[proposal])
    assert run.status is RunStatus.ABORTED
    assert "6 of 6" in (run.reason or "")
    assert set(await current(run_client.harness)) == set(contents)


async def test_runs_are_listed_by_tenant_and_user_page_by_page(run_client: RunClient) -> None:
    harness = run_client.harness
    await harness.save("User likes green tea")
    for _ in range(3):
        await run_client.start(user_id=harness.owner.user_id)
    first = await run_client.service.page(harness.owner.tenant, RunListQuery(user_id=harness.owner.user_id, limit=2))
    rest = await run_client.service.page(
        harness.owner.tenant, RunListQuery(user_id=harness.owner.user_id, limit=2, cursor=first.next_cursor)
    )
    assert len({run.id for run in (*first.items, *rest.items)}) == 3
    assert (await run_client.service.page(harness.owner.tenant, RunListQuery(user_id="noor"))).items == []
    with pytest.raises(NotFound):
        await run_client.service.get("another", first.items[0].id)


async def test_a_run_of_all_users_is_one_run_with_parts(run_client: RunClient) -> None:
    harness = run_client.harness
    other = replace(harness, owner=Owner(harness.owner.tenant, "noor"))
    for user in (harness, other):
        await user.save("User likes green tea", "User likes green tea a lot")
    before = [await user.graph_state() for user in (harness, other)]
    run = await run_client.start()
    assert run.status is RunStatus.SUCCEEDED
    assert (run.user_id, len(run.parts), run.executed) == (None, 2, 2)
    assert run.change_count == len(run.changes) == 4
    undone = await run_client.service.rollback(harness.owner.tenant, run.id)
    assert undone.restored == 4
    assert [await user.graph_state() for user in (harness, other)] == before
    assert (await run_client.service.get(harness.owner.tenant, run.id)).status is RunStatus.ROLLED_BACK


async def test_a_run_of_all_users_whose_parts_were_rolled_back_one_by_one(run_client: RunClient) -> None:
    harness = run_client.harness
    other = replace(harness, owner=Owner(harness.owner.tenant, "noor"))
    await harness.save("User likes green tea", "User likes green tea a lot")
    await other.save("User repairs bicycles", "User is afraid of spiders")
    run = await run_client.start()
    assert (len(run.parts), run.change_count) == (2, 2)
    parts = {owner: part_id for part_id, owner in await harness.runs.list_user_runs(harness.owner.tenant, run.id)}
    await harness.roll_back(parts[harness.owner])
    for roll_back in (run_client.service.rollback, run_client.service.preview_rollback):
        with pytest.raises(Gone, match="Nothing of the run is left"):
            await roll_back(harness.owner.tenant, run.id)


async def test_without_a_model_the_run_says_so(run_client: RunClient) -> None:
    await run_client.harness.save("User likes green tea", "User likes green tea a lot", "User repairs bicycles")
    run = await run_client.start(user_id=run_client.harness.owner.user_id)
    assert run.reason == RUN_WITHOUT_MODEL_REASON
    assert (run.candidates, run.batches, run.executed) == (3, 1, 1)


@pytest.mark.req("UMB-10", "UMB-11", "UMB-12", "QUINN-10")
async def test_a_nightly_run_is_one_job_whose_stages_wait_for_their_times(
    harness: ConsolidationHarness, worker: Worker
) -> None:
    harness.clock.now = datetime(2026, 6, 1, 2, tzinfo=UTC)
    memories = await harness.save("User is vegetarian", "User eats no dairy")
    steps = PROPOSES_DIET, VERIFIES_DIET
    async with open_run_client_with_model(harness, worker, *steps) as (run_client, server):
        job = await run_client.begin_night()
        (run,) = await run_client.runs()
        assert (run.phase, run.trigger, run.candidates) == (RunPhase.DISCOVERED, RunTrigger.NIGHTLY, 2)
        assert (job.id, job.status, server.requests) == (run.id, JobStatus.QUEUED, [])
        assert "02:05" in (job.reason or "")
        waiting = await run_client.service.get(harness.owner.tenant, run.id)
        assert (waiting.status, waiting.reason) == (RunStatus.RUNNING, job.reason)
        job = await run_client.go_on(job, 5)
        (run,) = await run_client.runs()
        assert (run.phase, len(run.proposals), len(server.requests)) == (RunPhase.ANALYSED, 1, 2)
        assert "02:30" in (job.reason or "")
        assert set(await current(harness)) == {memory.content for memory in memories}
        with pytest.raises(Conflict, match="not ended"):
            await run_client.service.rollback(harness.owner.tenant, run.id)
        await run_client.begin_night()
        assert len(await run_client.runs()) == 1, "the run of this night goes on"
        job = await run_client.go_on(job, 25)
        (run,) = await run_client.runs()
        assert (run.phase, run.status, run.receipt.llm_calls) == (RunPhase.DONE, RunStatus.SUCCEEDED, 2)
        assert job.status is JobStatus.SUCCEEDED
        assert list(await current(harness)) == [DIET]
        await run_client.begin_night()
        assert len(await run_client.runs()) == 1, "no memory is new"


async def test_proposals_by_hand_are_verified_by_a_model_like_any_other(
    harness: ConsolidationHarness, worker: Worker
) -> None:
    memories = await harness.save("User is vegetarian", "User eats no dairy", "User likes tea", "User likes jazz")
    given = [merge(memories[:2], DIET), verified(merge(memories[2:], "User likes tea and jazz"))]
    async with open_run_client_with_model(harness, worker, VERIFIES_DIET) as (run_client, server):
        run = await run_client.start(user_id=harness.owner.user_id, proposals=given, actor="key1")
        assert [(one.verdict, one.verified_by) for one in run.proposals] == [
            (ProposalVerdict.EXECUTED, None),
            (ProposalVerdict.EXECUTED, "key1"),
        ]
        assert (len(server.requests), run.receipt.llm_calls) == (1, 1)
        assert "likes jazz" not in json.dumps(server.requests[0]), "a person has verified it"
    await harness.roll_back(run.id)
    async with open_run_client_with_model(harness, worker, model_verifies()) as (run_client, _):
        run = await run_client.start(user_id=harness.owner.user_id, proposals=given[:1])
        assert [one.verdict for one in run.proposals] == [ProposalVerdict.REFUSED]


@pytest.mark.req("UMB-11")
async def test_a_model_that_fails_leaves_everything_and_the_run_can_be_retried(
    harness: ConsolidationHarness, worker: Worker
) -> None:
    memories = await harness.save("User is vegetarian", "User eats no dairy")
    steps = [fails(500), PROPOSES_DIET, fails(500), VERIFIES_DIET]
    async with open_run_client_with_model(harness, worker, *steps) as (run_client, server):
        run = await run_client.start(user_id=harness.owner.user_id)
        assert run.status is RunStatus.FAILED
        assert set(await current(harness)) == {memory.content for memory in memories}
        await run_client.jobs.retry(run.id)
        assert (await run_client.jobs.wait(run.id, PATIENCE)).status is JobStatus.FAILED, "the verifier is away as well"
        assert set(await current(harness)) == {memory.content for memory in memories}
        await run_client.jobs.retry(run.id)
        await run_client.jobs.wait(run.id, PATIENCE)
        assert len(server.requests) == 4, "what the analysis answered is not asked again"
        assert (await run_client.service.get(harness.owner.tenant, run.id)).status is RunStatus.SUCCEEDED
        assert list(await current(harness)) == [DIET]


@pytest.mark.req("UMB-11")
async def test_twenty_six_memories_are_analysed_in_two_calls_and_then_known(
    harness: ConsolidationHarness, worker: Worker
) -> None:
    await harness.save(*(f"User has been to city number {number}" for number in range(26)))
    nothing = model_answers()
    async with open_run_client_with_model(harness, worker, nothing) as (run_client, server):
        run = await run_client.start(user_id=harness.owner.user_id)
        assert (run.status, run.receipt.llm_calls, len(server.requests)) == (RunStatus.SUCCEEDED, 2, 2)
        again = await run_client.start(user_id=harness.owner.user_id)
        assert (again.receipt.llm_calls, len(server.requests)) == (0, 2), "all of them were considered"


POINTS = [
    ("snapshots.record_before", 1),
    ("facts.commit_write", 1),
    ("snapshots.record_after", 1),
    ("runs.update", 1),
    ("commit", 1),
]


@pytest.fixture
def start_killed_worker(database: Settings, models: ModelServer, tmp_path: Path) -> Iterator[Any]:
    processes: list[Fork] = []

    def start(query: str, times: int) -> Fork:
        assert database.neo4j_password
        environment = {
            **os.environ,
            **models.environment,
            "KILLED_URI": str(database.neo4j_uri),
            "KILLED_USER": database.neo4j_user,
            "KILLED_PASSWORD": database.neo4j_password.get_secret_value(),
        }
        script = Path(__file__).with_name("killed_worker.py")
        processes.append(start_script(script, str(tmp_path), query, str(times), environment=environment))
        return processes[-1]

    yield start
    for process in processes:
        process.kill()
        process.wait()


@pytest.mark.timeout(600)
@pytest.mark.req("UMB-12")
async def test_a_run_killed_in_any_phase_is_atomic(
    harness: ConsolidationHarness, tmp_path: Path, start_killed_worker: Any
) -> None:
    memories = await harness.save("User is vegetarian", "User eats no dairy", "User likes tea", "User likes jazz")
    before = await harness.graph_state()
    discovery = Discovery(harness.graph, batch_size=25, max_batches=400)
    async with await JobRunner.open(Settings(data_dir=tmp_path)) as jobs:
        service = harness.service(discovery, jobs)
        together = {"action": "ASSOCIATE", "memory_ids": [memory.id for memory in memories[2:]]}
        proposals = [verified(merge(memories[:2], DIET)), together]
        run_id = await service.start(harness.owner.tenant, user_id=harness.owner.user_id, proposals=proposals)
        assert isinstance(run_id, str)
        found = before
        for query, times in POINTS:
            process = start_killed_worker(query, times)
            assert await asyncio.to_thread(process.wait, 90) == -signal.SIGKILL
            found = await harness.graph_state()
            done = (await harness.runs.get(harness.owner.tenant, run_id)).phase is RunPhase.DONE
            assert done is (query == "commit")
            assert (found == before) is not done
        start_killed_worker("nothing", 0)
        job = await jobs.wait(run_id, 90)
    assert job.status is JobStatus.SUCCEEDED
    assert await harness.graph_state() == found, "a run that is done is not repeated"
    assert set(await current(harness)) == {DIET, "User likes tea", "User likes jazz"}
    await harness.roll_back(run_id)
    assert await harness.graph_state() == before
