"""Undo: what a run wrote is gone, what it touched is as it was, and the undoing is a run that can be undone itself."""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta

from graphmem.consolidation.rollback_plan import RollbackPlan, RollbackPlanner
from graphmem.domain.consolidation_models import (
    ConsolidationRun,
    RollbackConflict,
    RollbackResult,
    RunPhase,
    RunStatus,
    RunTrigger,
)
from graphmem.domain.identity import Owner
from graphmem.domain.memory import MemoryStatus
from graphmem.domain.snapshot import ElementImage, ElementKind, diff_properties
from graphmem.domain.times import MICROSECOND, Clock
from graphmem.domain.versioning import Ledger
from graphmem.errors import Conflict, Gone
from graphmem.store.driver import Graph, Transaction
from graphmem.store.fact_mapping import fact_from_row
from graphmem.store.fact_write import FactWrite
from graphmem.store.facts import FactStore
from graphmem.store.runs import RunStore
from graphmem.store.snapshots import ChangeRecorder, SnapshotStore


class RunRollback:
    """Undoes runs, one user's in one transaction."""

    def __init__(
        self,
        graph: Graph,
        facts: FactStore,
        snapshots: SnapshotStore,
        runs: RunStore,
        clock: Clock,
        days: int,
    ) -> None:
        self._graph = graph
        self._facts = facts
        self._snapshots = snapshots
        self._planner = RollbackPlanner(snapshots)
        self._runs = runs
        self._clock = clock
        self._days = days

    async def roll_back(
        self, tenant: str, run_id: str, *, force: bool = False, actor: str | None = None
    ) -> RollbackResult:
        """Undo a run, of one user or of all.

        Raises Gone past the retention, and Conflict when there is nothing to undo or, without `force`, when later
        writes touched the same things; its errors list them. With several users nothing is undone when one collides.
        """
        run = await self._runs.get(tenant, run_id, with_changes=False)
        self._check_can_roll_back(run)
        parts = [
            (part_id, owner)
            for part_id, owner in await self._runs.list_user_runs(tenant, run_id)
            if part_id == run_id or await self._is_undoable(tenant, part_id)
        ]
        if not force and len(parts) > 1:
            await self._refuse_conflicts([await self._find_conflicts(owner, part_id) for part_id, owner in parts])
        done = [await self._roll_back_part(owner, part_id, force, actor) for part_id, owner in parts]
        whole = done[0]
        if run.parts:
            await self._runs.update(run_id, status=RunStatus.ROLLED_BACK.value, undone_by=whole.rollback_id)
        return RollbackResult(
            run_id=run_id,
            rollback_id=whole.rollback_id,
            status=RunStatus.ROLLED_BACK,
            restored=sum(each.restored for each in done),
            conflicts=[conflict for each in done for conflict in each.conflicts],
        )

    def _check_can_roll_back(self, run: ConsolidationRun) -> None:
        if run.dry_run:
            raise Conflict("The run was a dry run: it changed nothing.")
        if run.status is RunStatus.ROLLED_BACK:
            raise Conflict(f"The run was rolled back already, by {run.undone_by}.")
        undoable = run.status is RunStatus.SUCCEEDED or (run.parts and run.status.is_final)
        if not undoable or not run.change_count:
            raise Conflict(f"The run is {run.status.value} and changed nothing that could be rolled back.")
        oldest = self._clock() - timedelta(days=self._days)
        if (run.finished_at or run.created_at) < oldest:
            raise Gone(f"A run can be rolled back for {self._days} days, and this one is older.")

    async def _is_undoable(self, tenant: str, run_id: str) -> bool:
        part = await self._runs.get(tenant, run_id, with_changes=False)
        return part.status is RunStatus.SUCCEEDED and part.change_count > 0

    async def _find_conflicts(self, owner: Owner, run_id: str) -> list[RollbackConflict]:
        async def work(transaction: Transaction) -> list[RollbackConflict]:
            return (await self._planner.plan(transaction, owner, run_id)).conflicts

        return await self._graph.read(work)

    async def _refuse_conflicts(self, found: Iterable[list[RollbackConflict]]) -> None:
        conflicts = [each for part in found for each in part]
        if conflicts:
            errors = [
                {"loc": [each.kind, each.id], "msg": each.detail, **each.model_dump(exclude={"detail"})}
                for each in conflicts
            ]
            message = f"{len(conflicts)} things were written to since this run: see the list, or overwrite with force."
            raise Conflict(message, errors=errors)

    async def _roll_back_part(self, owner: Owner, run_id: str, force: bool, actor: str | None) -> RollbackResult:
        rollback_id = str(uuid.uuid4())

        async def work(transaction: Transaction) -> RollbackResult:
            now = await self._facts.lock_user(transaction, owner)
            plan = await self._planner.plan(transaction, owner, run_id)
            if not force:
                await self._refuse_conflicts([plan.conflicts])
            await self._runs.create(
                rollback_id,
                owner.tenant,
                owner,
                RunTrigger.ROLLBACK,
                now,
                actor=actor,
                undoes=run_id,
                transaction=transaction,
            )
            recorder = self._snapshots.create_recorder(transaction, rollback_id, owner.group_id, now)
            for kind in ElementKind:
                await recorder.record_before(kind, list(plan.changes_of(kind)))
            await transaction.run("snapshots.copy_vectors", run_id=rollback_id, from_run_id=run_id)
            now = await self._retire_duplicates(transaction, owner, recorder, plan, now, actor)
            await _apply_plan(transaction, owner.group_id, rollback_id, plan)
            count = await recorder.record_after()
            await transaction.run("consolidation.unmark_consolidated", group_id=owner.group_id, run_id=run_id)
            await transaction.run("facts.set_last_write_time", group_id=owner.group_id, at=now + MICROSECOND)
            await self._mark_rolled_back(transaction, owner.tenant, run_id, rollback_id, count, now)
            return RollbackResult(
                run_id=run_id,
                rollback_id=rollback_id,
                status=RunStatus.ROLLED_BACK,
                restored=count,
                conflicts=plan.conflicts,
            )

        return await self._graph.write(work)

    async def _mark_rolled_back(
        self, transaction: Transaction, tenant: str, run_id: str, rollback_id: str, count: int, now: datetime
    ) -> None:
        done = {"status": RunStatus.SUCCEEDED.value, "phase": RunPhase.DONE.value, "finished_at": now}
        await self._runs.update(rollback_id, transaction, **done, change_count=count)
        await self._runs.update(run_id, transaction, status=RunStatus.ROLLED_BACK.value, undone_by=rollback_id)
        # Undoing a rollback brings back what it had undone, and so on down the chain.
        undone, status = await self._runs.get_undone_run_id(transaction, run_id), RunStatus.SUCCEEDED
        while undone:
            by = run_id if status is RunStatus.ROLLED_BACK else None
            await self._runs.update(undone, transaction, status=status.value, undone_by=by)
            status = RunStatus.ROLLED_BACK if status is RunStatus.SUCCEEDED else RunStatus.SUCCEEDED
            undone = await self._runs.get_undone_run_id(transaction, undone)

    async def _retire_duplicates(
        self,
        transaction: Transaction,
        owner: Owner,
        recorder: ChangeRecorder,
        plan: RollbackPlan,
        now: datetime,
        actor: str | None,
    ) -> datetime:
        if not plan.duplicates:
            return now
        rows = await transaction.run(
            "facts.fetch_for_write", group_id=owner.group_id, hashes=[], memory_ids=list(plan.duplicates), pairs=[]
        )
        ledger = Ledger(map(fact_from_row, rows), now, actor)
        for memory_id, restored in plan.duplicates.items():
            ledger.retire(memory_id, "a rollback brought the same statement back", restored, MemoryStatus.SUPERSEDED)
        await recorder.record_before(ElementKind.FACT, [*ledger.changed, *ledger.created])
        await FactWrite(owner, transaction, now, ledger).commit()
        return ledger.now


