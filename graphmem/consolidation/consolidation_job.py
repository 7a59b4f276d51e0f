"""Durable jobs of consolidation: a run of one user, and the start of the nightly runs of all users.

A run is discovered, analysed batch by batch and executed, and ends when its profiles are written. At night, analysis
and execution wait for their scheduled times. A step whose stage is done returns the result stored on the run's node.
"""

from __future__ import annotations

import uuid
from contextlib import suppress
from dataclasses import replace
from datetime import datetime
from functools import partial
from typing import Any, Literal

from graphmem.consolidation.analysis import AnalysisResult, ProposalAnalyser
from graphmem.consolidation.discovery import Discovery
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
from graphmem.consolidation.service import CONSOLIDATION_JOB, ConsolidationPayload, NightPayload
from graphmem.jobs.job import JobAction, JobOutcome, JobStatus
from graphmem.jobs.kinds import JobWaits, Steps, WaitCause
from graphmem.jobs.runner import JobRunner
from graphmem.models.language_model import Receipt
from graphmem.neo4j.driver import Graph
from graphmem.neo4j.placed_graph import use_tenant
from graphmem.runtime.errors import GraphmemError, NotFound, UserBeingForgotten
from graphmem.runtime.times import Clock
from graphmem.tenants.owners import Owner

RUN_WITHOUT_MODEL_REASON = (
    "no language model is configured: memories of nearly the same meaning were associated, none were merged"
)
"""Reason of a run that no model analysed."""

_ANALYSED = (RunPhase.ANALYSED, RunPhase.EXECUTED, RunPhase.DONE)

_NIGHTLY_RUN_NAMESPACE = uuid.UUID("6f1b7c52-6a61-4b0c-9a53-6f3c2d5b8f10")
"""Namespace of the ids of nightly runs, derived from the schedule's time and the user."""


VERIFIED_AT_ONCE = 10
"""Number of curated proposals that one model call verifies."""


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
    """The profiles that a run wrote, and the number of entities it asked the model to describe."""

    action: Literal["profile"] = "profile"
    run_id: str
    asked: int
    written: int


class NightAction(JobAction):
    """The number of nightly runs that were queued."""

    action: Literal["night"] = "night"
    runs: int


