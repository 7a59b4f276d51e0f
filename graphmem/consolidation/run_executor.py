"""Executes a run of one user in one transaction, which either commits all of its changes or none."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from graphmem.consolidation.guards import CONTRADICTION, LossLimits, entity_ids_of, observed_versions
from graphmem.consolidation.models import (
    Close,
    CreateEntity,
    LinkEntities,
    Merge,
    Proposal,
    ReportedContradiction,
    ReviewedProposal,
    RunPhase,
    RunStatus,
)
from graphmem.consolidation.proposal_applier import ApplierDependencies, ExecutionResult, ProposalApplier
from graphmem.consolidation.run_store import RunStore, RunUpdate, fetch_entities, fetch_facts
from graphmem.memories import snapshot_store
from graphmem.memories.entity_store import EntityStore
from graphmem.memories.fact_store import FactStore
from graphmem.models.embedder import Embedder
from graphmem.neo4j.driver import Graph, Transaction
from graphmem.runtime.field_types import Vector
from graphmem.secrets.values import SecretPolicy
from graphmem.tenants.owners import Owner

MAX_PREVIEWED_CHANGES = 5000
"""Most changes that the preview of a dry run holds."""


class _DiscardTransaction(Exception):
    """Rolls back the transaction of a dry run or of an aborted run."""

    def __init__(self, result: ExecutionResult) -> None:
        super().__init__()
        self.result = result


class RunExecutor:
    """Executes the proposals of one user."""

    def __init__(
        self,
        graph: Graph,
        facts: FactStore,
        entities: EntityStore,
        runs: RunStore,
        embedder: Embedder,
        policy: SecretPolicy,
        limits: LossLimits,
    ) -> None:
        self._graph = graph
        self._facts = facts
        self._runs = runs
        self._embedder = embedder
        self._dependencies = ApplierDependencies(entities, policy, limits)

    async def attach_versions(
        self, owner: Owner, proposals: Sequence[Proposal], actor: str | None = None
    ) -> list[ReviewedProposal]:
        """Return proposals with the versions of what they name, so that a later change makes them stale.

        `actor` is recorded as the one who verified those that are marked so.
        """

        async def work(transaction: Transaction) -> list[ReviewedProposal]:
            facts = await fetch_facts(transaction, owner, proposals)
            entities = await fetch_entities(transaction, owner, entity_ids_of(proposals))
            return [
                ReviewedProposal(
                    proposal=proposal,
                    seen=observed_versions(proposal, facts, entities),
                    verified_by=actor
                    if isinstance(proposal, Merge | Close | LinkEntities) and proposal.verified
                    else None,
                )
                for proposal in proposals
            ]

        return await self._graph.read(work)

    async def execute(
        self,
        owner: Owner,
        run_id: str,
        proposals: Sequence[ReviewedProposal],
        *,
        dry_run: bool = False,
        curated: bool = False,
        actor: str | None = None,
        considered: Sequence[str] = (),
        considered_for_compression: Sequence[str] = (),
        contradictions: Sequence[ReportedContradiction] = (),
        ends_run: bool = True,
    ) -> ExecutionResult:
        """Apply the proposals that pass the guards; a dry run or an aborted run changes nothing.

        `considered` are the memories that the run has analysed, `considered_for_compression` those that it has
        analysed for compression, `contradictions` what it has found contradictory and therefore leaves alone. The
        transaction also marks the run as done, or as executed where it does not end it.
        """
        vectors = await self._embed_texts(proposals)
        contradicted = frozenset(key for reported in contradictions for key in reported.memory_ids)

        async def work(transaction: Transaction) -> ExecutionResult:
            now = await self._facts.lock_user(transaction, owner, removes=True)
            applier = ProposalApplier(
                self._dependencies,
                transaction,
                owner,
                run_id,
                now,
                vectors=vectors,
                curated=curated,
                actor=actor,
                contradicted=contradicted,
            )
            result = await applier.apply(proposals)
            result = replace(result, contradictions=_with_refused(contradictions, result.proposals))
            if dry_run:
                changes = await snapshot_store.list_changes(transaction, run_id, MAX_PREVIEWED_CHANGES)
                raise _DiscardTransaction(replace(result, changes=changes))
            if result.status is not RunStatus.SUCCEEDED:
                raise _DiscardTransaction(result)
            result_ids = [reviewed.result_id for reviewed in result.proposals if reviewed.result_id]
            marks = {"group_id": owner.group_id, "run_id": run_id, "now": now}
            await transaction.run(
                "consolidation.mark_consolidated", memory_ids=list(dict.fromkeys([*considered, *result_ids])), **marks
            )
            if considered_for_compression:
                await transaction.run(
                    "consolidation.mark_considered_for_compression",
                    memory_ids=list(considered_for_compression),
                    **marks,
                )
            done = RunUpdate(
                status=result.status if ends_run else RunStatus.RUNNING,
                phase=RunPhase.DONE if ends_run else RunPhase.EXECUTED,
                finished_at=now if ends_run else None,
                proposals=result.proposals,
                contradictions=result.contradictions,
                change_count=result.change_count,
            )
            await self._runs.update(run_id, done, transaction)
            return result

        try:
            return await self._graph.write(work)
        except _DiscardTransaction as discarded:
            return discarded.result

    async def _embed_texts(self, proposals: Sequence[ReviewedProposal]) -> dict[str, Vector]:
        """Return the vectors of the contents of merges and of the names of new entities, by text."""
        texts: dict[str, None] = {}
        for reviewed in proposals:
            if isinstance(reviewed.proposal, Merge):
                texts[reviewed.proposal.content] = None
            elif isinstance(reviewed.proposal, CreateEntity):
                texts[reviewed.proposal.name] = None
        return dict(zip(texts, await self._embedder.embed(list(texts)), strict=True)) if texts else {}


def _with_refused(
    reported: Sequence[ReportedContradiction], proposals: Sequence[ReviewedProposal]
) -> list[ReportedContradiction]:
    """Return the reported contradictions and those for which a merge was refused, each set of memories once."""
    found = {frozenset(contradiction.memory_ids): contradiction for contradiction in reported}
    for reviewed in proposals:
        if isinstance(reviewed.proposal, Merge) and (reviewed.reason or "").startswith(CONTRADICTION):
            ids = reviewed.proposal.memory_ids
            if not any(known & frozenset(ids) for known in found):
                found[frozenset(ids)] = ReportedContradiction(memory_ids=ids, reason=reviewed.reason or "")
    return list(found.values())