async def _apply_plan(transaction: Transaction, group_id: str, rollback_id: str, plan: RollbackPlan) -> None:
    """Make the graph what the plan wants: first what goes, then what comes back, then what changes in place."""
    mentions, facts = plan.changes_of(ElementKind.MENTION), plan.changes_of(ElementKind.FACT)
    entities, episodes = plan.changes_of(ElementKind.ENTITY), plan.changes_of(ElementKind.EPISODE)
    moved = {key for key, (now, then) in facts.items() if now and then and _endpoints(now) != _endpoints(then)}
    gone = [key for key, (now, then) in facts.items() if now and (then is None or key in moved)]
    await _run_unless_empty(transaction, "snapshots.remove_mentions", ids=_ids_to_remove(mentions), group_id=group_id)
    await _run_unless_empty(transaction, "snapshots.remove_facts", ids=gone, group_id=group_id)
    await _run_unless_empty(transaction, "snapshots.remove_entities", ids=_ids_to_remove(entities), group_id=group_id)
    await _run_unless_empty(
        transaction, "snapshots.restore_entities", rows=_rows_to_restore(entities), run_id=rollback_id
    )
    await _run_unless_empty(transaction, "snapshots.set_entities", rows=_rows_to_update(entities), group_id=group_id)
    await _run_unless_empty(transaction, "snapshots.set_episodes", rows=_rows_to_update(episodes), group_id=group_id)
    # Keys first go, then come: two facts may not hold one even for a moment.
    staying = {key: pair for key, pair in facts.items() if key not in moved}
    released = [{"id": row["id"], "properties": {"active_hash": None}} for row in _rows_to_update(staying)]
    await _run_unless_empty(transaction, "snapshots.set_facts", rows=released, group_id=group_id)
    back = _rows_to_restore(facts) + [_restored_row(key, facts[key][1]) for key in moved]
    await _run_unless_empty(transaction, "snapshots.restore_facts", rows=back, run_id=rollback_id)
    await _run_unless_empty(
        transaction, "snapshots.set_facts", rows=_rows_to_update(staying, keys=True), group_id=group_id
    )
    await _run_unless_empty(transaction, "snapshots.restore_mentions", rows=_rows_to_restore(mentions))
    await _run_unless_empty(transaction, "snapshots.set_mentions", rows=_rows_to_update(mentions), group_id=group_id)


