"""Upkeep: what fades, what ends, what becomes a summary, and what stays."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from graphmem.bootstrap import Consolidation, GraphMemory, Queue, Reading, upkeep_of
from graphmem.consolidation.discover import Discovery
from graphmem.consolidation.maintenance import Upkeep, faded_importance
from graphmem.consolidation.upkeep import KIND, NO_MODEL, UpkeepJob
from graphmem.domain.identity import Owner
from graphmem.domain.memory import Status
from graphmem.domain.policy import SecretPolicy
from graphmem.domain.session import MessageIn, Role, Session
from graphmem.ingestion.saving import Saving
from graphmem.ingestion.summary import SUMMARY_JOB, SummaryJob
from graphmem.jobs import JobRunner
from graphmem.llm.client import LanguageModel
from graphmem.service.maintenance import Maintenance
from graphmem.settings import Settings
from graphmem.store.episode_rows import Turn
from graphmem.store.episodes import EpisodeStore
from graphmem.store.rows import seconds_of
from tests.conftest import FakeClock
from tests.consolidation.conftest import Bench
from tests.consolidation.test_execute import DIET, current, merge
from tests.llm.scripted import ScriptedServer, says

LONG_AGO = datetime(2001, 1, 1, tzinfo=UTC)
"""Before everybody else's images, which the same database may hold."""

DAY = timedelta(days=1)
PATIENCE = 60


@pytest.fixture
def upkeep(bench: Bench) -> Upkeep:
    return Upkeep(
        bench.graph, bench.facts, bench.snapshots, bench.clock, archive_days=90, compress_days=30, rollback_days=30
    )


async def importance(bench: Bench, content: str) -> float:
    return (await current(bench))[content].importance


@pytest.mark.req("QUINN-11", "UMB-09")
async def test_what_nobody_asks_for_matters_less_and_less(bench: Bench, upkeep: Upkeep) -> None:
    (read, _) = await bench.save("User likes tea", "User likes jazz")
    fading = []
    for _ in range(3):
        bench.clock.advance(31 * DAY)
        hits = [{"memory_id": read.id, "times": 1, "at": seconds_of(bench.clock())}]
        await bench.graph.execute("facts.reinforce", group_ids=[bench.owner.group_id], hits=hits)
        assert await upkeep.decay(bench.owner) == 1
        fading.append(await importance(bench, "User likes jazz"))
    assert fading == sorted(fading, reverse=True)
    assert len(set(fading)) == 3
    assert await importance(bench, "User likes tea") == 0.5


async def test_fading_twice_at_once_is_fading_once(bench: Bench, upkeep: Upkeep) -> None:
    await bench.save("User likes jazz")
    bench.clock.advance(65 * DAY)
    await upkeep.decay(bench.owner)
    once = await bench.everything()
    assert await importance(bench, "User likes jazz") == pytest.approx(faded_importance(0.5, 2))
    assert await upkeep.decay(bench.owner) == 0
    assert await bench.everything() == once


@pytest.mark.req("QUINN-19", "QUINN-21")
async def test_the_core_of_the_profile_and_what_is_immutable_do_not_fade(bench: Bench, upkeep: Upkeep) -> None:
    await bench.save("User is called Mara", importance=0.9)
    await bench.save("User is allergic to nuts", immutable=True)
    bench.clock.advance(400 * DAY)
    assert await upkeep.decay(bench.owner) == 0


@pytest.mark.req("QUINN-18")
async def test_what_was_for_the_moment_ends_when_its_time_is_over(bench: Bench, upkeep: Upkeep) -> None:
    soon = bench.clock() + DAY
    (note,) = await bench.save("User is in Rome this week", tags=["temporary"], expires_at=soon)
    await bench.save("User is in Oslo", tags=["temporary"])
    (fixed,) = await bench.save("User rents a car", tags=["temporary"], expires_at=soon, immutable=True)
    assert (await upkeep.expire(bench.owner))["expired"] == 0
    bench.clock.advance(2 * DAY)
    assert (await upkeep.expire(bench.owner))["expired"] == 1
    assert (await upkeep.expire(bench.owner))["expired"] == 0
    ended = await bench.facts.get(bench.owner, note.id)
    assert ended.status is Status.DELETED
    assert [row.ended_reason for row in await bench.facts.history(bench.owner, note.id)] == ["expired"]
    assert (await bench.facts.get(bench.owner, fixed.id)).status is Status.ACTIVE


