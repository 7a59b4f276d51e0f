"""Maintenance of one user: what is seldom asked for matters less, what is over ends, what is old becomes a summary."""

from __future__ import annotations

import uuid
from dataclasses import dataclass
from datetime import datetime, timedelta

from graphmem.domain.decay import IMPORTANCE_PERIOD_DAYS, decayed_importance
from graphmem.domain.fact import Fact
from graphmem.domain.identity import Owner
from graphmem.domain.memory import CORE_IMPORTANCE
from graphmem.domain.times import Clock
from graphmem.domain.versioning import Ledger
from graphmem.errors import Conflict
from graphmem.metrics import COMPRESSION_RATIO
from graphmem.store.driver import Graph, Row, Transaction
from graphmem.store.facts import FactStore
from graphmem.store.snapshots import SnapshotStore

FEEDBACK_REVIEW_DAYS = 7
"""Feedback is put before consolidation again after so many days (QUINN-18)."""

MIN_OLD_MESSAGES = 10
"""A session is compressed when it has more old messages than this (TRUE-24)."""


@dataclass(frozen=True, slots=True)
class OldSession:
    """A session whose messages up to `through` are old; `is_summarized` tells whether a summary stands for them."""

    session_id: str
    through: int
    message_count: int
    is_summarized: bool


class MaintenanceTasks:
    """The tasks of maintenance; each may be done again at once and then finds nothing to do."""

    def __init__(
        self,
        graph: Graph,
        facts: FactStore,
        snapshots: SnapshotStore,
        clock: Clock,
        *,
        archive_days: int,
        compress_days: int,
        rollback_days: int,
        compress_messages: int = MIN_OLD_MESSAGES,
    ) -> None:
        self._graph = graph
        self._facts = facts
        self._snapshots = snapshots
        self._clock = clock
        self._archive_after = timedelta(days=archive_days)
        self._compress_after = timedelta(days=compress_days)
        self._compress_messages = compress_messages
        self._rollback_for = timedelta(days=rollback_days)

    async def owners(self, tenant: str | None, after: str = "", limit: int = 1000) -> list[Owner]:
        """Return users in the order of their groups, of one tenant or of all."""
        rows = await self._graph.fetch("maintenance.list_users", tenant=tenant, after=after, limit=limit)
        return [Owner(row["tenant"], row["user_id"]) for row in rows]

    async def decay(self, owner: Owner) -> int:
        """Lower the importance of what was not asked for in a while; return how many memories it touched."""
        now = self._clock()
        rows = await self._graph.fetch(
            "maintenance.list_decaying_facts",
            group_id=owner.group_id,
            now=now,
            before=now - timedelta(days=IMPORTANCE_PERIOD_DAYS),
            core_importance=CORE_IMPORTANCE,
        )
        decayed = []
        for row in rows:
            periods = (now - row["since"]).days // IMPORTANCE_PERIOD_DAYS
            decayed_at = row["since"] + timedelta(days=IMPORTANCE_PERIOD_DAYS * periods)
            importance = decayed_importance(row["importance"], periods)
            decayed.append({"uuid": row["uuid"], "importance": importance, "decayed_at": decayed_at})
        if decayed:
            await self._write_locked(owner, "maintenance.set_importance", rows=decayed)
        return len(decayed)

    async def expire(self, owner: Owner) -> dict[str, int]:
        """End what was for the moment only and is over, and put feedback up for review (QUINN-18)."""
        now = self._clock()
        rows = await self._graph.fetch("maintenance.list_expired_memories", group_id=owner.group_id, now=now)
        ended = 0
        for row in rows:
            ended += await self._expire_memory(owner, row["memory_id"])
        before = now - timedelta(days=FEEDBACK_REVIEW_DAYS)
        reviewed = await self._graph.execute(
            "maintenance.requeue_feedback", group_id=owner.group_id, now=now, before=before
        )
        return {"expired": ended, "feedback_to_review": int(reviewed[0]["reviewed"])}

    async def prune(self, owner: Owner) -> dict[str, int]:
        """Archive sessions that have been silent for long (TRUE-23)."""
        now = self._clock()
        rows = await self._graph.execute(
            "maintenance.archive_idle_sessions", group_id=owner.group_id, before=now - self._archive_after, now=now
        )
        return {"sessions_archived": int(rows[0]["archived"])}

    async def prune_before_images(self) -> int:
        """Erase the before-images of runs that can no longer be rolled back; return how many."""
        before = self._clock() - self._rollback_for
        return await self._graph.write(lambda transaction: self._snapshots.delete_expired(transaction, before))

    async def old_sessions(self, owner: Owner) -> list[OldSession]:
        """Return the sessions that begin with more than ten old messages, read by every job that was to read them."""
        rows = await self._graph.fetch(
            "maintenance.list_sessions_to_archive",
            group_id=owner.group_id,
            before=self._compression_cutoff(),
            max_messages=self._compress_messages,
        )
        return [
            OldSession(row["session_id"], row["through"], row["old"], row["summarized_through"] >= row["through"])
            for row in rows
        ]

    async def archive(self, owner: Owner, session_id: str, through: int) -> int:
        """Erase the text of old messages that a stored summary stands for; return how many, 0 where none does.

        Newer messages, and those nobody has summed up, stay as they are (TRUE-24).
        """
        rows = await self._write_locked(
            owner,
            "maintenance.archive_messages",
            session_id=session_id,
            through=through,
            before=self._compression_cutoff(),
            archive_id=str(uuid.uuid4()),
            now=self._clock(),
        )
        if not rows or not rows[0]["archived"]:
            return 0
        COMPRESSION_RATIO.set(rows[0]["kept"] / max(1, rows[0]["characters"]))
        return int(rows[0]["archived"])

    async def _expire_memory(self, owner: Owner, memory_id: str) -> bool:
        def act(ledger: Ledger) -> Fact:
            return ledger.delete(memory_id, "expired")

        try:
            await self._facts.update_memory(owner, memory_id, act, actor="maintenance")
        except Conflict:
            return False
        return True

    def _compression_cutoff(self) -> datetime:
        return self._clock() - self._compress_after

    async def _write_locked(self, owner: Owner, query: str, **parameters: object) -> list[Row]:
        async def work(transaction: Transaction) -> list[Row]:
            await self._facts.lock_user(transaction, owner)
            return await transaction.run(query, group_id=owner.group_id, **parameters)

        return await self._graph.write(work)
