"""Rolls back runs; a rollback is recorded as a run, so that it can be rolled back itself."""

from __future__ import annotations

import uuid
from collections.abc import Iterable
from datetime import datetime, timedelta

from graphmem.consolidation.entity_merging import retire_duplicates
from graphmem.consolidation.models import (
    ConsolidationRun,
    RollbackConflict,
    RollbackPreview,
    RollbackResult,
    RunPhase,
    RunStatus,
    RunTrigger,
)
from graphmem.consolidation.rollback_plan import ElementKey, RollbackPlan
from graphmem.consolidation.run_store import RunStore, RunUpdate
from graphmem.memories import snapshot_store
from graphmem.memories.fact import fact_from_row
from graphmem.memories.fact_store import FactStore
from graphmem.memories.ledger import Ledger, describe_rival, find_rival
from graphmem.memories.saving import FactLoader
from graphmem.memories.snapshot import ElementImage, ElementKind, fact_from_image
from graphmem.memories.snapshot_store import ChangeRecorder
from graphmem.neo4j.driver import Graph, Transaction
from graphmem.runtime.errors import Conflict, Gone
from graphmem.runtime.times import MICROSECOND, Clock
from graphmem.tenants.owners import Owner

RESTORED_TWICE_REASON = "a rollback restored the same statement"
"""Reason in the history of a memory that a rollback made a duplicate."""

NO_CHANGES_LEFT = (
    "Nothing of the run is left to roll back: its changes were rolled back, or their records were deleted, by "
    "maintenance after GRAPHMEM_ROLLBACK_DAYS or with the memories."
)
"""Detail of the error for a run whose changes are not stored any more."""


