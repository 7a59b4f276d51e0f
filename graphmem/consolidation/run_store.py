"""Consolidation runs as nodes: `(:ConsolidationRun)`, with their changes and, for all-user runs, their parts."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from contextlib import suppress
from datetime import datetime
from typing import Any
from zoneinfo import ZoneInfo

from pydantic import BaseModel, ConfigDict, TypeAdapter

from graphmem.consolidation.guards import memory_ids_of
from graphmem.consolidation.models import (
    CONTRADICTION_LIST,
    PROPOSAL_LIST,
    Associate,
    ConsolidationRun,
    MemoryBatch,
    Merge,
    Proposal,
    ProposalVerdict,
    ReportedContradiction,
    ReviewedProposal,
    RunPhase,
    RunStatus,
    RunTrigger,
    UserContradiction,
)
from graphmem.memories import snapshot_store
from graphmem.memories.entity import Entity, entity_from_node
from graphmem.memories.fact import Fact, fact_from_row
from graphmem.memories.saving import FactLoader
from graphmem.memories.snapshot import ElementChange
from graphmem.models.language_model import Receipt
from graphmem.neo4j.driver import Graph, Transaction
from graphmem.neo4j.driver_values import Row
from graphmem.runtime.errors import NotFound
from graphmem.runtime.field_types import content_hash, to_json
from graphmem.runtime.short_ids import MAX_MATCHES
from graphmem.tenants.idempotency import IdempotentRequest, find_result, write_once
from graphmem.tenants.owners import Owner
from graphmem.tenants.users import lock_user

_RUN_ID = TypeAdapter(str)
_CHANGE_LIST = TypeAdapter(list[ElementChange])
_BATCH_LIST = TypeAdapter(list[MemoryBatch])

_SCALARS = ("id", "phase", "trigger", "dry_run", "actor", "reason", "created_at", "finished_at", "undoes", "undone_by",
            "profiled_at")  # fmt: skip
_COUNTS = ("candidates", "batches", "batches_done", "executed", "refused", "profiles", "change_count")

MAX_REPORTING_RUNS = 200
"""Number of latest runs whose contradictions are listed."""

MAX_RETURNED_CHANGES = 5000
"""Maximum changes returned with a run."""


class RunUpdate(BaseModel):
    """The fields of a run to set. A field that is not given keeps its value; None removes it.

    `unprofiled` are the ids of entities for which no profile could be written.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", use_enum_values=True)

    status: RunStatus | None = None
    phase: RunPhase | None = None
    reason: str | None = None
    finished_at: datetime | None = None
    undone_by: str | None = None
    batches: list[MemoryBatch] | None = None
    batches_done: int | None = None
    proposals: list[ReviewedProposal] | None = None
    contradictions: list[ReportedContradiction] | None = None
    receipt: Receipt | None = None
    change_count: int | None = None
    profiles: int | None = None
    profiled_at: datetime | None = None
    unprofiled: list[str] | None = None
    preview: list[ElementChange] | None = None

    def to_properties(self) -> dict[str, Any]:
        """Return the properties of the run's node to set, with counts derived from batches and proposals."""
        lists = {"batches", "proposals", "contradictions", "receipt", "preview"}
        properties = self.model_dump(exclude_unset=True, exclude=lists)
        if self.batches is not None:
            properties["batch_ids"] = _BATCH_LIST.dump_json(self.batches).decode()
            properties["batches"] = len(self.batches)
            properties["candidates"] = sum(len(batch.memory_ids) for batch in self.batches)
        if self.proposals is not None:
            verdicts = [proposal.verdict for proposal in self.proposals]
            properties["proposals"] = PROPOSAL_LIST.dump_json(self.proposals).decode()
            properties["executed"] = sum(
                verdict in (ProposalVerdict.EXECUTED, ProposalVerdict.PLANNED) for verdict in verdicts
            )
            properties["refused"] = sum(
                verdict in (ProposalVerdict.REFUSED, ProposalVerdict.STALE) for verdict in verdicts
            )
        if self.contradictions is not None:
            properties["contradictions"] = CONTRADICTION_LIST.dump_json(self.contradictions).decode()
        if self.receipt is not None:
            properties["receipt"] = self.receipt.model_dump_json()
        if self.preview is not None:
            properties["preview"] = _CHANGE_LIST.dump_json(self.preview).decode()
        return properties


