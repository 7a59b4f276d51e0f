"""A consolidation run as a durable job: discovery, analysis batch by batch, execution.

The steps of a run are the same whoever takes it up again; what is done already is answered from the run's node, so that
the three may also be three jobs of one night.
"""

from __future__ import annotations

import uuid
from collections.abc import Awaitable, Callable
from dataclasses import asdict
from enum import StrEnum
from functools import partial
from typing import Any

from graphmem.consolidation.analyse import Analyst
from graphmem.consolidation.discover import Batch, Discovery
from graphmem.consolidation.execute import Executor
from graphmem.domain.identity import Owner, owner_of
from graphmem.domain.job import JobOutcome, JobStatus, Receipt
from graphmem.domain.proposals import Judged, Phase, Run, RunStatus, Trigger, Verdict
from graphmem.domain.times import Clock
from graphmem.errors import GraphmemError
from graphmem.jobs import Steps
from graphmem.store.driver import Graph
from graphmem.store.runs import RunStore, write_changes

KIND = "consolidate"
NO_MODEL = "no language model is configured: what means nearly the same was associated, nothing was merged"
_NIGHTS = uuid.UUID("6f1b7c52-6a61-4b0c-9a53-6f3c2d5b8f10")

Enqueue = Callable[[str, str, dict[str, Any], str], Awaitable[Any]]
"""Queue a job: kind, partition, payload, job id."""


class Stage(StrEnum):
    """How far one job takes its run; the night does one stage after the other."""

    DISCOVERY = "discovery"
    ANALYSIS = "analysis"
    EXECUTION = "execution"


