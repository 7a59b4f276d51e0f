"""Consolidation runs as nodes one can look at in Neo4j Browser."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import datetime
from typing import Any

from pydantic import TypeAdapter

from graphmem.domain.identity import Owner
from graphmem.domain.job import Receipt
from graphmem.domain.proposals import Change, Judged, Phase, Run, RunStatus, Trigger, Verdict
from graphmem.domain.snapshot import Delta, Image
from graphmem.errors import NotFound
from graphmem.store.driver import Graph, Row, Transaction
from graphmem.store.rows import user_of
from graphmem.store.snapshots import SnapshotStore

_CHANGES = TypeAdapter(list[Change])
SHOWN_CHANGES = 5000
"""How many changes a run is shown with at most."""


class RunStore:
    """Runs of all users, found by id within a tenant."""

    def __init__(self, graph: Graph, snapshots: SnapshotStore) -> None:
        self._graph = graph
        self._snapshots = snapshots

    async def create(
        self,
        run_id: str,
        tenant: str,
        owner: Owner | None,
        trigger: Trigger,
        now: datetime,
        *,
        dry_run: bool = False,
        actor: str | None = None,
        proposals: Sequence[Judged] = (),
        phase: Phase = Phase.NEW,
        part_of: str | None = None,
        undoes: str | None = None,
        status: RunStatus = RunStatus.QUEUED,
        transaction: Transaction | None = None,
    ) -> None:
        """Write a run of a user, or of all users of the tenant (`owner` None)."""
        properties = {
            "id": run_id,
            "tenant": tenant,
            "group_id": owner.group_id if owner else None,
            "status": status.value,
            "phase": phase.value,
            "trigger": trigger.value,
            "dry_run": dry_run,
            "actor": actor,
            "created_at": now,
            "undoes": undoes,
            "proposals": Judged.write_list(proposals),
        }

        async def work(inside: Transaction) -> None:
            await inside.run("consolidation.create_run", properties=properties)
            if part_of:
                await inside.run("consolidation.add_part", run_id=part_of, part_id=run_id)

        await (work(transaction) if transaction else self._graph.write(work))

    async def update(self, run_id: str, transaction: Transaction | None = None, **properties: Any) -> None:
        """Set what has become of a run; `proposals` and `receipt` are given as models."""
        if "proposals" in properties:
            judged: Sequence[Judged] = properties["proposals"]
            properties["proposals"] = Judged.write_list(judged)
            properties["executed"] = sum(each.verdict in (Verdict.EXECUTED, Verdict.PLANNED) for each in judged)
            properties["refused"] = sum(each.verdict in (Verdict.REFUSED, Verdict.STALE) for each in judged)
        if "receipt" in properties:
            properties["receipt"] = properties["receipt"].model_dump_json()

        async def work(inside: Transaction) -> None:
            await inside.run("consolidation.update_run", run_id=run_id, properties=properties)

        await (work(transaction) if transaction else self._graph.write(work))

    async def get(self, tenant: str, run_id: str, *, with_changes: bool = True) -> Run:
        """Return a run with its proposals and changes; those of all users are summed up over its parts."""

        async def work(transaction: Transaction) -> Run:
            row = await self._row(transaction, tenant, run_id)
            run = _whole(row["run"], row["parts"])
            if with_changes:
                left = SHOWN_CHANGES
                for part in [row["run"], *row["parts"]]:
                    if part.get("preview"):
                        run.changes += _CHANGES.validate_json(part["preview"])
                    deltas = await self._snapshots.changes(transaction, part["id"], left)
                    run.changes += [change_of(delta) for delta in deltas]
                    left -= len(deltas)
            return run

        return await self._graph.read(work)

    async def owners_of(self, tenant: str, run_id: str) -> list[tuple[str, Owner]]:
        """Return the runs with changes of their own that a run is made of, with their users."""

        async def work(transaction: Transaction) -> list[tuple[str, Owner]]:
            row = await self._row(transaction, tenant, run_id)
            runs = row["parts"] if row["run"].get("group_id") is None else [row["run"]]
            return [(run["id"], Owner(tenant, user_of(run["group_id"]) or "")) for run in runs]

        return await self._graph.read(work)

    async def page(self, tenant: str, owner: Owner | None, after: tuple[datetime, str] | None, limit: int) -> list[Run]:
        """Return runs without proposals and changes, the newest first, from the one `after` on."""
        rows = await self._graph.fetch(
            "consolidation.runs",
            tenant=tenant,
            group_id=owner.group_id if owner else None,
            before=after[0] if after else None,
            before_id=after[1] if after else None,
            limit=limit,
        )
        return [_whole(row["run"], row["parts"]) for row in rows]

    async def unfinished(self, owner: Owner) -> list[Run]:
        """Return the runs of a user that are still to be finished, the oldest first."""
        rows = await self._graph.fetch("consolidation.unfinished", tenant=owner.tenant, group_id=owner.group_id)
        return [run_of(row["run"]) for row in rows]

    async def set_batches(self, run_id: str, batches: Sequence[dict[str, Any]]) -> None:
        """Keep the batches that discovery found for a run."""
        await self.update(
            run_id,
            batch_ids=json.dumps(batches),
            batches=len(batches),
            candidates=sum(len(batch["memory_ids"]) for batch in batches),
            phase=Phase.DISCOVERED.value,
            status=RunStatus.RUNNING.value,
        )

    async def batches(self, run_id: str, tenant: str) -> list[dict[str, Any]]:
        """Return the batches of memories that discovery found for a run."""
        rows = await self._graph.fetch("consolidation.run", run_id=run_id, tenant=tenant)
        found: list[dict[str, Any]] = json.loads((rows[0]["run"].get("batch_ids") if rows else None) or "[]")
        return found

    async def undoes(self, transaction: Transaction, run_id: str) -> str | None:
        """Return the run that a rollback undid."""
        rows = await transaction.run("consolidation.undoes", run_id=run_id)
        return rows[0]["undoes"] if rows else None

    async def _row(self, transaction: Transaction, tenant: str, run_id: str) -> Row:
        rows = await transaction.run("consolidation.run", run_id=run_id, tenant=tenant)
        if not rows:
            raise NotFound("There is no such run.")
        return rows[0]


def write_changes(deltas: Sequence[Delta]) -> str:
    """Return what a dry run would have changed as JSON."""
    return _CHANGES.dump_json([change_of(delta) for delta in deltas]).decode()


def change_of(delta: Delta) -> Change:
    """Return a change as callers see it."""
    return Change(
        kind=delta.kind.value,
        id=delta.id,
        memory_id=delta.memory_id,
        before=_shown(delta.before),
        after=_shown(delta.after),
    )


def _shown(image: Image | None) -> dict[str, Any] | None:
    if image is None:
        return None
    shown = dict(image.properties)
    if image.source:
        shown |= {"from": image.source, "to": image.target}
    if image.labels:
        shown["labels"] = list(image.labels)
    return shown


def run_of(stored: Row) -> Run:
    """Return a run node's properties as callers see them."""
    same = ("id", "phase", "trigger", "dry_run", "actor", "reason", "created_at", "finished_at", "undoes", "undone_by")
    counts = ("candidates", "batches", "batches_done", "executed", "refused", "change_count")
    return Run(
        **{name: stored[name] for name in same if stored.get(name) is not None},
        **{name: stored.get(name) or 0 for name in counts},
        user_id=user_of(stored["group_id"]) if stored.get("group_id") else None,
        status=RunStatus(stored["status"]),
        receipt=Receipt.model_validate_json(stored.get("receipt") or "{}"),
        proposals=Judged.read_list(stored.get("proposals")),
    )