class RunStore:
    """Consolidation runs of all users, found by id within a tenant."""

    def __init__(self, graph: Graph) -> None:
        self._graph = graph

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
        transaction: Transaction | None = None,
        request: IdempotentRequest | None = None,
    ) -> None:
        """Write a queued run of one user, or of all users of the tenant if `owner` is None.

        A repetition of `request` finds the run with `find_started`. Raises NotFound for a user that does not exist, and
        UserBeingForgotten.
        """
        properties = {
            "id": run_id,
            "tenant": tenant,
            "group_id": owner.group_id if owner else None,
            "status": RunStatus.QUEUED.value,
            "phase": phase.value,
            "trigger": trigger.value,
            "dry_run": dry_run,
            "actor": actor,
            "created_at": now,
            "undoes": undoes,
            "proposals": PROPOSAL_LIST.dump_json(list(proposals)).decode(),
        }

        async def work(inside: Transaction) -> None:
            await write_once(inside, request, _RUN_ID, lambda: write(inside))

        async def write(inside: Transaction) -> str:
            if owner is not None:
                await lock_user(inside, owner, now, count=0)
            await inside.run("runs.create", properties=properties)
            if parent_run_id:
                await inside.run("runs.add_child", run_id=parent_run_id, part_id=run_id)
            return run_id

        await (work(transaction) if transaction else self._graph.write(work))

    async def find_started(self, request: IdempotentRequest | None) -> str | None:
        """Return the id of the run written by an earlier attempt of a request."""
        return await find_result(self._graph, request, _RUN_ID)

    async def update(self, run_id: str, update: RunUpdate, transaction: Transaction | None = None) -> None:
        """Set fields of a run, within the caller's transaction if given."""

        async def work(inside: Transaction) -> None:
            await inside.run("runs.update", run_id=run_id, properties=update.to_properties())

        await (work(transaction) if transaction else self._graph.write(work))

    async def find_ids(self, tenant: str, prefix: str) -> list[str]:
        """Return some run ids that begin with `prefix`."""
        rows = await self._graph.fetch("runs.find_ids", tenant=tenant, prefix=prefix, limit=MAX_MATCHES)
        return [row["id"] for row in rows]

    async def get(
        self, tenant: str, run_id: str, *, with_changes: bool = True, transaction: Transaction | None = None
    ) -> ConsolidationRun:
        """Return a run with its proposals and up to `MAX_RETURNED_CHANGES` changes; raise NotFound if unknown.

        A run over all users sums up its parts. It is read within the caller's transaction if given.
        """

        async def work(inside: Transaction) -> ConsolidationRun:
            row = await _fetch_run_row(inside, tenant, run_id)
            changes: list[ElementChange] = []
            for part in [row["run"], *row["parts"]] if with_changes else []:
                changes += _CHANGE_LIST.validate_json(part.get("preview") or "[]")
                limit = max(0, MAX_RETURNED_CHANGES - len(changes))
                changes += await snapshot_store.list_changes(inside, part["id"], limit)
            return _run_with_parts(row).model_copy(update={"changes": changes})

        return await (work(transaction) if transaction else self._graph.read(work))

    async def list_user_runs(self, tenant: str, run_id: str) -> list[tuple[str, Owner]]:
        """Return the one-user runs that a run consists of, each with its user; raise NotFound if unknown."""

        async def work(transaction: Transaction) -> list[tuple[str, Owner]]:
            row = await _fetch_run_row(transaction, tenant, run_id)
            runs = row["parts"] if row["run"].get("group_id") is None else [row["run"]]
            return [(run["id"], Owner.from_group_id(run["group_id"])) for run in runs]

        return await self._graph.read(work)

    async def has_changes(self, run_id: str) -> bool:
        """Return whether changes of a one-user run are stored; they are deleted when they expire."""
        return bool(await self._graph.read(lambda transaction: snapshot_store.list_changes(transaction, run_id, 1)))

    async def list_page(
        self, tenant: str, owner: Owner | None, after: tuple[datetime, str] | None, limit: int
    ) -> list[ConsolidationRun]:
        """Return runs without proposals and changes, newest first, starting after `after` (time and id of a run)."""
        before, before_id = after or (None, None)
        page = {"before": before, "before_id": before_id, "limit": limit}
        if owner:
            rows = await self._graph.fetch("runs.list_page_of_user", group_id=owner.group_id, **page)
        else:
            rows = await self._graph.fetch("runs.list_page", tenant=tenant, **page)
        return list(map(_run_with_parts, rows))

    async def list_contradictions(self, owner: Owner) -> list[UserContradiction]:
        """Return the distinct contradictions reported by a user's runs, the latest first."""
        rows = await self._graph.fetch("runs.list_contradictions", group_id=owner.group_id, limit=MAX_REPORTING_RUNS)
        found: dict[frozenset[str], UserContradiction] = {}
        for row in rows:
            for reported in CONTRADICTION_LIST.validate_json(row["contradictions"] or "[]"):
                contradiction = UserContradiction(
                    **reported.model_dump(), run_id=row["run_id"], reported_at=row["reported_at"]
                )
                found.setdefault(frozenset(reported.memory_ids), contradiction)
        return list(found.values())

    async def list_unfinished(self) -> list[tuple[str, str]]:
        """Return ids and tenants of the queued and running one-user runs, oldest first."""
        return [(row["id"], row["tenant"]) for row in await self._graph.fetch("runs.list_unfinished")]

    async def find_unfinished_nightly(self, owner: Owner) -> str | None:
        """Return the id of the oldest queued or running nightly run of a user, or None."""
        rows = await self._graph.fetch("runs.list_unfinished_nightly", tenant=owner.tenant, group_id=owner.group_id)
        return rows[0]["id"] if rows else None

    async def end_failed(self, tenant: str, run_id: str, reason: str, now: datetime) -> None:
        """End a run whose job has failed. An executed run has succeeded even though its profiles are missing."""
        with suppress(NotFound):
            run = await self.get(tenant, run_id, with_changes=False)
            if run.phase is RunPhase.DONE:
                return
            is_executed = run.phase is RunPhase.EXECUTED
            ended = RunUpdate(
                status=RunStatus.SUCCEEDED if is_executed else RunStatus.FAILED,
                reason=f"its profiles were not written: {reason}" if is_executed else reason,
                finished_at=now,
            )
            if is_executed:
                ended = ended.model_copy(update={"phase": RunPhase.DONE})
            await self.update(run_id, ended)

    async def load_batches(self, run_id: str, tenant: str) -> list[MemoryBatch]:
        """Return the batches of memories that discovery found for a run."""
        rows = await self._graph.fetch("runs.get", run_id=run_id, tenant=tenant)
        return _BATCH_LIST.validate_json((rows[0]["run"].get("batch_ids") if rows else None) or "[]")

    async def get_undone_run_id(self, transaction: Transaction, run_id: str) -> str | None:
        """Return the id of the run that a rollback undid."""
        rows = await transaction.run("runs.get_undone_run_id", run_id=run_id)
        return rows[0]["undoes"] if rows else None

    # Erasure

    async def erase_memory(
        self, transaction: Transaction, owner: Owner, memory_id: str, entity_ids: Sequence[str] = ()
    ) -> int:
        """Erase a memory and entities from the changes, texts and batches of every run.

        Returns the number of changes erased. The run's changes to other memories can still be rolled back.
        """
        erased = await snapshot_store.erase_memory(transaction, owner, memory_id, entity_ids)
        ids = [memory_id, *entity_ids]
        rows = await transaction.run("runs.find_mentioning", group_id=owner.group_id, ids=ids)
        for row in rows:
            proposals = [
                proposal
                for proposal in json.loads(row["proposals"])
                if not any(key in json.dumps(proposal) for key in ids)
            ]
            batches = [
                MemoryBatch(memory_ids=[key for key in batch.memory_ids if key != memory_id], old=batch.old)
                for batch in _BATCH_LIST.validate_json(row["batch_ids"] or "[]")
            ]
            contradictions = [
                contradiction
                for contradiction in CONTRADICTION_LIST.validate_json(row["contradictions"] or "[]")
                if memory_id not in contradiction.memory_ids
            ]
            properties = {
                "proposals": to_json(proposals),
                "contradictions": CONTRADICTION_LIST.dump_json(contradictions).decode(),
                "batch_ids": _BATCH_LIST.dump_json(batches).decode(),
                "unprofiled": [key for key in row["unprofiled"] or () if key not in entity_ids] or None,
                "preview": None,
            }
            await transaction.run("runs.update", run_id=row["id"], properties=properties)
        return erased

    async def delete_expired_changes(self, owner: Owner, before: datetime) -> int:
        """Delete a user's changes recorded before a time and their runs' texts; return the number of changes."""

        async def work(transaction: Transaction) -> int:
            deleted = await snapshot_store.delete_expired(transaction, owner, before)
            await transaction.run("runs.clear_expired_texts", group_id=owner.group_id, before=before)
            return deleted

        return await self._graph.write(work)


