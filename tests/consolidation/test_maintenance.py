"""Maintenance: decay, expiry, compression and archiving, and what they leave alone."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from graphmem.app.bootstrap import Services
from graphmem.app.job_handlers import build_maintenance_job
from graphmem.consolidation.discovery import Discovery
from graphmem.consolidation.maintenance import (
    ARCHIVE_JOB,
    COMPRESSION_WITHOUT_MODEL_REASON,
    MAINTENANCE_JOB,
    MaintenanceJob,
    MaintenanceTasks,
)
from graphmem.consolidation.models import MaintenanceTask
from graphmem.consolidation.run_store import RunStore
from graphmem.consolidation.service import MaintenanceService
from graphmem.conversations.episode_store import EpisodeStore
from graphmem.conversations.session import MessageIn, MessageRole, Session
from graphmem.conversations.stored import PendingJob, PreparedMessage
from graphmem.ingestion.jobs import SUMMARY_JOB, SummaryPayload
from graphmem.ingestion.summary import SummaryJob
from graphmem.jobs.kinds import JobHandler
from graphmem.jobs.runner import JobRunner, JobWaiting
from graphmem.jobs.worker import WorkerOptions
from graphmem.memories.fact import RetrievalCount, decayed_importance
from graphmem.memories.memory import MemoryStatus
from graphmem.memories.writer import MemoryWriter
from graphmem.models.provider_model import ProviderModel
from graphmem.runtime.retries import RetryPolicy
from graphmem.runtime.settings import Settings
from graphmem.secrets.scanner import SecretPolicy
from graphmem.tenants.owners import Owner
from graphmem.tenants.profiles import TenantProfiles
from graphmem.tenants.users import UserStore
from tests.conftest import FakeClock
from tests.consolidation.conftest import ConsolidationHarness
from tests.consolidation.test_execution import DIET, current, verified_merge
from tests.models.scripted_server import ScriptedServer, replies

DAY = timedelta(days=1)
PATIENCE = 60


@pytest.fixture
def maintenance_tasks(harness: ConsolidationHarness) -> MaintenanceTasks:
    return MaintenanceTasks(
        harness.graph,
        harness.facts,
        harness.runs,
        harness.clock,
        archive_days=90,
        compress_days=30,
        rollback_days=30,
    )


async def importance(harness: ConsolidationHarness, content: str) -> float:
    return (await current(harness))[content].importance


@pytest.mark.req("QUINN-11", "UMB-09")
async def test_unread_memories_lose_importance(
    harness: ConsolidationHarness, maintenance_tasks: MaintenanceTasks
) -> None:
    (read, _) = await harness.save("User likes tea", "User likes jazz")
    fading = []
    for _ in range(3):
        harness.clock.advance(31 * DAY)
        await harness.facts.reinforce(harness.owner, {read.id: RetrievalCount(1, harness.clock())})
        assert await maintenance_tasks.decay(harness.owner) == 1
        fading.append(await importance(harness, "User likes jazz"))
    assert fading == sorted(fading, reverse=True)
    assert len(set(fading)) == 3
    assert await importance(harness, "User likes tea") == 0.5


async def test_decay_is_idempotent(harness: ConsolidationHarness, maintenance_tasks: MaintenanceTasks) -> None:
    await harness.save("User likes jazz")
    harness.clock.advance(65 * DAY)
    await maintenance_tasks.decay(harness.owner)
    once = await harness.graph_state()
    assert await importance(harness, "User likes jazz") == pytest.approx(decayed_importance(0.5, 2))
    assert await maintenance_tasks.decay(harness.owner) == 0
    assert await harness.graph_state() == once


@pytest.mark.req("QUINN-19", "QUINN-21")
async def test_core_and_immutable_memories_do_not_decay(
    harness: ConsolidationHarness, maintenance_tasks: MaintenanceTasks
) -> None:
    await harness.save("User is called Mara", importance=0.9)
    await harness.save("User is allergic to nuts", immutable=True)
    harness.clock.advance(400 * DAY)
    assert await maintenance_tasks.decay(harness.owner) == 0


@pytest.mark.req("QUINN-10", "QUINN-18")
async def test_expired_memories_are_archived_by_maintenance(
    harness: ConsolidationHarness, maintenance_tasks: MaintenanceTasks
) -> None:
    soon = harness.clock() + DAY
    (note,) = await harness.save("User is in Rome this week", tags=["temporary"], expires_at=soon)
    await harness.save("User is in Oslo", tags=["temporary"])
    (fixed,) = await harness.save("User rents a car", tags=["temporary"], expires_at=soon, immutable=True)
    (offer,) = await harness.save("User may book at half the price", expires_at=soon)
    assert (await maintenance_tasks.expire(harness.owner))["expired"] == 0
    harness.clock.advance(2 * DAY)
    assert (await maintenance_tasks.expire(harness.owner))["expired"] == 2
    assert (await maintenance_tasks.expire(harness.owner))["expired"] == 0
    for ended in (note, offer):
        assert (await harness.facts.get(harness.owner, ended.id)).status is MemoryStatus.ARCHIVED
    assert [row.ended_reason for row in await harness.facts.get_history(harness.owner, note.id)] == ["expired"]
    assert (await harness.facts.get(harness.owner, fixed.id)).status is MemoryStatus.ACTIVE


@pytest.mark.req("QUINN-18")
async def test_a_feeling_that_is_over_is_archived_without_a_tag_of_its_writer(
    harness: ConsolidationHarness, maintenance_tasks: MaintenanceTasks
) -> None:
    (feeling,) = await harness.save("User is tired of the rain", type="feeling")
    assert feeling.tags == ["temporary"]
    harness.clock.advance(15 * DAY)
    assert (await maintenance_tasks.expire(harness.owner))["expired"] == 1
    assert (await harness.facts.get(harness.owner, feeling.id)).status is MemoryStatus.ARCHIVED


@pytest.mark.req("QUINN-18")
async def test_feedback_memories_are_reviewed_again(
    harness: ConsolidationHarness, maintenance_tasks: MaintenanceTasks
) -> None:
    memories = await harness.save("User wants shorter answers", "User likes lists", tags=["feedback"])
    discovery = Discovery(harness.graph, batch_size=25, max_batches=9)
    run_id, reviewed = await harness.propose({"action": "ASSOCIATE", "memory_ids": [memory.id for memory in memories]})
    await harness.executor.execute(harness.owner, run_id, reviewed, considered=[memory.id for memory in memories])
    assert (await discovery.find_batches(harness.owner, harness.clock())).batches == []
    harness.clock.advance(8 * DAY)
    assert (await maintenance_tasks.expire(harness.owner))["feedback_to_review"] == 2
    assert len((await discovery.find_batches(harness.owner, harness.clock())).batches) == 1
    assert (await maintenance_tasks.expire(harness.owner))["feedback_to_review"] == 0


async def add_messages(
    harness: ConsolidationHarness, count: int, *, session: str = "s", sent_at: datetime | None = None
) -> EpisodeStore:
    episodes = EpisodeStore(harness.graph, harness.clock)
    turns = [
        PreparedMessage(
            MessageIn(role=MessageRole.USER, content=f"Turn {n} about maps", timestamp=sent_at or harness.clock()),
            [0.1] * 384,
        )
        for n in range(count)
    ]
    await episodes.append_messages(harness.owner, session, turns)
    return episodes


@pytest.mark.req("TRUE-23")
async def test_inactive_sessions_are_archived_after_ninety_days(
    harness: ConsolidationHarness, maintenance_tasks: MaintenanceTasks
) -> None:
    episodes = await add_messages(harness, 2)
    harness.clock.advance(80 * DAY)
    assert (await maintenance_tasks.prune(harness.owner))["sessions_archived"] == 0
    await add_messages(harness, 1, session="young")
    harness.clock.advance(11 * DAY)
    assert (await maintenance_tasks.prune(harness.owner))["sessions_archived"] == 1
    assert (await maintenance_tasks.prune(harness.owner))["sessions_archived"] == 0
    assert not (await episodes.get_session(harness.owner, "s")).is_active
    assert (await episodes.get_session(harness.owner, "young")).is_active
    assert len(await episodes.list_session_messages(harness.owner, "s", after=0)) == 2, "archived is not erased"
    await add_messages(harness, 1)
    assert (await episodes.get_session(harness.owner, "s")).is_active
    harness.clock.advance(91 * DAY)
    archived = (await maintenance_tasks.prune(harness.owner))["sessions_archived"]
    assert archived == 2, "a reopened one is archived again"


@pytest.mark.req("TRUE-23")
async def test_a_session_is_archived_by_when_something_was_said_in_it(
    harness: ConsolidationHarness, maintenance_tasks: MaintenanceTasks
) -> None:
    await add_messages(harness, 1, session="old", sent_at=harness.clock() - 91 * DAY)
    assert (await maintenance_tasks.prune(harness.owner))["sessions_archived"] == 1


@pytest.mark.req("TRUE-24")
async def test_sessions_with_more_than_ten_old_messages_are_compressible(
    harness: ConsolidationHarness, maintenance_tasks: MaintenanceTasks
) -> None:
    await add_messages(harness, 10, session="ten")
    await add_messages(harness, 11, session="eleven")
    assert await maintenance_tasks.list_old_sessions(harness.owner) == []
    harness.clock.advance(31 * DAY)
    await add_messages(harness, 3, session="eleven")
    (found,) = await maintenance_tasks.list_old_sessions(harness.owner)
    assert (found.session_id, found.through, found.message_count, found.is_summarized) == ("eleven", 11, 11, False)


async def message_texts(harness: ConsolidationHarness, episodes: EpisodeStore) -> list[str]:
    return [message.content for message in await episodes.list_session_messages(harness.owner, "s", after=0)]


async def store_summary(harness: ConsolidationHarness, episodes: EpisodeStore, through: int) -> Session:
    await episodes.save_summary(
        harness.owner, "s", summary="They spoke of maps.", title="Maps", tags=[], sentiment=None, through=through
    )
    return await episodes.get_session(harness.owner, "s")


@pytest.mark.req("TRUE-24")
async def test_old_messages_are_archived_only_after_their_summary_is_stored(
    harness: ConsolidationHarness, maintenance_tasks: MaintenanceTasks
) -> None:
    episodes = await add_messages(harness, 12)
    harness.clock.advance(31 * DAY)
    await add_messages(harness, 3)
    assert await maintenance_tasks.archive(harness.owner, "s", 12) == 0, "no summary covers them yet"
    assert len(await message_texts(harness, episodes)) == 15
    await store_summary(harness, episodes, through=12)
    assert await maintenance_tasks.archive(harness.owner, "s", 12) == 12
    assert len(await message_texts(harness, episodes)) == 3
    assert await maintenance_tasks.list_old_sessions(harness.owner) == []
    everything = (await harness.graph_state()).values()
    assert not [found for found in everything if "Turn 7 " in repr(found)]
    (archive,) = await episodes.list_archives(harness.owner, "s")
    assert (archive.session_id, archive.summary, archive.message_count) == ("s", "They spoke of maps.", 12)
    assert archive.started_at <= archive.ended_at < harness.clock() - 30 * DAY


@pytest.mark.req("TRUE-24")
async def test_an_archived_message_is_still_deduplicated(
    harness: ConsolidationHarness, maintenance_tasks: MaintenanceTasks
) -> None:
    episodes = EpisodeStore(harness.graph, harness.clock)
    turns = [
        PreparedMessage(MessageIn(id=f"m{n}", role=MessageRole.USER, content="Maps"), [0.1] * 384) for n in range(12)
    ]
    await episodes.append_messages(harness.owner, "s", turns)
    harness.clock.advance(31 * DAY)
    await store_summary(harness, episodes, through=12)
    await maintenance_tasks.archive(harness.owner, "s", 12)
    again = await episodes.append_messages(harness.owner, "s", turns, job=PendingJob("job", "store"))
    assert (again.new_ids, again.job_id) == ([], None)


@asynccontextmanager
async def run_maintenance_jobs(
    harness: ConsolidationHarness, maintenance_tasks: MaintenanceTasks, folder: Path, model: ProviderModel | None
) -> AsyncIterator[MaintenanceService]:
    """Maintenance with its jobs, and with summaries if there is a model."""

    async def prune_user(owner: Owner) -> dict[str, int]:
        return {"notes": len(owner.user_id)}

    policy, profiles = SecretPolicy([]), TenantProfiles()
    summaries = SummaryJob(
        graph=harness.graph,
        episodes=EpisodeStore(harness.graph, harness.clock),
        facts=harness.facts,
        memory_writer=MemoryWriter(harness.facts, harness.embedder, policy, profiles),
        policy=policy,
        model=model,
    )
    async with await JobRunner.open(Settings(data_dir=folder)) as jobs:

        async def queue_summary(owner: Owner, session_id: str, through: int, job_id: str) -> None:
            payload = SummaryPayload(tenant=owner.tenant, user_id=owner.user_id, session_id=session_id, through=through)
            await jobs.enqueue(SUMMARY_JOB, payload, job_id)

        job = MaintenanceJob(
            maintenance_tasks,
            UserStore(harness.graph),
            jobs,
            queue_summary=queue_summary if model else None,
            prune_user=[prune_user],
        )
        handlers: list[JobHandler[Any]] = [
            JobHandler(MAINTENANCE_JOB, job.handle),
            JobHandler(ARCHIVE_JOB, job.handle_archive),
            JobHandler(SUMMARY_JOB, summaries.run),
        ]
        await jobs.start_worker(handlers, WorkerOptions(retry_delays=(0.01,), model_pauses=()))
        yield MaintenanceService(jobs, JobWaiting(harness.graph, jobs))
        for queued in await jobs.list():
            await jobs.wait(queued.id, PATIENCE)


@pytest.mark.req("TRUE-24")
async def test_without_a_model_old_sessions_keep_their_messages_with_a_reason(
    harness: ConsolidationHarness, maintenance_tasks: MaintenanceTasks, tmp_path: Path
) -> None:
    episodes = await add_messages(harness, 12)
    await harness.save("User likes jazz")
    harness.clock.advance(31 * DAY)
    async with run_maintenance_jobs(harness, maintenance_tasks, tmp_path, None) as maintenance:
        done = await maintenance.run(harness.owner.tenant, [*MaintenanceTask])
    assert done[MaintenanceTask.COMPRESS] == {"without_summary": 1, "reason": COMPRESSION_WITHOUT_MODEL_REASON}
    assert done[MaintenanceTask.DECAY] == {"faded": 1}
    assert done[MaintenanceTask.PRUNE]["notes"] == len("mara")
    assert len(await message_texts(harness, episodes)) == 12


@pytest.mark.req("TRUE-24")
async def test_compression_summarizes_then_archives_messages(
    harness: ConsolidationHarness, maintenance_tasks: MaintenanceTasks, tmp_path: Path
) -> None:
    episodes = await add_messages(harness, 12)
    harness.clock.advance(31 * DAY)
    summary = {"title": "Maps", "summary": "Mara collects maps.", "takeaways": [], "topics": [], "sentiment": 0.2}
    with ScriptedServer(replies(json.dumps(summary))) as server:
        async with ProviderModel(base_url=server.base_url, retries=RetryPolicy(attempts=1)) as model:
            async with run_maintenance_jobs(harness, maintenance_tasks, tmp_path / "1", model) as maintenance:
                done = await maintenance.run(harness.owner.tenant, [MaintenanceTask.COMPRESS])
            async with run_maintenance_jobs(harness, maintenance_tasks, tmp_path / "2", model) as maintenance:
                again = await maintenance.run(harness.owner.tenant, [MaintenanceTask.COMPRESS])
    assert (done[MaintenanceTask.COMPRESS], again[MaintenanceTask.COMPRESS]) == ({"sessions": 1}, {})
    assert await message_texts(harness, episodes) == []
    assert (await episodes.get_session(harness.owner, "s")).summary == "Mara collects maps."
    assert "Mara collects maps." in await current(harness), "the summary is also a memory"


@pytest.mark.req("UMB-13")
async def test_before_images_past_their_retention_are_pruned(
    harness: ConsolidationHarness, maintenance_tasks: MaintenanceTasks
) -> None:
    memories = await harness.save("User is vegetarian", "User eats no dairy")
    run = await harness.execute(verified_merge(memories, DIET))
    harness.clock.advance(29 * DAY)
    assert (await maintenance_tasks.prune(harness.owner))["images"] == 0
    harness.clock.advance(2 * DAY)
    assert (await maintenance_tasks.prune(Owner(harness.owner.tenant, "noor")))["images"] == 0
    assert (await harness.runs.get(harness.owner.tenant, run.id)).changes
    assert (await maintenance_tasks.prune(harness.owner))["images"] == run.change_count
    left = await harness.runs.get(harness.owner.tenant, run.id)
    assert (left.changes, left.proposals) == ([], [])


async def test_maintenance_prunes_jobs_that_finished_long_ago(memory: Services, clock: FakeClock) -> None:
    asked: list[datetime] = []

    class Old(JobRunner):
        def __init__(self) -> None: ...

        async def prune(self, before: datetime) -> int:
            asked.append(before)
            return 3

    components = replace(memory.components, clock=clock)
    job = build_maintenance_job(components, Old(), RunStore(components.graph), memory.learner, memory.context_usage)
    assert await job.prune_tenant["jobs"](None) == 3
    assert asked == [clock() - 30 * DAY]