@pytest.mark.req("QUINN-18")
async def test_feedback_is_put_before_consolidation_again(bench: Bench, upkeep: Upkeep) -> None:
    memories = await bench.save("User wants shorter answers", "User likes lists", tags=["feedback"])
    discovery = Discovery(bench.graph, batch_size=25, max_batches=9)
    run_id, judged = await bench.propose({"action": "ASSOCIATE", "memory_ids": [each.id for each in memories]})
    await bench.executor.execute(bench.owner, run_id, judged, considered=[each.id for each in memories])
    assert (await discovery.find(bench.owner, bench.clock())).batches == []
    bench.clock.advance(8 * DAY)
    assert (await upkeep.expire(bench.owner))["feedback_to_review"] == 2
    assert len((await discovery.find(bench.owner, bench.clock())).batches) == 1
    assert (await upkeep.expire(bench.owner))["feedback_to_review"] == 0


async def converse(bench: Bench, count: int, *, session: str = "s", told: datetime | None = None) -> EpisodeStore:
    episodes = EpisodeStore(bench.graph, bench.clock)
    turns = [
        Turn(MessageIn(role=Role.USER, content=f"Turn {n} about maps", timestamp=told or bench.clock()), [0.1] * 384)
        for n in range(count)
    ]
    await episodes.append(bench.owner, session, turns, job_id=None)
    return episodes


@pytest.mark.req("TRUE-23")
async def test_silent_sessions_are_archived_after_ninety_days(bench: Bench, upkeep: Upkeep) -> None:
    episodes = await converse(bench, 2)
    bench.clock.advance(80 * DAY)
    assert await upkeep.prune(bench.owner) == {"sessions_archived": 0}
    await converse(bench, 1, session="young")
    bench.clock.advance(11 * DAY)
    assert await upkeep.prune(bench.owner) == {"sessions_archived": 1}
    assert await upkeep.prune(bench.owner) == {"sessions_archived": 0}
    assert not (await episodes.session(bench.owner, "s")).is_active
    assert (await episodes.session(bench.owner, "young")).is_active
    assert len(await episodes.of_session(bench.owner, "s", after=0)) == 2, "archived is not erased"


@pytest.mark.req("TRUE-24")
async def test_sessions_with_more_than_ten_old_messages_are_old(bench: Bench, upkeep: Upkeep) -> None:
    await converse(bench, 10, session="ten")
    await converse(bench, 11, session="eleven")
    assert await upkeep.old_sessions(bench.owner) == []
    bench.clock.advance(31 * DAY)
    await converse(bench, 3, session="eleven")
    (found,) = await upkeep.old_sessions(bench.owner)
    assert (found.session_id, found.through, found.old, found.summed_up) == ("eleven", 11, 11, False)


async def kept(bench: Bench, episodes: EpisodeStore) -> list[str]:
    return [message.content for message in await episodes.of_session(bench.owner, "s", after=0)]


async def sum_up(bench: Bench, episodes: EpisodeStore, through: int) -> Session:
    await episodes.keep_summary(
        bench.owner, "s", summary="They spoke of maps.", title="Maps", tags=[], sentiment=None, through=through
    )
    return await episodes.session(bench.owner, "s")


@pytest.mark.req("TRUE-24")
async def test_messages_are_let_go_only_after_their_summary_is_stored_and_newer_ones_stay(
    bench: Bench, upkeep: Upkeep
) -> None:
    episodes = await converse(bench, 12)
    bench.clock.advance(31 * DAY)
    await converse(bench, 3)
    assert await upkeep.archive(bench.owner, "s", 12) == 0, "nothing stands for them yet"
    assert len(await kept(bench, episodes)) == 15
    await sum_up(bench, episodes, through=12)
    assert await upkeep.archive(bench.owner, "s", 12) == 12
    assert len(await kept(bench, episodes)) == 3
    assert await upkeep.old_sessions(bench.owner) == []
    everything = (await bench.everything()).values()
    assert not [found for found in everything if "Turn 7 " in repr(found)]
    archives = await bench.graph.read(
        lambda inside: inside.run_text(
            "MATCH (a:SessionArchive {group_id: $g}) RETURN properties(a) AS archive", {"g": bench.owner.group_id}
        )
    )
    (archive,) = [row["archive"] for row in archives]
    assert (archive["session_id"], archive["summary"], archive["message_count"]) == ("s", "They spoke of maps.", 12)
    assert archive["started_at"] <= archive["ended_at"] < bench.clock() - 30 * DAY


@pytest.mark.req("TRUE-24")
async def test_an_archived_message_sent_again_is_known(bench: Bench, upkeep: Upkeep) -> None:
    episodes = EpisodeStore(bench.graph, bench.clock)
    turns = [Turn(MessageIn(id=f"m{n}", role=Role.USER, content="Maps"), [0.1] * 384) for n in range(12)]
    await episodes.append(bench.owner, "s", turns, job_id=None)
    bench.clock.advance(31 * DAY)
    await sum_up(bench, episodes, through=12)
    await upkeep.archive(bench.owner, "s", 12)
    again = await episodes.append(bench.owner, "s", turns, job_id="job")
    assert (again.new_ids, again.unread_ids) == ([], [])


