"""Durable jobs of consolidation: a run of one user, and the nightly stages of all users with something to analyse.

A run is discovered, analysed batch by batch, and executed: on demand by one job, at night by one job for each stage.
The steps are the same in every job. A step whose stage is done returns the result stored on the run's node.
"""

from __future__ import annotations

import uuid
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import Any, Literal

from graphmem.consolidation.analysis import AnalysisResult, ProposalAnalyser
from graphmem.consolidation.discovery import Discovery
from graphmem.consolidation.jobs import CONSOLIDATION_JOB, ConsolidationPayload, NightlyStagePayload, Stage
from graphmem.consolidation.models import (
    ConsolidationRun,
    MemoryBatch,
    ProposalVerdict,
    ReviewedProposal,
    RunPhase,
    RunStatus,
    RunTrigger,
)
from graphmem.consolidation.profiles import ProfileDraft, ProfileWriter
from graphmem.consolidation.run_executor import RunExecutor
from graphmem.consolidation.run_store import RunStore, RunUpdate
from graphmem.jobs.job import JobAction, JobOutcome, JobStatus
from graphmem.jobs.kinds import (
    Steps,
)
from graphmem.jobs.runner import JobRunner
from graphmem.models.receipt import Receipt
from graphmem.neo4j.driver import Graph
from graphmem.neo4j.tenant_context import use_tenant
from graphmem.runtime.errors import GraphmemError, NotFound, UserBeingForgotten
from graphmem.runtime.times import Clock
from graphmem.tenants.owners import Owner

RUN_WITHOUT_MODEL_REASON = (
    "no language model is configured: memories of nearly the same meaning were associated, none were merged"
)
"""Reason of a run that no model analysed."""

_NIGHTLY_RUN_NAMESPACE = uuid.UUID("6f1b7c52-6a61-4b0c-9a53-6f3c2d5b8f10")
"""Namespace of the ids of nightly runs, which follow from the time of the schedule and the user."""


class BatchesAction(JobAction):
    """The end of a job after a stage that another job continues."""

    action: Literal["discover", "analyse"]
    batches: int


class RunAction(JobAction):
    """The end of a run."""

    action: Literal["consolidate"] = "consolidate"
    run_id: str
    status: RunStatus
    reason: str | None
    executed: int
    refused: int
    changes: int

    def to_json(self) -> dict[str, Any]:
        """Return the entry with its reason, even if that is null."""
        return self.model_dump(mode="json")


class ProfilesAction(JobAction):
    """The profiles that a run wrote, and of how many entities it asked the model for one."""

    action: Literal["profile"] = "profile"
    run_id: str
    asked: int
    written: int


class NightlyStageAction(JobAction):
    """The number of runs for which a stage was queued."""

    action: Stage
    runs: int