class RunRollback:
    """Rolls back runs within their retention of `days` days: the run of one user in one transaction."""

    def __init__(self, graph: Graph, facts: FactStore, runs: RunStore, clock: Clock, days: int) -> None:
        self._graph = graph
        self._facts = facts
        self._runs = runs
        self._clock = clock
        self._days = days

    async def roll_back(
        self, tenant: str, run_id: str, *, force: bool = False, actor: str | None = None
    ) -> RollbackResult:
        """Roll back a run of one user or of all users.

        Raises NotFound; Gone past the retention; Conflict when there is nothing to roll back or, without `force`, when
        later writes changed the same elements, which the errors then list. Without `force`, a conflict of one user
        prevents the rollback of all.
        """
        run = await self._runs.get(tenant, run_id, with_changes=False)
        self._ensure_can_roll_back(run)
        parts = await self._list_changed_parts(tenant, run_id)
        if not force and len(parts) > 1:
            found = [await self._find_conflicts(owner, part_id) for part_id, owner in parts]
            _raise_conflicts(conflict for conflicts in found for conflict in conflicts)
        results = [await self._roll_back_part(owner, part_id, force, actor) for part_id, owner in parts]
        rollback_id = results[0].rollback_id
        if run.parts:
            await self._runs.update(run_id, RunUpdate(status=RunStatus.ROLLED_BACK, undone_by=rollback_id))
        return RollbackResult(
            run_id=run_id,
            rollback_id=rollback_id,
            status=RunStatus.ROLLED_BACK,
            restored=sum(result.restored for result in results),
            conflicts=[conflict for result in results for conflict in result.conflicts],
        )

    async def preview(self, tenant: str, run_id: str) -> RollbackPreview:
        """Return what the rollback of a run would do, and change nothing; raise as `roll_back` but for conflicts."""
        self._ensure_can_roll_back(await self._runs.get(tenant, run_id, with_changes=False))
        merged = RollbackPreview(run_id=run_id)
        for part_id, owner in await self._list_changed_parts(tenant, run_id):
            part = (await self._read_plan(owner, part_id)).preview(part_id)
            merged.goes_back += part.goes_back
            merged.comes_back += part.comes_back
            merged.stays += part.stays
            merged.conflicts += part.conflicts
        return merged

    async def _list_changed_parts(self, tenant: str, run_id: str) -> list[tuple[str, Owner]]:
        """Return a run of one user itself, and of a run over all users the parts to roll back; raise Gone without any.

        Whether a run of one user has changes is found out under the user's lock: another rollback may end before.
        """
        parts = [
            (part_id, owner)
            for part_id, owner in await self._runs.list_user_runs(tenant, run_id)
            if part_id == run_id or await self._has_changes(tenant, part_id)
        ]
        if not parts:
            raise Gone(NO_CHANGES_LEFT)
        return parts

    def _ensure_can_roll_back(self, run: ConsolidationRun) -> None:
        if run.dry_run:
            raise Conflict("The run was a dry run: it changed nothing.")
        if run.status is RunStatus.ROLLED_BACK:
            raise Conflict(f"The run was rolled back already, by {run.undone_by}.")
        if not run.status.is_final:
            raise Conflict("The run has not ended: roll it back when it has.")
        has_succeeded = run.status is RunStatus.SUCCEEDED or bool(run.parts)
        if not has_succeeded or not run.change_count:
            raise Conflict(f"The run is {run.status.value} and changed nothing that could be rolled back.")
        if (run.finished_at or run.created_at) < self._clock() - timedelta(days=self._days):
            raise Gone(f"A run can be rolled back for {self._days} days, and this one is older.")

    async def _has_changes(self, tenant: str, run_id: str) -> bool:
        part = await self._runs.get(tenant, run_id, with_changes=False)
        return part.status is RunStatus.SUCCEEDED and await self._runs.has_changes(run_id)

    async def _find_conflicts(self, owner: Owner, run_id: str) -> list[RollbackConflict]:
        return (await self._read_plan(owner, run_id)).conflicts

    async def _read_plan(self, owner: Owner, run_id: str) -> RollbackPlan:
        async def work(transaction: Transaction) -> RollbackPlan:
            return await load_plan(transaction, owner, run_id)

        return await self._graph.read(work)

    async def _roll_back_part(self, owner: Owner, run_id: str, force: bool, actor: str | None) -> RollbackResult:
        """Roll back the run of one user."""
        rollback_id = str(uuid.uuid4())

        async def work(transaction: Transaction) -> RollbackResult:
            now = await self._facts.lock_user(transaction, owner, removes=True)
            # Another rollback may have ended since the run was looked at.
            run = await self._runs.get(owner.tenant, run_id, with_changes=False, transaction=transaction)
            self._ensure_can_roll_back(run)
            plan = await load_plan(transaction, owner, run_id)
            if not force:
                _raise_conflicts(plan.conflicts)
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
            recorder = ChangeRecorder(transaction, rollback_id, owner.group_id, now)
            for kind in ElementKind:
                await recorder.record_before(kind, [element.id for element in plan.changed(kind)])
            await transaction.run("snapshots.copy_vectors", run_id=rollback_id, from_run_id=run_id)
            if plan.duplicates:
                facts = await FactLoader(transaction, owner).fetch(memory_ids=list(plan.duplicates))
                ledger = Ledger(facts.values(), now, actor)
                now = await retire_duplicates(
                    transaction, owner, recorder, ledger, plan.duplicates, RESTORED_TWICE_REASON, now
                )
            await apply_plan(transaction, owner.group_id, rollback_id, plan)
            restored = await recorder.record_after()
            await transaction.run("consolidation.unmark_consolidated", group_id=owner.group_id, run_id=run_id)
            await transaction.run("facts.set_last_write_time", group_id=owner.group_id, at=now + MICROSECOND)
            await self._mark_rolled_back(transaction, run_id, rollback_id, restored, now)
            return RollbackResult(
                run_id=run_id,
                rollback_id=rollback_id,
                status=RunStatus.ROLLED_BACK,
                restored=restored,
                conflicts=plan.conflicts,
            )

        return await self._graph.write(work)

    async def _mark_rolled_back(
        self, transaction: Transaction, run_id: str, rollback_id: str, restored: int, now: datetime
    ) -> None:
        done = RunUpdate(status=RunStatus.SUCCEEDED, phase=RunPhase.DONE, finished_at=now, change_count=restored)
        await self._runs.update(rollback_id, done, transaction)
        undone = RunUpdate(status=RunStatus.ROLLED_BACK, undone_by=rollback_id)
        await self._runs.update(run_id, undone, transaction)
        # If the run is a rollback, the run that it undid counts again, the one before that no longer, and so on.
        previous, status = await self._runs.get_undone_run_id(transaction, run_id), RunStatus.SUCCEEDED
        while previous:
            undone_by = run_id if status is RunStatus.ROLLED_BACK else None
            await self._runs.update(previous, RunUpdate(status=status, undone_by=undone_by), transaction)
            status = RunStatus.ROLLED_BACK if status is RunStatus.SUCCEEDED else RunStatus.SUCCEEDED
            previous = await self._runs.get_undone_run_id(transaction, previous)


def _raise_conflicts(conflicts: Iterable[RollbackConflict]) -> None:
    errors = [
        {"loc": [conflict.kind, conflict.id], "msg": conflict.detail, **conflict.model_dump(exclude={"detail"})}
        for conflict in conflicts
    ]
    if errors:
        message = (
            f"{len(errors)} elements were written after this run: see the list of errors, or overwrite with force."
        )
        raise Conflict(message, errors=errors)