def _whole(stored: Row, parts: Sequence[Row]) -> Run:
    """Return a run with what its parts have come to."""
    run = run_of(stored)
    if not parts:
        return run
    found = [run_of(part) for part in parts]
    run.parts = [part.id for part in found]
    run.proposals = [judged for part in found for judged in part.proposals]
    for name in ("candidates", "batches", "batches_done", "executed", "refused", "change_count"):
        setattr(run, name, sum(getattr(part, name) for part in found))
    run.receipt = Receipt(**{name: sum(getattr(part.receipt, name) for part in found) for name in Receipt.model_fields})
    if run.status in (RunStatus.SUCCEEDED, RunStatus.ROLLED_BACK):
        run.status = joint_status([part.status for part in found], run.status)
        run.finished_at = max((part.finished_at for part in found if part.finished_at), default=run.finished_at)
        run.reason = "; ".join(dict.fromkeys(part.reason for part in found if part.reason)) or run.reason
    return run


def joint_status(parts: Sequence[RunStatus], own: RunStatus) -> RunStatus:
    """Return the status of a run over all users: what is worst or least far of its parts."""
    for status in (RunStatus.RUNNING, RunStatus.QUEUED, RunStatus.FAILED, RunStatus.ABORTED):
        if status in parts:
            return RunStatus.RUNNING if status is RunStatus.QUEUED else status
    return RunStatus.ROLLED_BACK if set(parts) == {RunStatus.ROLLED_BACK} else own