class ConsolidationJob:
    """Handles the jobs of consolidation; `jobs` is the queue for nightly runs.

    Without `profiles`, which need a model, no entity profiles are written.
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
            return await self._run(payload, steps)
        except GraphmemError as error:
            # Not a step: a retried job continues with the step that failed.
            await self._runs.end_failed(payload.tenant, payload.run_id, error.detail, self._clock())
            raise

    # One run

    async def _run(self, payload: ConsolidationPayload, steps: Steps) -> JobOutcome:
        owner, run_id = payload.owner, payload.run_id
        batches = await steps.run("discover", partial(self._discover, owner, run_id), list[MemoryBatch])
        self._wait_until(payload.analyse_from, "analysis")
        results = []
        for number, batch in enumerate(batches, 1):
            analysed = await steps.run(
                f"analyse {number}", partial(self._analyse, owner, run_id, batch), AnalysisResult
            )
            verify = partial(self._verify, owner, run_id, analysed)
            results.append(await steps.run(f"verify {number}", verify, AnalysisResult))
        for number, given in enumerate(await self._list_given(owner, run_id, steps), 1):
            verify = partial(self._verify, owner, run_id, given, curated=True)
            results.append(await steps.run(f"verify given {number}", verify, AnalysisResult))
        receipt = await steps.run(
            "store proposals", partial(self._store_proposals, owner, run_id, batches, results), Receipt
        )
        self._wait_until(payload.execute_from, "execution")
        await steps.run("execute", partial(self._execute, owner, run_id))
        actions: list[JobAction] = []
        if self._profiles is not None:
            drafts = await self._draft_profiles(owner, run_id, self._profiles, steps)
            receipt = sum((draft.receipt for draft in drafts), receipt)
            written = await steps.run("store profiles", partial(self._profiles.store, owner, run_id, drafts), int)
            if drafts:
                actions.append(ProfilesAction(run_id=run_id, asked=len(drafts), written=written))
        done = await steps.run("end", partial(self._describe, owner, run_id), RunAction)
        status = JobStatus.SUCCEEDED if done.status is not RunStatus.ABORTED else JobStatus.SKIPPED
        return JobOutcome(status=status, reason=done.reason, actions=[done, *actions], receipt=receipt)

    def _wait_until(self, time: datetime | None, stage: str) -> None:
        """Release the worker until a given time, so that jobs of the user queued in the meantime run first."""
        seconds = (time - self._clock()).total_seconds() if time else 0.0
        if time and seconds > 0:
            raise JobWaits(f"its {stage} begins at {time.isoformat()}", seconds, WaitCause.ITS_TIME)

    async def _discover(self, owner: Owner, run_id: str) -> list[MemoryBatch]:
        """Find and store the batches of a new run; return the run's batches."""
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

    async def _list_given(self, owner: Owner, run_id: str, steps: Steps) -> list[AnalysisResult]:
        """Return a curated run's proposals, grouped by verification call; empty for other runs."""
        given = await steps.run("given", partial(self._load_given, owner, run_id), list[ReviewedProposal])
        return [
            AnalysisResult(given[start : start + VERIFIED_AT_ONCE]) for start in range(0, len(given), VERIFIED_AT_ONCE)
        ]

    async def _load_given(self, owner: Owner, run_id: str) -> list[ReviewedProposal]:
        run = await self._load_run(owner, run_id)
        return run.proposals if run.trigger is RunTrigger.CURATED else []

    async def _analyse(self, owner: Owner, run_id: str, batch: MemoryBatch) -> AnalysisResult:
        """Return the proposals for a batch; empty if the run's proposals are already stored."""
        run = await self._load_run(owner, run_id)
        if run.phase in _ANALYSED:
            return AnalysisResult([])
        return await self._analyser.analyse(owner, batch)

    async def _verify(
        self, owner: Owner, run_id: str, analysed: AnalysisResult, *, curated: bool = False
    ) -> AnalysisResult:
        """Return a batch's analysis with its proposals verified, and the cost of both."""
        run = await self._load_run(owner, run_id)
        if run.phase in _ANALYSED:
            return analysed
        if self._analyser.verifier is not None:
            proposals, receipt = await self._analyser.verifier.verify(owner, analysed.proposals, curated=curated)
            analysed = replace(analysed, proposals=proposals, receipt=analysed.receipt + receipt)
        if not curated:
            await self._runs.update(run_id, RunUpdate(batches_done=run.batches_done + 1))
        return analysed

    async def _store_proposals(
        self, owner: Owner, run_id: str, batches: list[MemoryBatch], results: list[AnalysisResult]
    ) -> Receipt:
        """Store the proposals of a run and the batches that were read; return the cost of the analysis.

        A run whose proposals are already stored is left unchanged.
        """
        run = await self._load_run(owner, run_id)
        if run.phase in _ANALYSED:
            return run.receipt
        unread = [batch for batch, result in zip(batches, results, strict=False) if not result.is_read]
        unread_ids = {memory_id for batch in unread for memory_id in batch.memory_ids}
        # The stored ones, since the ids of memories erased in the meantime have been removed from them.
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
            reason=reason if self._analyser.verifier or not batches else RUN_WITHOUT_MODEL_REASON,
        )
        await self._runs.update(run_id, analysed)
        return receipt

    async def _execute(self, owner: Owner, run_id: str) -> None:
        """Execute the proposals of a run unless that is done."""
        run = await self._load_run(owner, run_id)
        if run.phase in (RunPhase.EXECUTED, RunPhase.DONE):
            return
        batches = await self._runs.load_batches(run_id, owner.tenant)
        is_curated = run.trigger is RunTrigger.CURATED
        result = await self._executor.execute(
            owner,
            run_id,
            run.proposals,
            dry_run=run.dry_run,
            curated=is_curated,
            actor=run.actor,
            considered=[key for batch in batches for key in batch.memory_ids],
            considered_for_compression=[key for batch in batches if batch.old for key in batch.memory_ids],
            contradictions=run.contradictions,
            ends_run=self._profiles is None or is_curated,
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

    async def _describe(self, owner: Owner, run_id: str) -> RunAction:
        run = await self._load_run(owner, run_id)
        if run.phase is RunPhase.EXECUTED:  # by a worker with a model, which this one lacks
            await self._runs.end_failed(owner.tenant, run_id, "no language model is configured", self._clock())
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
        """Return the profiles that are due after a run was executed; empty if the run has ended."""
        due = await steps.run("find profiles", partial(self._find_due_profiles, owner, run_id), list[str])
        drafts: list[ProfileDraft] = []
        for number, entity_id in enumerate(due, 1):
            write = partial(writer.write, owner, entity_id)
            drafts.append(await steps.run(f"profile {number}", write, ProfileDraft))
            if not drafts[-1].is_answered:
                break  # the model is unavailable: the next run asks again
        return drafts

    async def _find_due_profiles(self, owner: Owner, run_id: str) -> list[str]:
        if (await self._load_run(owner, run_id)).phase is not RunPhase.EXECUTED:
            return []
        return await self._discovery.find_due_profiles(owner, self._clock())

    async def _load_run(self, owner: Owner, run_id: str) -> ConsolidationRun:
        return await self._runs.get(owner.tenant, run_id, with_changes=False)

    # The nightly runs of all users

    async def handle_night(self, payload: NightPayload, steps: Steps) -> JobOutcome:
        """Handle a job of kind `consolidation_night`: queue a run for every user with pending work."""
        begins = await steps.run("begin", partial(self._find_beginning, payload), datetime)
        groups = await steps.run("find users", partial(self._find_groups_with_work, payload.tenant))
        for group_id in groups:
            owner = Owner.from_group_id(group_id)
            await steps.run("start run", partial(self._start_run, owner, payload, begins))
        return JobOutcome(actions=[NightAction(runs=len(groups))])

    async def _find_beginning(self, payload: NightPayload) -> datetime:
        return datetime.fromisoformat(payload.scheduled_at) if payload.scheduled_at else self._clock()

    async def _find_groups_with_work(self, tenant: str | None) -> list[str]:
        """Return the group ids with work; the step records them so that erasing a user finds the night's jobs."""
        return [owner.group_id for owner in await self._discovery.find_owners(tenant, self._clock())]

    async def _start_run(self, owner: Owner, payload: NightPayload, begins: datetime) -> None:
        """Queue the job of a user's nightly run; an unfinished run of an earlier night continues by itself."""
        run_id = await self._runs.find_unfinished_nightly(owner)
        with suppress(NotFound, UserBeingForgotten), use_tenant(owner.tenant):
            if run_id is None:
                run_id = str(uuid.uuid5(_NIGHTLY_RUN_NAMESPACE, f"{begins.isoformat()}:{owner.group_id}"))
                await self._runs.create(run_id, owner.tenant, owner, RunTrigger.NIGHTLY, self._clock())
            analyse_from, execute_from = payload.stage_times(begins)
            job = ConsolidationPayload(
                tenant=owner.tenant,
                user_id=owner.user_id,
                run_id=run_id,
                analyse_from=analyse_from,
                execute_from=execute_from,
            )
            await self._jobs.enqueue(CONSOLIDATION_JOB, job, run_id)


def _as_planned(proposals: list[ReviewedProposal]) -> list[ReviewedProposal]:
    """Return the proposals of a run whose transaction was discarded, with none marked as executed."""
    return [
        proposal.model_copy(update={"verdict": ProposalVerdict.PLANNED, "result_id": None})
        if proposal.verdict is ProposalVerdict.EXECUTED
        else proposal
        for proposal in proposals
    ]
