"""A hard delete also erases a memory from the records of the jobs that created it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from graphmem.changes.webhooks import WebhookStore
from graphmem.consolidation.models import RunStatus
from graphmem.context.store import ContextStore
from graphmem.context.usage import ContextUseStore
from graphmem.jobs.job import JobOutcome, JobStatus
from graphmem.jobs.kinds import JobHandler, JobKind, Steps
from graphmem.jobs.runner import JobRunner
from graphmem.jobs.store import JobStore
from graphmem.memories.memory import MemoryStatus
from graphmem.runtime.errors import JobStoreUnavailable, NotFound
from graphmem.runtime.settings import Settings
from graphmem.tenants.idempotency import IdempotencyStore
from graphmem.tenants.keys import KeyService
from graphmem.tenants.owners import Owner
from graphmem.user_data.forget import (
    ERASURE_JOB,
    ErasurePayload,
    ForgetService,
    ForgetStore,
    UserData,
)
from tests.consolidation.conftest import ConsolidationHarness, open_worker
from tests.consolidation.test_consolidation_job import (
    PATIENCE,
    PROPOSES_AND_VERIFIES_DIET,
    open_run_client_with_model,
)
from tests.consolidation.test_execution import DIET, current
from tests.jobs.test_jobs_forget import places_containing


class EmptyCache:
    """A cache without entries."""

    async def discard_user(self, owner: Owner) -> None:
        pass

    async def count_user(self, owner: Owner) -> int:
        return 0


class UnavailableJobRunner(JobRunner):
    """A runner whose job store is unavailable."""

    def __init__(self) -> None:
        pass

    async def erase_step_results(self, partition_prefix: str, texts: Sequence[str]) -> None:
        raise JobStoreUnavailable("The job store is unavailable.")


def forget_service(harness: ConsolidationHarness, jobs: JobRunner) -> ForgetService:
    graph, cache = harness.graph, EmptyCache()
    data = UserData(
        jobs=jobs,
        graph=ForgetStore(graph, harness.clock),
        facts=harness.facts,
        runs=harness.runs,
        context_uses=ContextUseStore(graph, harness.clock),
        idempotency=IdempotencyStore(graph, harness.clock, 30),
        context=ContextStore(graph, harness.clock),
        reinforcement=cache,
        lookup=cache,
        vectors=cache,
        context_snapshots=cache,
        keys=KeyService(graph, graph, harness.clock),
        webhooks=WebhookStore(graph),
    )
    return ForgetService(graph, data, harness.clock, lambda: b"key")


async def test_a_hard_delete_erases_recorded_model_answers_of_job_steps(
    harness: ConsolidationHarness, tmp_path: Path
) -> None:
    await harness.save("User is vegetarian", "User eats no dairy")
    async with (
        open_worker(tmp_path) as worker,
        open_run_client_with_model(harness, worker, PROPOSES_AND_VERIFIES_DIET) as (run_client, _),
    ):
        run = await run_client.start(user_id=harness.owner.user_id)
        assert run.status is RunStatus.SUCCEEDED, run
        assert places_containing(worker.settings, DIET), "the step that called the model has recorded the answer"
        merged = (await current(harness))[DIET]
        await forget_service(harness, run_client.jobs).erase_memory(harness.owner, merged.id)
        assert places_containing(worker.settings, DIET) == []
        assert DIET not in (await harness.runs.get(harness.owner.tenant, run.id)).model_dump_json()
        job = await run_client.jobs.get(run.id)
        assert job
        assert job.actions, "the actions of the job are still there"


async def test_a_running_job_is_erased_when_it_ends(harness: ConsolidationHarness, tmp_path: Path) -> None:
    async def recall(payload: ErasurePayload, steps: Steps) -> JobOutcome:
        async def note() -> str:
            return payload.memory_id

        await steps.run("note", note)
        return JobOutcome()

    (memory,) = await harness.save("User is vegetarian")
    settings = Settings(data_dir=tmp_path)
    recall_job = JobKind("recall", ErasurePayload)
    payload = ErasurePayload(tenant=harness.owner.tenant, user_id=harness.owner.user_id, memory_id=memory.id)
    async with await JobRunner.open(settings) as jobs:
        waiting = await jobs.enqueue(recall_job, payload)
        service = forget_service(harness, jobs)
        await service.erase_memory(harness.owner, memory.id)
        late, _ = await jobs.list(harness.owner.group_id)
        assert late.kind == ERASURE_JOB.name
        await jobs.start_worker([JobHandler(recall_job, recall), JobHandler(ERASURE_JOB, service.handle_erasure_job)])
        assert (await jobs.wait(late.id, PATIENCE)).status is JobStatus.SUCCEEDED
    store = JobStore.open(settings)
    assert store.client.list_workflow_steps(waiting) == []
    store.close()


async def test_an_unavailable_job_store_aborts_the_erasure(harness: ConsolidationHarness) -> None:
    (memory,) = await harness.save("User is vegetarian")
    with pytest.raises(JobStoreUnavailable):
        await forget_service(harness, UnavailableJobRunner()).erase_memory(harness.owner, memory.id)
    assert (await harness.facts.get(harness.owner, memory.id)).status is MemoryStatus.ACTIVE


async def test_erasing_an_unknown_memory_is_not_found(harness: ConsolidationHarness) -> None:
    with pytest.raises(NotFound):
        await forget_service(harness, UnavailableJobRunner()).erase_memory(harness.owner, "unknown")