class Consolidator:
    """Carries out runs; `enqueue` queues the runs of the users whom a night finds."""

    def __init__(
        self,
        graph: Graph,
        runs: RunStore,
        discovery: Discovery,
        analyst: Analyst,
        executor: Executor,
        clock: Clock,
        enqueue: Enqueue,
    ) -> None:
        self._graph = graph
        self._runs = runs
        self._discovery = discovery
        self._analyst = analyst
        self._executor = executor
        self._clock = clock
        self._enqueue = enqueue

    async def handle(self, payload: dict[str, Any], steps: Steps) -> JobOutcome:
        """Handle a job of kind `consolidate`: one run, up to a stage, or the tick of a night."""
        stage = Stage(payload.get("stage", Stage.EXECUTION))
        if "run_id" not in payload:
            return await self._night(payload, stage, steps)
        owner, run_id = owner_of(payload["tenant"], payload["user_id"]), str(payload["run_id"])
        try:
            return await self._run(owner, run_id, stage, steps)
        except GraphmemError as error:
            # Not a step: a retried job goes on at the step that failed.
            await self._fail(run_id, error.detail)
            raise

    # One run

    async def _run(self, owner: Owner, run_id: str, stage: Stage, steps: Steps) -> JobOutcome:
        batches = await steps.run("discover", partial(self._discover, owner, run_id))
        if stage is Stage.DISCOVERY:
            return JobOutcome(actions=[{"action": "discover", "batches": len(batches)}])
        answers = [
            await steps.run(f"analyse {number}", partial(self._analyse, owner, run_id, Batch(**batch)))
            for number, batch in enumerate(batches, 1)
        ]
        receipt = await steps.run("keep proposals", partial(self._keep, owner, run_id, answers))
        if stage is Stage.ANALYSIS:
            return JobOutcome(actions=[{"action": "analyse", "batches": len(batches)}], receipt=Receipt(**receipt))
        done = await steps.run("execute", partial(self._execute, owner, run_id, batches))
        status = JobStatus.SUCCEEDED if done["status"] != RunStatus.ABORTED else JobStatus.SKIPPED
        return JobOutcome(status=status, reason=done["reason"], actions=[done], receipt=Receipt(**receipt))

    async def _discover(self, owner: Owner, run_id: str) -> list[dict[str, Any]]:
        run = await self._get(owner, run_id)
        if run.phase is Phase.NEW:
            found = await self._discovery.find(owner, self._clock())
            if found.alone and not run.dry_run:
                weighed = {"group_id": owner.group_id, "run_id": run_id, "memory_ids": found.alone}
                await self._graph.execute("consolidation.note_weighed", **weighed, now=self._clock())
            await self._runs.set_batches(run_id, [asdict(batch) for batch in found.batches])
        elif not run.status.is_final or run.status is RunStatus.FAILED:
            await self._runs.update(run_id, status=RunStatus.RUNNING.value, reason=None)
        return await self._runs.batches(run_id, owner.tenant)

    async def _analyse(self, owner: Owner, run_id: str, batch: Batch) -> dict[str, Any] | None:
        run = await self._get(owner, run_id)
        if run.phase in (Phase.ANALYSED, Phase.DONE):
            return None
        analysed = await self._analyst.analyse(owner, batch.memory_ids, old=batch.old)
        await self._runs.update(run_id, batches_done=run.batches_done + 1)
        return {
            "judged": [each.model_dump(mode="json") for each in analysed.judged],
            "senseless": analysed.senseless,
            "receipt": asdict(analysed.receipt),
        }

    async def _keep(self, owner: Owner, run_id: str, answers: list[dict[str, Any] | None]) -> dict[str, Any]:
        run = await self._get(owner, run_id)
        given = [answer for answer in answers if answer is not None]
        if run.phase in (Phase.ANALYSED, Phase.DONE) or len(given) < len(answers):
            return run.receipt.model_dump()
        judged = [Judged.model_validate(each) for answer in given for each in answer["judged"]]
        receipt = Receipt(
            llm_calls=sum(answer["receipt"]["calls"] for answer in given),
            prompt_tokens=sum(answer["receipt"]["prompt_tokens"] for answer in given),
            completion_tokens=sum(answer["receipt"]["completion_tokens"] for answer in given),
            seconds=sum(answer["receipt"]["seconds"] for answer in given),
        )
        senseless = sum(answer["senseless"] for answer in given)
        reason = f"{senseless} proposals of the model made no sense" if senseless else None
        await self._runs.update(
            run_id,
            phase=Phase.ANALYSED.value,
            proposals=judged,
            receipt=receipt,
            batches_done=len(answers),
            reason=reason if self._analyst.has_model else NO_MODEL,
        )
        return receipt.model_dump()

    async def _execute(self, owner: Owner, run_id: str, batches: list[dict[str, Any]]) -> dict[str, Any]:
        run = await self._get(owner, run_id)
        if run.phase is not Phase.DONE:
            executed = await self._executor.execute(
                owner,
                run_id,
                run.proposals,
                dry_run=run.dry_run,
                curated=run.trigger is Trigger.CURATED,
                actor=run.actor,
                considered=[key for batch in batches for key in batch["memory_ids"]],
                weighed=[key for batch in batches if batch["old"] for key in batch["memory_ids"]],
            )
            if run.dry_run or executed.status is not RunStatus.SUCCEEDED:
                await self._runs.update(
                    run_id,
                    status=executed.status.value,
                    phase=Phase.DONE.value,
                    finished_at=self._clock(),
                    proposals=_planned(executed.judged),
                    reason=executed.reason or run.reason,
                    change_count=executed.change_count if run.dry_run else 0,
                    preview=write_changes(executed.deltas),
                )
            run = await self._get(owner, run_id)
        counts = {"executed": run.executed, "refused": run.refused, "changes": run.change_count}
        return {"action": "consolidate", "run_id": run_id, "status": run.status.value, "reason": run.reason, **counts}

    async def _fail(self, run_id: str, reason: str) -> None:
        await self._runs.update(run_id, status=RunStatus.FAILED.value, reason=reason, finished_at=self._clock())

    async def _get(self, owner: Owner, run_id: str) -> Run:
        return await self._runs.get(owner.tenant, run_id, with_changes=False)

    # A night

    async def _night(self, payload: dict[str, Any], stage: Stage, steps: Steps) -> JobOutcome:
        """Queue the next stage of every run of the night, of one tenant or of all.

        What an earlier night left undone comes along.
        """
        at, only = str(payload.get("scheduled_at") or steps.job_id), payload.get("tenant")
        if stage is Stage.DISCOVERY:
            groups = await steps.run("find users", partial(self._find_users, only))
            for group_id in groups:
                await steps.run("open a run", partial(self._open, _owner_of_group(group_id), at))
        found = await steps.run("find runs", partial(self._find_runs, only))
        for run_id, group_id in found:
            owner = _owner_of_group(group_id)
            job = {"run_id": run_id, "tenant": owner.tenant, "user_id": owner.user_id, "stage": stage.value}
            await steps.run("queue", partial(self._queue, group_id, job, f"{run_id}:{stage.value}:{at}"))
        return JobOutcome(actions=[{"action": stage.value, "runs": len(found)}])

    async def _find_users(self, tenant: str | None) -> list[str]:
        return [owner.group_id for owner in await self._discovery.users(tenant, self._clock())]

    async def _find_runs(self, tenant: str | None) -> list[list[str]]:
        rows = await self._graph.fetch("consolidation.nightly_open", tenant=tenant)
        return [[row["id"], row["group_id"]] for row in rows]

    async def _open(self, owner: Owner, at: str) -> None:
        if not any(run.trigger is Trigger.NIGHTLY for run in await self._runs.unfinished(owner)):
            run_id = str(uuid.uuid5(_NIGHTS, f"{at}:{owner.group_id}"))
            await self._runs.create(run_id, owner.tenant, owner, Trigger.NIGHTLY, self._clock())

    async def _queue(self, partition: str, payload: dict[str, Any], job_id: str) -> None:
        await self._enqueue(KIND, partition, payload, job_id)


def _owner_of_group(group_id: str) -> Owner:
    # Steps of a night keep groups, not users, in their records: by them forgetting a user finds the night's jobs.
    return Owner(*group_id.split(":", 1))


def _planned(judged: list[Judged]) -> list[Judged]:
    return [
        each.model_copy(update={"verdict": Verdict.PLANNED, "result_id": None})
        if each.verdict is Verdict.EXECUTED
        else each
        for each in judged
    ]