async def list_rolled_back_proposals(transaction: Transaction, owner: Owner) -> list[Merge | Associate]:
    """Return the merges and associations of a user's runs that were rolled back."""
    rows = await transaction.run("runs.list_rolled_back_proposals", group_id=owner.group_id)
    proposals = [
        reviewed.proposal for row in rows for reviewed in PROPOSAL_LIST.validate_json(row["proposals"] or "[]")
    ]
    return [proposal for proposal in proposals if isinstance(proposal, Merge | Associate)]


async def _fetch_run_row(transaction: Transaction, tenant: str, run_id: str) -> Row:
    rows = await transaction.run("runs.get", run_id=run_id, tenant=tenant)
    if not rows:
        raise NotFound("There is no such run.")
    return rows[0]


def _run_from_node(node: Row) -> ConsolidationRun:
    owner = Owner.from_group_id(node["group_id"]) if node.get("group_id") else None
    return ConsolidationRun(
        **{name: node[name] for name in (*_SCALARS, *_COUNTS) if node.get(name) is not None},
        user_id=owner.own_user_id if owner else None,
        space=owner.space if owner else None,
        status=RunStatus(node["status"]),
        receipt=Receipt.model_validate_json(node.get("receipt") or "{}"),
        proposals=PROPOSAL_LIST.validate_json(node.get("proposals") or "[]"),
        contradictions=CONTRADICTION_LIST.validate_json(node.get("contradictions") or "[]"),
    )


