"""Execution: what passes the guards happens to a user in one transaction, with before-images of all it touches."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime

from graphmem.consolidation.guard_context import entity_ids_of, fetch_entities, fetch_facts, observed_versions
from graphmem.consolidation.run_transaction import ExecutionResult, LossLimits, RunDependencies, RunTransaction
from graphmem.domain.consolidation_models import CreateEntity, Merge, Proposal, ReviewedProposal, RunPhase, RunStatus
from graphmem.domain.identity import Owner
from graphmem.domain.policy import SecretPolicy
from graphmem.domain.types import Vector
from graphmem.embedding import Embedder
from graphmem.store.driver import Graph, Transaction
from graphmem.store.entities import EntityStore
from graphmem.store.facts import FactStore
from graphmem.store.runs import RunStore
from graphmem.store.snapshots import SnapshotStore

MAX_PREVIEW_DELTAS = 5000


class _DiscardTransaction(Exception):
    def __init__(self, executed: ExecutionResult) -> None:
        super().__init__()
        self.executed = executed


class RunExecutor:
    """Executes the proposals of one user; nothing of a run is seen before all of it is done."""

    def __init__(
        self,
        graph: Graph,
        facts: FactStore,
        entities: EntityStore,
        snapshots: SnapshotStore,
        runs: RunStore,
        embedder: Embedder,
        policy: SecretPolicy,
        limits: LossLimits,
    ) -> None:
        self._graph = graph
        self._facts = facts
        self._snapshots = snapshots
        self._runs = runs
        self._embedder = embedder
        self._dependencies = RunDependencies(entities, snapshots, policy, limits)

    async def attach_versions(self, owner: Owner, proposals: Sequence[Proposal]) -> list[ReviewedProposal]:
        """Return proposals with the versions of what they rest on, so that a later change makes them stale."""

        async def work(transaction: Transaction) -> list[ReviewedProposal]:
            facts = await fetch_facts(transaction, owner, proposals)
            entities = await fetch_entities(transaction, owner, entity_ids_of(proposals))
            return [
                ReviewedProposal(proposal=each, seen=observed_versions(each, facts, entities)) for each in proposals
            ]

        return await self._graph.read(work)

    async def execute(
        self,
        owner: Owner,
        run_id: str,
        reviewed: Sequence[ReviewedProposal],
        *,
        dry_run: bool = False,
        curated: bool = False,
        actor: str | None = None,
        considered: Sequence[str] = (),
        considered_for_compression: Sequence[str] = (),
    ) -> ExecutionResult:
        """Execute what passes the guards, or try it and turn back.

        `considered` are the memories the run has looked at, `considered_for_compression` those it has looked at for compression.
        The run's node gets its status in the same transaction: it is done with all its changes or not at all.
        """
        vectors = await self._embed_contents(reviewed)

        async def work(transaction: Transaction) -> ExecutionResult:
            now = await self._facts.lock_user(transaction, owner)
            run_transaction = RunTransaction(
                self._dependencies, transaction, owner, run_id, now, vectors, curated, actor
            )
            executed = await run_transaction.execute([each.model_copy(deep=True) for each in reviewed])
            if dry_run:
                deltas = await self._snapshots.list_changes(transaction, run_id, MAX_PREVIEW_DELTAS)
                executed = replace(executed, deltas=deltas)
            if dry_run or executed.status is not RunStatus.SUCCEEDED:
                raise _DiscardTransaction(executed)
            results = [each.result_id for each in executed.reviewed if each.result_id]
            await transaction.run(
                "consolidation.mark_consolidated",
                group_id=owner.group_id,
                memory_ids=list(dict.fromkeys([*considered, *results])),
                run_id=run_id,
                now=now,
            )
            if considered_for_compression:
                await transaction.run(
                    "consolidation.mark_considered_for_compression",
                    group_id=owner.group_id,
                    memory_ids=list(considered_for_compression),
                    run_id=run_id,
                    now=now,
                )
            await self._finish_run(run_id, executed, now, transaction)
            return executed

        try:
            return await self._graph.write(work)
        except _DiscardTransaction as discarded:
            return discarded.executed

    async def _finish_run(
        self, run_id: str, executed: ExecutionResult, now: datetime, transaction: Transaction
    ) -> None:
        await self._runs.update(
            run_id,
            transaction,
            status=executed.status.value,
            phase=RunPhase.DONE.value,
            finished_at=now,
            proposals=executed.reviewed,
            change_count=executed.change_count,
        )

    async def _embed_contents(self, reviewed: Sequence[ReviewedProposal]) -> dict[str, Vector]:
        """Embed before the transaction opens: the contents of merges and the names of new entities."""
        texts = [
            each.proposal.content if isinstance(each.proposal, Merge) else each.proposal.name
            for each in reviewed
            if isinstance(each.proposal, Merge | CreateEntity)
        ]
        texts = list(dict.fromkeys(texts))
        return dict(zip(texts, await self._embedder.embed(texts), strict=True)) if texts else {}
