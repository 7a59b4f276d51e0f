"""Undo: what a run wrote is gone, what it touched is as it was, and the undoing is a run that can be undone itself."""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta

from graphmem.consolidation.undoing import Plan, Planner
from graphmem.domain.belief import ONE_TICK, Ledger
from graphmem.domain.identity import Owner
from graphmem.domain.memory import Status
from graphmem.domain.proposals import Collision, Phase, Rollback, Run, RunStatus, Trigger
from graphmem.domain.snapshot import Image, Kind, differences
from graphmem.domain.times import Clock
from graphmem.errors import Conflict, Gone
from graphmem.store.driver import Graph, Transaction
from graphmem.store.facts import FactStore
from graphmem.store.rows import read_fact
from graphmem.store.runs import RunStore
from graphmem.store.snapshots import Recorder, SnapshotStore
from graphmem.store.writes import Write


class Rollbacks:
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
        self._planner = Planner(snapshots)
        self._runs = runs
        self._clock = clock
        self._days = days

    async def undo(self, tenant: str, run_id: str, *, force: bool = False, actor: str | None = None) -> Rollback:
        """Undo a run, of one user or of all.

        Raises Gone past the retention, and Conflict when there is nothing to undo or, without `force`, when later
        writes touched the same things; its errors list them. With several users nothing is undone when one collides.
        """
        run = await self._runs.get(tenant, run_id, with_changes=False)
        self._refuse(run)
        parts = [
            (part_id, owner)
            for part_id, owner in await self._runs.owners_of(tenant, run_id)
            if part_id == run_id or await self._is_undoable(tenant, part_id)
        ]
        if not force and len(parts) > 1:
            await self._refuse_collisions([await self._look(owner, part_id) for part_id, owner in parts])
        done = [await self._undo_part(owner, part_id, force, actor) for part_id, owner in parts]
        whole = done[0]
        if run.parts:
            await self._runs.update(run_id, status=RunStatus.ROLLED_BACK.value, undone_by=whole.rollback_id)
        return Rollback(
            run_id=run_id,
            rollback_id=whole.rollback_id,
            status=RunStatus.ROLLED_BACK,
            restored=sum(each.restored for each in done),
            conflicts=[collision for each in done for collision in each.conflicts],
        )

    def _refuse(self, run: Run) -> None:
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

    async def _look(self, owner: Owner, run_id: str) -> list[Collision]:
        async def work(transaction: Transaction) -> list[Collision]:
            return (await self._planner.plan(transaction, owner, run_id)).collisions

        return await self._graph.read(work)

    async def _refuse_collisions(self, found: Iterable[list[Collision]]) -> None:
        collisions = [each for part in found for each in part]
        if collisions:
            errors = [
                {"loc": [each.kind, each.id], "msg": each.detail, **each.model_dump(exclude={"detail"})}
                for each in collisions
            ]
            told = f"{len(collisions)} things were written to since this run: see the list, or overwrite with force."
            raise Conflict(told, errors=errors)

    async def _undo_part(self, owner: Owner, run_id: str, force: bool, actor: str | None) -> Rollback:
        rollback_id = str(uuid.uuid4())

        async def work(transaction: Transaction) -> Rollback:
            now = await self._facts.lock(transaction, owner)
            plan = await self._planner.plan(transaction, owner, run_id)
            if not force:
                await self._refuse_collisions([plan.collisions])
            await self._runs.create(
                rollback_id,
                owner.tenant,
                owner,
                Trigger.ROLLBACK,
                now,
                actor=actor,
                undoes=run_id,
                transaction=transaction,
            )
            recorder = self._snapshots.recorder(transaction, rollback_id, owner.group_id, now)
            for kind in Kind:
                await recorder.see(kind, list(plan.of(kind)))
            await transaction.run("snapshots.hand_vectors_down", run_id=rollback_id, from_run_id=run_id)
            now = await self._retire_twins(transaction, owner, recorder, plan, now, actor)
            await _apply(transaction, owner.group_id, rollback_id, plan)
            count = await recorder.close()
            await transaction.run("consolidation.unmark", group_id=owner.group_id, run_id=run_id)
            await transaction.run("facts.stamp_user", group_id=owner.group_id, at=now + ONE_TICK)
            await self._mark_done(transaction, owner.tenant, run_id, rollback_id, count, now)
            return Rollback(
                run_id=run_id,
                rollback_id=rollback_id,
                status=RunStatus.ROLLED_BACK,
                restored=count,
                conflicts=plan.collisions,
            )

        return await self._graph.write(work)

    async def _mark_done(
        self, transaction: Transaction, tenant: str, run_id: str, rollback_id: str, count: int, now: datetime
    ) -> None:
        done = {"status": RunStatus.SUCCEEDED.value, "phase": Phase.DONE.value, "finished_at": now}
        await self._runs.update(rollback_id, transaction, **done, change_count=count)
        await self._runs.update(run_id, transaction, status=RunStatus.ROLLED_BACK.value, undone_by=rollback_id)
        # Undoing a rollback brings back what it had undone, and so on down the chain.
        undone, status = await self._runs.undoes(transaction, run_id), RunStatus.SUCCEEDED
        while undone:
            by = run_id if status is RunStatus.ROLLED_BACK else None
            await self._runs.update(undone, transaction, status=status.value, undone_by=by)
            status = RunStatus.ROLLED_BACK if status is RunStatus.SUCCEEDED else RunStatus.SUCCEEDED
            undone = await self._runs.undoes(transaction, undone)

    async def _retire_twins(
        self,
        transaction: Transaction,
        owner: Owner,
        recorder: Recorder,
        plan: Plan,
        now: datetime,
        actor: str | None,
    ) -> datetime:
        if not plan.twins:
            return now
        rows = await transaction.run(
            "facts.touched_by", group_id=owner.group_id, hashes=[], memory_ids=list(plan.twins), pairs=[]
        )
        ledger = Ledger(map(read_fact, rows), now, actor)
        for memory_id, restored in plan.twins.items():
            ledger.retire(memory_id, "a rollback brought the same statement back", restored, Status.SUPERSEDED)
        await recorder.see(Kind.FACT, [*ledger.changed, *ledger.created])
        await Write(owner, transaction, now, ledger).commit()
        return ledger.now