async def _run_unless_empty(transaction: Transaction, name: str, **parameters: object) -> None:
    if parameters.get("rows") or parameters.get("ids"):
        await transaction.run(name, **parameters)


CurrentAndTarget = Mapping[str, tuple[ElementImage | None, ElementImage | None]]


def _ids_to_remove(pairs: CurrentAndTarget) -> list[str]:
    return [key for key, (now, then) in pairs.items() if now is not None and then is None]


def _rows_to_restore(pairs: CurrentAndTarget) -> list[dict[str, object]]:
    return [_restored_row(key, then) for key, (now, then) in pairs.items() if now is None and then is not None]


def _restored_row(key: str, image: ElementImage | None) -> dict[str, object]:
    assert image is not None
    return {
        "id": key,
        "properties": image.properties,
        "source": image.source,
        "target": image.target,
        "labels": list(image.labels),
    }


def _rows_to_update(pairs: CurrentAndTarget, *, keys: bool = False) -> list[dict[str, object]]:
    rows: list[dict[str, object]] = []
    for key, (now, then) in pairs.items():
        if now is None or then is None:
            continue
        changes = diff_properties(now.properties, then.properties)
        if keys and then.properties.get("active_hash"):
            changes["active_hash"] = then.properties["active_hash"]
        rows.append(
            {
                "id": key,
                "properties": changes,
                "labels": [label for label in then.labels if label not in now.labels],
                "labels_gone": [label for label in now.labels if label not in then.labels],
            }
        )
    return rows


def _endpoints(image: ElementImage) -> tuple[str | None, str | None]:
    return image.source, image.target
