"""Consolidation runs as nodes one can look at in Neo4j Browser."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import datetime
from typing import Any

from pydantic import TypeAdapter

from graphmem.domain.consolidation_models import (
    ConsolidationRun,
    GraphChange,
    ProposalVerdict,
    ReviewedProposal,
    RunPhase,
    RunStatus,
    RunTrigger,
)
from graphmem.domain.identity import Owner
from graphmem.domain.job import Receipt
from graphmem.domain.snapshot import ElementChange, ElementImage
from graphmem.errors import NotFound
from graphmem.store.driver import Graph, Row, Transaction
from graphmem.store.snapshots import SnapshotStore

_CHANGE_LIST = TypeAdapter(list[GraphChange])
MAX_RETURNED_CHANGES = 5000
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
        trigger: RunTrigger,
        now: datetime,
        *,
        dry_run: bool = False,
        actor: str | None = None,
        proposals: Sequence[ReviewedProposal] = (),
        phase: RunPhase = RunPhase.NEW,
        parent_run_id: str | None = None,
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
            "proposals": ReviewedProposal.list_to_json(proposals),
        }

        async def work(inside: Transaction) -> None:
            await inside.run("consolidation.create_run", properties=properties)
            if parent_run_id:
                await inside.run("consolidation.add_child_run", run_id=parent_run_id, part_id=run_id)

        await (work(transaction) if transaction else self._graph.write(work))

    async def update(self, run_id: str, transaction: Transaction | None = None, **properties: Any) -> None:
        """Set what has become of a run; `proposals` and `receipt` are given as models."""
        if "proposals" in properties:
            judged: Sequence[ReviewedProposal] = properties["proposals"]
            properties["proposals"] = ReviewedProposal.list_to_json(judged)
            properties["executed"] = sum(
                each.verdict in (ProposalVerdict.EXECUTED, ProposalVerdict.PLANNED) for each in judged
            )
            properties["refused"] = sum(
                each.verdict in (ProposalVerdict.REFUSED, ProposalVerdict.STALE) for each in judged
            )
        if "receipt" in properties:
            properties["receipt"] = properties["receipt"].model_dump_json()

        async def work(inside: Transaction) -> None:
            await inside.run("consolidation.update_run", run_id=run_id, properties=properties)

        await (work(transaction) if transaction else self._graph.write(work))

    async def get(self, tenant: str, run_id: str, *, with_changes: bool = True) -> ConsolidationRun:
        """Return a run with its proposals and changes; those of all users are summed up over its parts."""

        async def work(transaction: Transaction) -> ConsolidationRun:
            row = await self._fetch_run_row(transaction, tenant, run_id)
            run = _run_with_children(row["run"], row["parts"])
            if with_changes:
                left = MAX_RETURNED_CHANGES
                for part in [row["run"], *row["parts"]]:
                    if part.get("preview"):
                        run.changes += _CHANGE_LIST.validate_json(part["preview"])
                    deltas = await self._snapshots.list_changes(transaction, part["id"], left)
                    run.changes += [graph_change_from(delta) for delta in deltas]
                    left -= len(deltas)
            return run

        return await self._graph.read(work)

    async def list_user_runs(self, tenant: str, run_id: str) -> list[tuple[str, Owner]]:
        """Return the runs with changes of their own that a run is made of, with their users."""

        async def work(transaction: Transaction) -> list[tuple[str, Owner]]:
            row = await self._fetch_run_row(transaction, tenant, run_id)
            runs = row["parts"] if row["run"].get("group_id") is None else [row["run"]]
            return [(run["id"], Owner.from_group_id(run["group_id"])) for run in runs]

        return await self._graph.read(work)

    async def list_page(
        self, tenant: str, owner: Owner | None, after: tuple[datetime, str] | None, limit: int
    ) -> list[ConsolidationRun]:
        """Return runs without proposals and changes, the newest first, from the one `after` on."""
        rows = await self._graph.fetch(
            "consolidation.list_runs",
            tenant=tenant,
            group_id=owner.group_id if owner else None,
            before=after[0] if after else None,
            before_id=after[1] if after else None,
            limit=limit,
        )
        return [_run_with_children(row["run"], row["parts"]) for row in rows]

    async def list_unfinished(self, owner: Owner) -> list[ConsolidationRun]:
        """Return the runs of a user that are still to be finished, the oldest first."""
        rows = await self._graph.fetch(
            "consolidation.list_unfinished_runs", tenant=owner.tenant, group_id=owner.group_id
        )
        return [run_from_node(row["run"]) for row in rows]

    async def save_batches(self, run_id: str, batches: Sequence[dict[str, Any]]) -> None:
        """Keep the batches that discovery found for a run."""
        await self.update(
            run_id,
            batch_ids=json.dumps(batches),
            batches=len(batches),
            candidates=sum(len(batch["memory_ids"]) for batch in batches),
            phase=RunPhase.DISCOVERED.value,
            status=RunStatus.RUNNING.value,
        )

    async def load_batches(self, run_id: str, tenant: str) -> list[dict[str, Any]]:
        """Return the batches of memories that discovery found for a run."""
        rows = await self._graph.fetch("consolidation.get_run", run_id=run_id, tenant=tenant)
        found: list[dict[str, Any]] = json.loads((rows[0]["run"].get("batch_ids") if rows else None) or "[]")
        return found

    async def get_undone_run_id(self, transaction: Transaction, run_id: str) -> str | None:
        """Return the run that a rollback undid."""
        rows = await transaction.run("consolidation.get_undone_run_id", run_id=run_id)
        return rows[0]["undoes"] if rows else None

    async def _fetch_run_row(self, transaction: Transaction, tenant: str, run_id: str) -> Row:
        rows = await transaction.run("consolidation.get_run", run_id=run_id, tenant=tenant)
        if not rows:
            raise NotFound("There is no such run.")
        return rows[0]


def changes_to_json(deltas: Sequence[ElementChange]) -> str:
    """Return what a dry run would have changed as JSON."""
    return _CHANGE_LIST.dump_json([graph_change_from(delta) for delta in deltas]).decode()


def graph_change_from(delta: ElementChange) -> GraphChange:
    """Return a change as callers see it."""
    return GraphChange(
        kind=delta.kind.value,
        id=delta.id,
        memory_id=delta.memory_id,
        before=_image_to_dict(delta.before),
        after=_image_to_dict(delta.after),
    )


def _image_to_dict(image: ElementImage | None) -> dict[str, Any] | None:
    if image is None:
        return None
    shown = dict(image.properties)
    if image.source:
        shown |= {"from": image.source, "to": image.target}
    if image.labels:
        shown["labels"] = list(image.labels)
    return shown


def run_from_node(stored: Row) -> ConsolidationRun:
    """Return a run node's properties as callers see them."""
    same = ("id", "phase", "trigger", "dry_run", "actor", "reason", "created_at", "finished_at", "undoes", "undone_by")
    counts = ("candidates", "batches", "batches_done", "executed", "refused", "change_count")
    return ConsolidationRun(
        **{name: stored[name] for name in same if stored.get(name) is not None},
        **{name: stored.get(name) or 0 for name in counts},
        user_id=(Owner.from_group_id(stored["group_id"]).user_id or None) if stored.get("group_id") else None,
        status=RunStatus(stored["status"]),
        receipt=Receipt.model_validate_json(stored.get("receipt") or "{}"),
        proposals=ReviewedProposal.list_from_json(stored.get("proposals")),
    )