async def _apply(transaction: Transaction, group_id: str, rollback_id: str, plan: Plan) -> None:
    """Make the graph what the plan wants: first what goes, then what comes back, then what changes in place."""
    mentions, facts = plan.of(Kind.MENTION), plan.of(Kind.FACT)
    entities, episodes = plan.of(Kind.ENTITY), plan.of(Kind.EPISODE)
    moved = {key for key, (now, then) in facts.items() if now and then and _ends(now) != _ends(then)}
    gone = [key for key, (now, then) in facts.items() if now and (then is None or key in moved)]
    await _run(transaction, "snapshots.remove_mentions", ids=_going(mentions), group_id=group_id)
    await _run(transaction, "snapshots.remove_facts", ids=gone, group_id=group_id)
    await _run(transaction, "snapshots.remove_entities", ids=_going(entities), group_id=group_id)
    await _run(transaction, "snapshots.restore_entities", rows=_coming(entities), run_id=rollback_id)
    await _run(transaction, "snapshots.set_entities", rows=_changing(entities), group_id=group_id)
    await _run(transaction, "snapshots.set_episodes", rows=_changing(episodes), group_id=group_id)
    # Keys first go, then come: two facts may not hold one even for a moment.
    staying = {key: pair for key, pair in facts.items() if key not in moved}
    released = [{"id": row["id"], "properties": {"active_hash": None}} for row in _changing(staying)]
    await _run(transaction, "snapshots.set_facts", rows=released, group_id=group_id)
    back = _coming(facts) + [_row(key, facts[key][1]) for key in moved]
    await _run(transaction, "snapshots.restore_facts", rows=back, run_id=rollback_id)
    await _run(transaction, "snapshots.set_facts", rows=_changing(staying, keys=True), group_id=group_id)
    await _run(transaction, "snapshots.restore_mentions", rows=_coming(mentions))
    await _run(transaction, "snapshots.set_mentions", rows=_changing(mentions), group_id=group_id)


async def _run(transaction: Transaction, name: str, **parameters: object) -> None:
    if parameters.get("rows") or parameters.get("ids"):
        await transaction.run(name, **parameters)


Pairs = Mapping[str, tuple[Image | None, Image | None]]


def _going(pairs: Pairs) -> list[str]:
    return [key for key, (now, then) in pairs.items() if now is not None and then is None]


def _coming(pairs: Pairs) -> list[dict[str, object]]:
    return [_row(key, then) for key, (now, then) in pairs.items() if now is None and then is not None]


def _row(key: str, image: Image | None) -> dict[str, object]:
    assert image is not None
    return {
        "id": key,
        "properties": image.properties,
        "source": image.source,
        "target": image.target,
        "labels": list(image.labels),
    }


def _changing(pairs: Pairs, *, keys: bool = False) -> list[dict[str, object]]:
    rows: list[dict[str, object]] = []
    for key, (now, then) in pairs.items():
        if now is None or then is None:
            continue
        changes = differences(now.properties, then.properties)
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


def _ends(image: Image) -> tuple[str | None, str | None]:
    return image.source, image.target