def _run_with_parts(row: Row) -> ConsolidationRun:
    """Return a run; a run over all users has the counts, costs and status of its parts."""
    run = _run_from_node(row["run"])
    parts = [_run_from_node(part) for part in row["parts"]]
    if not parts:
        return run
    totals: dict[str, Any] = {
        "parts": [part.id for part in parts],
        "proposals": [proposal for part in parts for proposal in part.proposals],
        "contradictions": [reported for part in parts for reported in part.contradictions],
        "receipt": Receipt(
            **{name: sum(getattr(part.receipt, name) for part in parts) for name in Receipt.model_fields}
        ),
        **{name: sum(getattr(part, name) for part in parts) for name in _COUNTS},
    }
    if run.status in (RunStatus.SUCCEEDED, RunStatus.ROLLED_BACK):
        totals |= {
            "status": _aggregate_status([part.status for part in parts], run.status),
            "finished_at": max((part.finished_at for part in parts if part.finished_at), default=run.finished_at),
            "reason": "; ".join(dict.fromkeys(part.reason for part in parts if part.reason)) or run.reason,
        }
    return run.model_copy(update=totals)


def _aggregate_status(parts: Sequence[RunStatus], own: RunStatus) -> RunStatus:
    """Return the status of a run over all users: unfinished, else failed, else aborted, else its own."""
    for status in (RunStatus.RUNNING, RunStatus.QUEUED, RunStatus.FAILED, RunStatus.ABORTED):
        if status in parts:
            return RunStatus.RUNNING if status is RunStatus.QUEUED else status
    return RunStatus.ROLLED_BACK if set(parts) == {RunStatus.ROLLED_BACK} else own


async def fetch_facts(transaction: Transaction, owner: Owner, proposals: Sequence[Proposal]) -> dict[str, Fact]:
    """Return the believed facts that proposals name, and those that already state a merge's statement."""
    return await FactLoader(transaction, owner).fetch(
        hashes=[content_hash(proposal.content) for proposal in proposals if isinstance(proposal, Merge)],
        memory_ids=memory_ids_of(proposals),
    )


async def fetch_entity_nodes(transaction: Transaction, owner: Owner, ids: Iterable[str]) -> dict[str, Row]:
    """Return the nodes of entities by id; ids that do not belong to the user's entities are left out."""
    distinct_ids = list(dict.fromkeys(ids))
    if not distinct_ids:
        return {}
    rows = await transaction.run("consolidation.fetch_entities", group_id=owner.group_id, ids=distinct_ids)
    return {row["entity"]["uuid"]: row["entity"] for row in rows}


async def fetch_entities(transaction: Transaction, owner: Owner, ids: Iterable[str]) -> dict[str, Entity]:
    """Return entities by id; ids that do not belong to the user's entities are left out."""
    nodes = await fetch_entity_nodes(transaction, owner, ids)
    return {key: entity_from_node(node) for key, node in nodes.items()}


async def load_zone(transaction: Transaction, owner: Owner, default: str) -> ZoneInfo:
    """Return a user's time zone, or the default zone if the user has none."""
    rows = await transaction.run("episodes.get_timezone", group_id=owner.group_id)
    return ZoneInfo((rows[0]["timezone"] if rows else None) or default)


async def fetch_facts_of_entity(
    transaction: Transaction, owner: Owner, entity_id: str, *, with_profiles: bool = False
) -> list[Fact]:
    """Return every version of the facts at an entity's edges and those that mention it, and optionally its profiles."""
    rows = await transaction.run(
        "consolidation.fetch_entity_facts", group_id=owner.group_id, entity_id=entity_id, with_profiles=with_profiles
    )
    return [fact_from_row(row) for row in rows]