def _run_with_children(stored: Row, parts: Sequence[Row]) -> ConsolidationRun:
    """Return a run with what its parts have come to."""
    run = run_from_node(stored)
    if not parts:
        return run
    found = [run_from_node(part) for part in parts]
    run.parts = [part.id for part in found]
    run.proposals = [judged for part in found for judged in part.proposals]
    for name in ("candidates", "batches", "batches_done", "executed", "refused", "change_count"):
        setattr(run, name, sum(getattr(part, name) for part in found))
    run.receipt = Receipt(**{name: sum(getattr(part.receipt, name) for part in found) for name in Receipt.model_fields})
    if run.status in (RunStatus.SUCCEEDED, RunStatus.ROLLED_BACK):
        run.status = aggregate_status([part.status for part in found], run.status)
        run.finished_at = max((part.finished_at for part in found if part.finished_at), default=run.finished_at)
        run.reason = "; ".join(dict.fromkeys(part.reason for part in found if part.reason)) or run.reason
    return run


def aggregate_status(parts: Sequence[RunStatus], own: RunStatus) -> RunStatus:
    """Return the status of a run over all users: what is worst or least far of its parts."""
    for status in (RunStatus.RUNNING, RunStatus.QUEUED, RunStatus.FAILED, RunStatus.ABORTED):
        if status in parts:
            return RunStatus.RUNNING if status is RunStatus.QUEUED else status
    return RunStatus.ROLLED_BACK if set(parts) == {RunStatus.ROLLED_BACK} else own