class ConsolidationJob:
    """Handles the jobs of consolidation; `jobs` is the queue for the stages of nightly runs.

    Without `profiles`, which need a model, no profiles of entities are written.
    """

    def __init__(
        self,
        graph: Graph,
        runs: RunStore,
        discovery: Discovery,
        analyser: ProposalAnalyser,
        executor: RunExecutor,
        clock: Clock,
        jobs: JobRunner,
        profiles: ProfileWriter | None = None,
    ) -> None:
        self._graph = graph
        self._runs = runs
        self._discovery = discovery
        self._analyser = analyser
        self._executor = executor
        self._clock = clock
        self._jobs = jobs
        self._profiles = profiles

    async def handle(self, payload: ConsolidationPayload, steps: Steps) -> JobOutcome:
        """Handle a job of kind `consolidate`."""
        try:
            return await self._run(payload.owner, payload.run_id, payload.stage, steps)
        except GraphmemError as error:
            # Not a step: a retried job continues with the step that failed.
            await self._mark_failed(payload.owner, payload.run_id, error.detail)
            raise

    # One run

    async def _run(self, owner: Owner, run_id: str, stage: Stage, steps: Steps) -> JobOutcome:
        batches = await steps.run("discover", partial(self._discover, owner, run_id), list[MemoryBatch])
        if stage is Stage.DISCOVERY:
            return JobOutcome(actions=[BatchesAction(action="discover", batches=len(batches))])
        results = []
        for number, batch in enumerate(batches, 1):
            analysed = await steps.run(
                f"analyse {number}", partial(self._analyse, owner, run_id, batch), AnalysisResult
            )
            verify = partial(self._verify, owner, run_id, analysed)
            results.append(await steps.run(f"verify {number}", verify, AnalysisResult))
        receipt = await steps.run(
            "store proposals", partial(self._store_proposals, owner, run_id, batches, results), Receipt
        )
        if stage is Stage.ANALYSIS:
            return JobOutcome(actions=[BatchesAction(action="analyse", batches=len(batches))], receipt=receipt)
        done = await steps.run("execute", partial(self._execute, owner, run_id), RunAction)
        status = JobStatus.SUCCEEDED if done.status is not RunStatus.ABORTED else JobStatus.SKIPPED
        actions: list[JobAction] = [done]
        if self._profiles is not None and done.status is RunStatus.SUCCEEDED:
            drafts = await self._draft_profiles(owner, run_id, self._profiles, steps)
            receipt = sum((draft.receipt for draft in drafts), receipt)
            if drafts:
                store = partial(self._profiles.store, owner, run_id, drafts)
                written = await steps.run("store profiles", store, list[str])
                actions.append(ProfilesAction(run_id=run_id, asked=len(drafts), written=len(written)))
        return JobOutcome(status=status, reason=done.reason, actions=actions, receipt=receipt)

    async def _discover(self, owner: Owner, run_id: str) -> list[MemoryBatch]:
        """Find the batches of a new run and store them; return those of the run."""
        run = await self._load_run(owner, run_id)
        if run.phase is RunPhase.NEW:
            found = await self._discovery.find_batches(owner, self._clock())
            if found.isolated_ids and not run.dry_run:
                await self._graph.execute(
                    "consolidation.mark_considered_for_compression",
                    group_id=owner.group_id,
                    run_id=run_id,
                    memory_ids=found.isolated_ids,
                    now=self._clock(),
                )
            discovered = RunUpdate(status=RunStatus.RUNNING, phase=RunPhase.DISCOVERED, batches=found.batches)
            await self._runs.update(run_id, discovered)
        elif not run.status.is_final or run.status is RunStatus.FAILED:
            await self._runs.update(run_id, RunUpdate(status=RunStatus.RUNNING, reason=None))
        return await self._runs.load_batches(run_id, owner.tenant)

    async def _analyse(self, owner: Owner, run_id: str, batch: MemoryBatch) -> AnalysisResult:
        """Return the proposals for a batch; none if the proposals of the run are stored already."""
        run = await self._load_run(owner, run_id)
        if run.phase in (RunPhase.ANALYSED, RunPhase.DONE):
            return AnalysisResult([])
        return await self._analyser.analyse(owner, batch)

    async def _verify(self, owner: Owner, run_id: str, analysed: AnalysisResult) -> AnalysisResult:
        """Return what the analysis of a batch found with the verification of its proposals, and what both cost."""
        run = await self._load_run(owner, run_id)
        if run.phase in (RunPhase.ANALYSED, RunPhase.DONE):
            return analysed
        verified = await self._analyser.verify(owner, analysed.proposals)
        await self._runs.update(run_id, RunUpdate(batches_done=run.batches_done + 1))
        return replace(analysed, proposals=verified.proposals, receipt=analysed.receipt + verified.receipt)

    async def _store_proposals(
        self, owner: Owner, run_id: str, batches: list[MemoryBatch], results: list[AnalysisResult]
    ) -> Receipt:
        """Store the proposals of a run, and of its batches those that were read; return what the analysis cost.

        A run whose proposals are stored already stays as it is.
        """
        run = await self._load_run(owner, run_id)
        if run.phase in (RunPhase.ANALYSED, RunPhase.DONE):
            return run.receipt
        unread = [batch for batch, result in zip(batches, results, strict=True) if not result.is_read]
        unread_ids = {memory_id for batch in unread for memory_id in batch.memory_ids}
        # Those that are stored: the ids of memories that were erased meanwhile are no longer in them.
        stored = await self._runs.load_batches(run_id, owner.tenant)
        read = [batch for batch in stored if not unread_ids.issuperset(batch.memory_ids)]
        receipt = sum((result.receipt for result in results), Receipt())
        invalid_count = sum(result.invalid_count for result in results)
        reason = f"the model made {invalid_count} invalid proposals" if invalid_count else None
        analysed = RunUpdate(
            phase=RunPhase.ANALYSED,
            proposals=[proposal for result in results for proposal in result.proposals],
            contradictions=[reported for result in results for reported in result.contradictions],
            receipt=receipt,
            batches=read,
            batches_done=len(read),
            reason=reason if self._analyser.has_model else RUN_WITHOUT_MODEL_REASON,
        )
        await self._runs.update(run_id, analysed)
        return receipt

    async def _execute(self, owner: Owner, run_id: str) -> RunAction:
        """Execute the proposals of a run unless the run is done; return how it ended."""
        run = await self._load_run(owner, run_id)
        if run.phase is not RunPhase.DONE:
            batches = await self._runs.load_batches(run_id, owner.tenant)
            result = await self._executor.execute(
                owner,
                run_id,
                run.proposals,
                dry_run=run.dry_run,
                curated=run.trigger is RunTrigger.CURATED,
                actor=run.actor,
                considered=[key for batch in batches for key in batch.memory_ids],
                considered_for_compression=[key for batch in batches if batch.old for key in batch.memory_ids],
                contradictions=run.contradictions,
            )
            if run.dry_run or result.status is not RunStatus.SUCCEEDED:
                discarded = RunUpdate(
                    status=result.status,
                    phase=RunPhase.DONE,
                    finished_at=self._clock(),
                    proposals=_as_planned(result.proposals),
                    contradictions=result.contradictions,
                    reason=result.reason or run.reason,
                    change_count=result.change_count if run.dry_run else 0,
                    preview=result.changes,
                )
                await self._runs.update(run_id, discarded)
            run = await self._load_run(owner, run_id)
        return RunAction(
            run_id=run_id,
            status=run.status,
            reason=run.reason,
            executed=run.executed,
            refused=run.refused,
            changes=run.change_count,
        )

    async def _draft_profiles(
        self, owner: Owner, run_id: str, writer: ProfileWriter, steps: Steps
    ) -> list[ProfileDraft]:
        """Return the profiles that are due after a run; after one by hand or without consequences none are."""
        due = await steps.run("find profiles", partial(self._find_due_profiles, owner, run_id), list[str])
        drafts: list[ProfileDraft] = []
        for number, entity_id in enumerate(due, 1):
            write = partial(writer.write, owner, entity_id)
            drafts.append(await steps.run(f"profile {number}", write, ProfileDraft))
            if not drafts[-1].is_answered:
                break  # the model is away: the next run asks again
        return drafts

    async def _find_due_profiles(self, owner: Owner, run_id: str) -> list[str]:
        run = await self._load_run(owner, run_id)
        if run.dry_run or run.trigger is RunTrigger.CURATED or run.profiled_at is not None:
            return []
        return await self._discovery.find_due_profiles(owner, self._clock())

    async def _mark_failed(self, owner: Owner, run_id: str, reason: str) -> None:
        """Mark a run as failed unless it has been executed: then only its profiles are missing."""
        with suppress(NotFound):
            if (await self._load_run(owner, run_id)).phase is RunPhase.DONE:
                return
        failed = RunUpdate(status=RunStatus.FAILED, reason=reason, finished_at=self._clock())
        await self._runs.update(run_id, failed)

    async def _load_run(self, owner: Owner, run_id: str) -> ConsolidationRun:
        return await self._runs.get(owner.tenant, run_id, with_changes=False)

    # The nightly stages of all users

    async def handle_nightly_stage(self, payload: NightlyStagePayload, steps: Steps) -> JobOutcome:
        """Handle a job of kind `consolidation_stage`: queue the stage for every unfinished nightly run.

        Runs that an earlier night left unfinished are among them.
        """
        stage, tenant, at = payload.stage, payload.tenant, payload.scheduled_at or steps.job_id
        if stage is Stage.DISCOVERY:
            groups = await steps.run("find users", partial(self._find_groups_with_work, tenant))
            for group_id in groups:
                await steps.run("create run", partial(self._create_run, _owner_of_group(group_id), at))
        found = await steps.run("find runs", partial(self._find_runs, tenant))
        for run_id, group_id in found:
            owner = _owner_of_group(group_id)
            job = ConsolidationPayload(run_id=run_id, tenant=owner.tenant, user_id=owner.user_id, stage=stage)
            await steps.run(
                "queue", partial(self._jobs.enqueue, CONSOLIDATION_JOB, job, f"{run_id}:{stage.value}:{at}")
            )
        return JobOutcome(actions=[NightlyStageAction(action=stage, runs=len(found))])

    async def _find_groups_with_work(self, tenant: str | None) -> list[str]:
        return [owner.group_id for owner in await self._discovery.find_owners(tenant, self._clock())]

    async def _find_runs(self, tenant: str | None) -> list[list[str]]:
        return [[run_id, owner.group_id] for run_id, owner in await self._runs.list_unfinished_nightly(tenant)]

    async def _create_run(self, owner: Owner, at: str) -> None:
        if not any(run.trigger is RunTrigger.NIGHTLY for run in await self._runs.list_unfinished(owner)):
            run_id = str(uuid.uuid5(_NIGHTLY_RUN_NAMESPACE, f"{at}:{owner.group_id}"))
            with suppress(NotFound, UserBeingForgotten), use_tenant(owner.tenant):
                await self._runs.create(run_id, owner.tenant, owner, RunTrigger.NIGHTLY, self._clock())


def _owner_of_group(group_id: str) -> Owner:
    # The steps record group ids, by which the erasure of a user finds the jobs of the night.
    return Owner.from_group_id(group_id)


def _as_planned(proposals: list[ReviewedProposal]) -> list[ReviewedProposal]:
    """Return the proposals of a run whose transaction was discarded: nothing of them was executed."""
    return [
        proposal.model_copy(update={"verdict": ProposalVerdict.PLANNED, "result_id": None})
        if proposal.verdict is ProposalVerdict.EXECUTED
        else proposal
        for proposal in proposals
    ]
