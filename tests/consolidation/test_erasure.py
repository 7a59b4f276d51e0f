"""A memory erased for good is in no record of the jobs that made it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from graphmem.domain.identity import Owner
from graphmem.domain.job import JobOutcome, JobStatus
from graphmem.domain.memory import Status
from graphmem.domain.policy import SecretPolicy
from graphmem.errors import JobsUnavailable
from graphmem.ingestion.saving import Saving
from graphmem.jobs import JobRunner, Steps
from graphmem.service.jobs import ERASURE_JOB, Jobs
from graphmem.service.memories import Memories
from graphmem.settings import Settings
from tests.consolidation.conftest import Bench
from tests.consolidation.test_analyse import action
from tests.consolidation.test_execute import DIET, current
from tests.consolidation.test_pipeline import PATIENCE, answer, modelled
from tests.jobs.test_jobs_forget import held_of


def memories_of(bench: Bench, jobs: JobRunner) -> Memories:
    saving = Saving(bench.facts, bench.embedder, SecretPolicy([]))
    erasures = [bench.snapshots.erase_memory]
    return Memories(saving, bench.facts, bench.entities, bench.clock, 500, erasures, [Jobs(jobs).forget_memory])


@pytest.mark.req("QUINN-25")
async def test_a_hard_delete_reaches_what_the_model_said_in_a_step(bench: Bench, tmp_path: Path) -> None:
    await bench.save("User is vegetarian", "User eats no dairy")
    proposed = action("MERGE", memories=[1, 2], content=DIET)
    async with modelled(bench, tmp_path, answer(proposed)) as (night, _):
        run = await night.start(user_id=bench.owner.user_id)
        assert held_of(Settings(data_dir=tmp_path), DIET), "the step that asked the model has recorded its answer"
        merged = (await current(bench))[DIET]
        await memories_of(bench, night.jobs).erase(bench.owner, merged.id)
        assert held_of(Settings(data_dir=tmp_path), DIET) == []
        assert DIET not in (await bench.runs.get(bench.owner.tenant, run.id)).model_dump_json()
        job = await night.jobs.get(run.id)
        assert job
        assert job.actions, "what the job came to is still told"


async def test_a_job_still_at_work_is_erased_from_once_it_ends(bench: Bench, tmp_path: Path) -> None:
    async def recall(payload: dict[str, Any], steps: Steps) -> JobOutcome:
        async def note() -> dict[str, Any]:
            return payload

        return JobOutcome(actions=[await steps.run("note", note)])

    async def erase_late(payload: dict[str, Any], steps: Steps) -> JobOutcome:
        return await Jobs(jobs).erase_late(payload, steps)

    (memory,) = await bench.save("User is vegetarian")
    settings = Settings(data_dir=tmp_path)
    async with await JobRunner.open(settings, {}, worker=False) as queue:
        waiting = await queue.enqueue("recall", bench.owner.group_id, {"memory_id": memory.id})
        await memories_of(bench, queue).erase(bench.owner, memory.id)
        late, _ = await queue.list(bench.owner.group_id)
        assert late.kind == ERASURE_JOB
    async with await JobRunner.open(settings, {"recall": recall, ERASURE_JOB: erase_late}) as jobs:
        assert (await jobs.wait(late.id, PATIENCE)).status is JobStatus.SUCCEEDED
        assert jobs._store.client.list_workflow_steps(waiting) == []


async def test_a_job_store_that_is_away_leaves_the_memory_to_be_erased_again(bench: Bench) -> None:
    async def away(owner: Owner, memory_id: str, texts: Sequence[str]) -> None:
        raise JobsUnavailable("The job store is away.")

    (memory,) = await bench.save("User is vegetarian")
    saving = Saving(bench.facts, bench.embedder, SecretPolicy([]))
    memories = Memories(saving, bench.facts, bench.entities, bench.clock, 500, forgets=[away])
    with pytest.raises(JobsUnavailable):
        await memories.erase(bench.owner, memory.id)
    assert (await memories.get(bench.owner, memory.id)).status is Status.ACTIVE