async def load_plan(transaction: Transaction, owner: Owner, run_id: str) -> RollbackPlan:
    """Return the plan to roll a run back.

    Raises Gone when the changes of the run were deleted, and Conflict when a name to be restored belongs to another
    entity or when a value to be restored would be valid together with another one of its single-valued predicate.
    """
    group_id = owner.group_id
    changes = await snapshot_store.list_changes(transaction, run_id)
    if not changes:
        raise Gone(NO_CHANGES_LEFT)
    images: dict[ElementKey, ElementImage] = {}
    for kind in ElementKind:
        ids = [change.id for change in changes if change.kind is kind]
        found = await snapshot_store.fetch_images(transaction, group_id, kind, ids)
        images |= {(kind, id): image for id, image in found.items()}
    plan = RollbackPlan(changes, images)
    if names := plan.restored_names():
        rows = await transaction.run("snapshots.find_name_holders", group_id=group_id, keys=list(names))
        plan.check_names_are_free({row["key"]: row["id"] for row in rows})
    if versions := [{"memory_id": key, "version": version} for key, version in plan.last_versions().items()]:
        rows = await transaction.run("snapshots.find_later_versions", group_id=group_id, rows=versions)
        plan.add_later_versions(await _fetch_fact_images(transaction, group_id, rows))
    if profiles := plan.restored_profiles():
        rows = await transaction.run("profiles.fetch_latest", group_id=group_id, entity_ids=list(profiles))
        for latest in map(fact_from_row, rows):
            if latest.expired_at is None and latest.memory_id != profiles[latest.subject_id]:
                plan.keep_ended(profiles[latest.subject_id])
    if hashes := plan.restored_hashes():
        rows = await transaction.run("snapshots.find_active_hash_holders", group_id=group_id, keys=list(hashes))
        plan.add_duplicates(rows)
    await _refuse_rivals(transaction, owner, plan)
    if entity_ids := plan.removed_entity_ids():
        rows = await transaction.run("snapshots.list_entity_relationships", group_id=group_id, ids=entity_ids)
        for row in rows:
            kind = ElementKind.FACT if row["type"] == "RELATES_TO" else ElementKind.MENTION
            plan.add_relationship(row["id"], kind, row["tie"])
    if memory_ids := plan.removed_memory_ids():
        rows = await transaction.run(
            "snapshots.find_referencing_facts", group_id=group_id, memory_ids=sorted(memory_ids)
        )
        plan.remove_references(await _fetch_fact_images(transaction, group_id, rows))
    return plan


async def _refuse_rivals(transaction: Transaction, owner: Owner, plan: RollbackPlan) -> None:
    restored = [
        (fact_from_image(target), fact_from_image(current) if current else None)
        for current, target in plan.restored_facts()
    ]
    values = [(fact, before) for fact, before in restored if fact.single_valued and fact.expired_at is None]
    pairs = [(fact.subject_id, fact.predicate) for fact, _ in values]
    found = (await FactLoader(transaction, owner).fetch(pairs=pairs)).values()
    others = [fact for fact in found if not plan.concerns(fact)]
    for fact, before in values:
        if rival := find_rival(fact, others, before):
            raise Conflict(f"{fact.memory_id} would become {describe_rival(fact, rival)}.")


async def _fetch_fact_images(
    transaction: Transaction, group_id: str, rows: Iterable[dict[str, str]]
) -> dict[str, ElementImage]:
    return await snapshot_store.fetch_images(transaction, group_id, ElementKind.FACT, [row["id"] for row in rows])


async def apply_plan(transaction: Transaction, group_id: str, rollback_id: str, plan: RollbackPlan) -> None:
    """Carry a plan out: remove elements first, then restore and update them, nodes before relationships."""

    async def run(query: str, **parameters: object) -> None:
        if parameters.get("ids") or parameters.get("rows") or parameters.get("referring"):
            await transaction.run(query, **parameters)

    fact_updates = plan.rows_to_update(ElementKind.FACT)
    restored = {"group_id": group_id, "run_id": rollback_id}
    await run("snapshots.remove_mentions", ids=plan.ids_to_remove(ElementKind.MENTION), group_id=group_id)
    await run("snapshots.remove_facts", ids=plan.ids_to_remove(ElementKind.FACT), group_id=group_id)
    await run("snapshots.remove_entities", ids=plan.ids_to_remove(ElementKind.ENTITY), group_id=group_id)
    await run("snapshots.restore_entities", rows=plan.rows_to_restore(ElementKind.ENTITY), **restored)
    await run("snapshots.set_entities", rows=plan.rows_to_update(ElementKind.ENTITY), group_id=group_id)
    await run("snapshots.set_episodes", rows=plan.rows_to_update(ElementKind.EPISODE), group_id=group_id)
    # Two facts may not hold one unique hash at any moment: clear the hashes before they are set.
    released = [{"id": row["id"], "properties": {"active_hash": None}} for row in fact_updates]
    await run("snapshots.set_facts", rows=released, group_id=group_id)
    await run("snapshots.restore_facts", rows=plan.rows_to_restore(ElementKind.FACT), **restored)
    await run("snapshots.set_facts", rows=fact_updates, group_id=group_id)
    await run("facts.rebuild_references", referring=plan.referring_memory_ids(), group_id=group_id)
    await run("snapshots.restore_mentions", rows=plan.rows_to_restore(ElementKind.MENTION))
    await run("snapshots.set_mentions", rows=plan.rows_to_update(ElementKind.MENTION), group_id=group_id)
