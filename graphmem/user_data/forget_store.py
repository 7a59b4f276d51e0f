"""Erasing all data of one user from the graph: the user is marked first, then erased part by part."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from graphmem.neo4j.driver import Graph, Transaction
from graphmem.neo4j.json_text import to_json
from graphmem.runtime.times import Clock
from graphmem.tenants.owners import Owner

BATCH_SIZE = 1_000
"""Facts and nodes erased in one transaction, whose memory they bound."""

FINAL_CHECKS = 5
"""Checks that nothing is left; a request that is refused may leave its idempotency record for a moment before one."""


@dataclass(frozen=True, slots=True)
class ErasureProgress:
    """What an erasure has erased since its start, counted by kind, and how much is left once it has been counted.

    `has_ended` is true for the process that has ended the erasure; only it knows all that was erased.
    """

    started_at: datetime
    erased: Mapping[str, int] = field(default_factory=dict)
    residue: int = 0
    has_ended: bool = False


class _ResidueFound(Exception):
    """Rolls back the end of an erasure."""

    def __init__(self, progress: ErasureProgress) -> None:
        super().__init__()
        self.progress = progress


class ForgetStore:
    """Erases users from the graph, at most `batch_size` facts and nodes in one transaction."""

    def __init__(self, graph: Graph, clock: Clock, batch_size: int = BATCH_SIZE) -> None:
        self._graph = graph
        self._clock = clock
        self._batch_size = batch_size

    async def begin(self, owner: Owner) -> Erasure:
        """Mark a user as being forgotten: from now on writes are refused and reads find nothing.

        An erasure that has begun and not ended is continued.
        """
        now, user = self._clock(), {"tenant": owner.tenant, "user_id": owner.user_id}

        async def mark(transaction: Transaction) -> str:
            # The end of an erasure locks its mark before the user. To lock the user first would be a deadlock.
            rows = await transaction.run("forget.join", group_id=owner.group_id)
            rows = rows or await transaction.run("forget.begin", group_id=owner.group_id, now=now, **user)
            return str(rows[0]["id"])

        erasure_id = await self._graph.write(mark)
        self._graph.refresh_hidden()
        return Erasure(self._graph, owner, erasure_id, now, self._batch_size)

    async def erase_from_extractions(self, transaction: Transaction, owner: Owner, entity_ids: Sequence[str]) -> None:
        """Erase what extraction recorded of the names of entities."""
        if not entity_ids:
            return
        rows = await transaction.run("forget.find_extractions", group_id=owner.group_id, ids=list(entity_ids))
        for row in rows:
            kept = {name: _without_entities(row[name], set(entity_ids)) for name in ("actions", "links")}
            await transaction.run("forget.set_extraction", group_id=owner.group_id, id=row["id"], **kept)

    async def list_interrupted(self, idle: timedelta) -> list[Owner]:
        """Return the users whose erasure has made no progress for a while."""
        rows = await self._graph.fetch("forget.list_interrupted", idle_seconds=idle.total_seconds())
        return [Owner.from_group_id(row["group_id"]) for row in rows]


class Erasure:
    """One erasure that has begun. Several processes may work on it; they take turns."""

    def __init__(self, graph: Graph, owner: Owner, erasure_id: str, now: datetime, batch_size: int) -> None:
        self._graph = graph
        self._group = {"group_id": owner.group_id}
        self._groups = {"group_id": owner.group_id, "shared_group": owner.tenant_global.group_id}
        self._id = erasure_id
        self._batch_size = batch_size
        self._progress = ErasureProgress(now)

    async def add_erased(self, kind: str, count: int) -> None:
        """Count what was erased elsewhere than in the graph."""

        async def add(transaction: Transaction) -> None:
            if await self._continue(transaction):
                await self._record(transaction, Counter({kind: count}))

        await self._graph.write(add)

    async def erase(self) -> None:
        """Erase facts and nodes until nothing is left but the user's own node."""
        while await self._graph.write(self._erase_batch):
            pass

    async def end(self) -> ErasureProgress:
        """Erase what is left, and in one transaction verify that nothing is and erase the user's own node and the mark.

        Return what the erasure has erased; where something is left, the user stays marked.
        """
        for _ in range(FINAL_CHECKS):
            await self.erase()
            try:
                has_ended = await self._graph.write(self._end)
                self._graph.refresh_hidden()
            except _ResidueFound as found:
                self._progress = found.progress
            else:
                return replace(self._progress, has_ended=has_ended)
        return self._progress

    async def _erase_batch(self, transaction: Transaction) -> int:
        """Erase one part; return how much it was, 0 also when another process has ended the erasure."""
        if not await self._continue(transaction):
            return 0
        rows = await transaction.run("forget.erase_elements", limit=self._batch_size, **self._groups)
        erased = Counter({row["kind"]: row["erased"] for row in rows})
        if erased:
            await self._record(transaction, erased)
        return erased.total()

    async def _record(self, transaction: Transaction, erased: Counter[str]) -> None:
        """Add to what has been erased."""
        total = {**self._progress.erased}
        for kind, count in erased.items():
            total[kind] = total.get(kind, 0) + count
        self._progress = replace(self._progress, erased=total)
        await transaction.run("forget.record_progress", erased=json.dumps(total), **self._group)

    async def _end(self, transaction: Transaction) -> bool:
        if not await self._continue(transaction):
            return False
        await transaction.run("forget.end", **self._group)
        (row,) = await transaction.run("forget.count_residue", **self._groups)
        if row["residue"]:
            raise _ResidueFound(replace(self._progress, residue=row["residue"]))
        return True

    async def _continue(self, transaction: Transaction) -> bool:
        """Lock the erasure and read its progress; return False when another process has ended it."""
        rows = await transaction.run("forget.continue", erasure_id=self._id, **self._group)
        if rows:
            erased = {"User": rows[0]["users"], **json.loads(rows[0]["erased"])}
            self._progress = ErasureProgress(rows[0]["started_at"], erased)
        return bool(rows)


def _without_entities(recorded: str, entity_ids: set[str]) -> str:
    """Return recorded actions, as JSON, without those that name one of the entities."""
    return to_json([action for action in json.loads(recorded) if action.get("entity_id") not in entity_ids])
