"""Execution: what passes the guards happens to a user in one transaction, with before-images of all it touches."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime

from graphmem.consolidation.attempt import Attempt, Executed, Limits, Parts
from graphmem.consolidation.scene import entity_ids_of, fetch_entities, fetch_facts, versions
from graphmem.domain.identity import Owner
from graphmem.domain.policy import SecretPolicy
from graphmem.domain.proposals import CreateEntity, Judged, Merge, Phase, Proposal, RunStatus
from graphmem.embedding import Embedder
from graphmem.store.driver import Graph, Transaction
from graphmem.store.entities import EntityStore
from graphmem.store.facts import FactStore
from graphmem.store.runs import RunStore
from graphmem.store.snapshots import SnapshotStore
from graphmem.store.statements import Vector

SHOWN_DELTAS = 5000


class _TurnedBack(Exception):
    def __init__(self, executed: Executed) -> None:
        super().__init__()
        self.executed = executed


class Executor:
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
        limits: Limits,
    ) -> None:
        self._graph = graph
        self._facts = facts
        self._snapshots = snapshots
        self._runs = runs
        self._embedder = embedder
        self._parts = Parts(entities, snapshots, policy, limits)

    async def observe(self, owner: Owner, proposals: Sequence[Proposal]) -> list[Judged]:
        """Return proposals with the versions of what they rest on, so that a later change makes them stale."""

        async def work(transaction: Transaction) -> list[Judged]:
            facts = await fetch_facts(transaction, owner, proposals)
            entities = await fetch_entities(transaction, owner, entity_ids_of(proposals))
            return [Judged(proposal=each, seen=versions(each, facts, entities)) for each in proposals]

        return await self._graph.read(work)

    async def execute(
        self,
        owner: Owner,
        run_id: str,
        judged: Sequence[Judged],
        *,
        dry_run: bool = False,
        curated: bool = False,
        actor: str | None = None,
        considered: Sequence[str] = (),
        weighed: Sequence[str] = (),
    ) -> Executed:
        """Execute what passes the guards, or try it and turn back.

        `considered` are the memories the run has looked at, `weighed` those it has looked at for compression.
        The run's node gets its status in the same transaction: it is done with all its changes or not at all.
        """
        vectors = await self._vectors(judged)

        async def work(transaction: Transaction) -> Executed:
            now = await self._facts.lock(transaction, owner)
            attempt = Attempt(self._parts, transaction, owner, run_id, now, vectors, curated, actor)
            executed = await attempt.execute([each.model_copy(deep=True) for each in judged])
            if dry_run:
                deltas = await self._snapshots.changes(transaction, run_id, SHOWN_DELTAS)
                executed = replace(executed, deltas=deltas)
            if dry_run or executed.status is not RunStatus.SUCCEEDED:
                raise _TurnedBack(executed)
            results = [each.result_id for each in executed.judged if each.result_id]
            await transaction.run(
                "consolidation.mark",
                group_id=owner.group_id,
                memory_ids=list(dict.fromkeys([*considered, *results])),
                run_id=run_id,
                now=now,
            )
            if weighed:
                await transaction.run(
                    "consolidation.note_weighed",
                    group_id=owner.group_id,
                    memory_ids=list(weighed),
                    run_id=run_id,
                    now=now,
                )
            await self._close(run_id, executed, now, transaction)
            return executed

        try:
            return await self._graph.write(work)
        except _TurnedBack as back:
            return back.executed

    async def _close(self, run_id: str, executed: Executed, now: datetime, transaction: Transaction) -> None:
        await self._runs.update(
            run_id,
            transaction,
            status=executed.status.value,
            phase=Phase.DONE.value,
            finished_at=now,
            proposals=executed.judged,
            change_count=executed.change_count,
        )

    async def _vectors(self, judged: Sequence[Judged]) -> dict[str, Vector]:
        """Embed before the transaction opens: the contents of merges and the names of new entities."""
        texts = [
            each.proposal.content if isinstance(each.proposal, Merge) else each.proposal.name
            for each in judged
            if isinstance(each.proposal, Merge | CreateEntity)
        ]
        texts = list(dict.fromkeys(texts))
        return dict(zip(texts, await self._embedder.embed(texts), strict=True)) if texts else {}