@asynccontextmanager
async def upkept(bench: Bench, upkeep: Upkeep, folder: Path, model: LanguageModel | None) -> AsyncIterator[Maintenance]:
    """Upkeep with its jobs, and summaries by the model where there is one."""
    held: list[JobRunner] = []

    async def enqueue(kind: str, partition: str, payload: dict[str, Any], job_id: str) -> str:
        return await held[0].enqueue(kind, partition, payload, job_id)

    async def prune_user(owner: Owner) -> dict[str, int]:
        return {"notes": len(owner.user_id)}

    policy = SecretPolicy([])
    summaries = SummaryJob(
        graph=bench.graph,
        episodes=EpisodeStore(bench.graph, bench.clock),
        facts=bench.facts,
        saving=Saving(bench.facts, bench.embedder, policy),
        policy=policy,
        model=model,
    )
    job = UpkeepJob(upkeep, enqueue, summary_kind=SUMMARY_JOB if model else None, prune_user=[prune_user])
    handlers = {KIND: job.handle, SUMMARY_JOB: summaries.run}
    async with await JobRunner.open(Settings(data_dir=folder), handlers, retry_waits=(0.01,)) as jobs:
        held.append(jobs)
        yield Maintenance(jobs)
        for each in await jobs.list():
            await jobs.wait(each.id, PATIENCE)


@pytest.mark.req("TRUE-24")
async def test_without_a_model_old_sessions_keep_their_messages_and_upkeep_says_why(
    bench: Bench, upkeep: Upkeep, tmp_path: Path
) -> None:
    episodes = await converse(bench, 12)
    await bench.save("User likes jazz")
    bench.clock.advance(31 * DAY)
    async with upkept(bench, upkeep, tmp_path, None) as maintenance:
        done = await maintenance.run(bench.owner.tenant, ["decay", "compress", "prune", "expire"])
    assert done["compress"] == {"without_summary": 1, "reason": NO_MODEL}
    assert done["decay"] == {"faded": 1}
    assert done["prune"]["notes"] == len("mara")
    assert len(await kept(bench, episodes)) == 12


@pytest.mark.req("TRUE-24")
async def test_the_model_sums_up_and_then_the_messages_go(bench: Bench, upkeep: Upkeep, tmp_path: Path) -> None:
    episodes = await converse(bench, 12)
    bench.clock.advance(31 * DAY)
    told = {"title": "Maps", "summary": "Mara collects maps.", "takeaways": [], "topics": [], "sentiment": 0.2}
    with ScriptedServer(says(json.dumps(told))) as server:
        async with LanguageModel(base_url=server.base_url, attempts=1) as model:
            async with upkept(bench, upkeep, tmp_path / "1", model) as maintenance:
                done = await maintenance.run(bench.owner.tenant, ["compress"])
            async with upkept(bench, upkeep, tmp_path / "2", model) as maintenance:
                again = await maintenance.run(bench.owner.tenant, ["compress"])
    assert (done["compress"], again["compress"]) == ({"sessions": 1}, {})
    assert await kept(bench, episodes) == []
    assert (await episodes.session(bench.owner, "s")).summary == "Mara collects maps."
    assert "Mara collects maps." in await current(bench), "the summary is a memory one can find"


@pytest.mark.req("UMB-13")
async def test_images_past_their_retention_are_erased(bench: Bench, upkeep: Upkeep) -> None:
    bench.clock.now = LONG_AGO
    memories = await bench.save("User is vegetarian", "User eats no dairy")
    run = await bench.execute(merge(memories, DIET))
    assert (await bench.runs.get(bench.owner.tenant, run.id)).changes
    bench.clock.advance(31 * DAY)
    await upkeep.prune_images()
    assert (await bench.runs.get(bench.owner.tenant, run.id)).changes == []


async def test_upkeep_prunes_the_jobs_that_finished_long_ago(memory: GraphMemory, clock: FakeClock) -> None:
    asked: list[datetime] = []

    class Old(JobRunner):
        def __init__(self) -> None: ...

        async def prune(self, before: datetime) -> int:
            asked.append(before)
            return 3

    parts, queue = replace(memory.parts, clock=clock), Queue()
    queue.jobs = Old()
    upkeep = upkeep_of(parts, queue, Reading.of(parts), Consolidation.of(parts, queue))
    assert await upkeep.prune_all["jobs"]() == 3
    assert asked == [clock() - 30 * DAY]


def test_importance_never_rises_by_fading() -> None:
    assert faded_importance(0.01, 3) == 0.01
    assert faded_importance(1.0, 1000) == 0.05
