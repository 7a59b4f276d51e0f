"""Maintenance tasks: decay of importance, expiry, archiving of sessions and messages, pruning of images."""

from __future__ import annotations

import uuid
from dataclasses import dataclass
from datetime import datetime, timedelta

from graphmem.consolidation.run_store import RunStore
from graphmem.memories.decay import IMPORTANCE_PERIOD_DAYS, decayed_importance
from graphmem.memories.fact import Fact
from graphmem.memories.fact_store import FactStore
from graphmem.memories.memory import CORE_IMPORTANCE
from graphmem.memories.versioning import Ledger
from graphmem.neo4j.driver import Graph, Row, Transaction
from graphmem.runtime.errors import Conflict, NotFound, UserBeingForgotten
from graphmem.runtime.metrics import COMPRESSION_RATIO
from graphmem.runtime.times import Clock
from graphmem.tenants.owners import Owner

FEEDBACK_REVIEW_DAYS = 7
"""Days after which consolidation considers feedback again."""

MIN_OLD_MESSAGES = 10
"""A session is compressed when it has more old messages than this; the default of a setting."""


@dataclass(frozen=True, slots=True)
class OldSession:
    """A session whose messages up to the position `through` are old; `is_summarized` if its summary covers them."""

    session_id: str
    through: int
    message_count: int
    is_summarized: bool


class MaintenanceTasks:
    """The tasks of maintenance; each is idempotent."""

    def __init__(
        self,
        graph: Graph,
        facts: FactStore,
        runs: RunStore,
        clock: Clock,
        *,
        archive_days: int,
        compress_days: int,
        rollback_days: int,
        compress_messages: int = MIN_OLD_MESSAGES,
    ) -> None:
        self._graph = graph
        self._facts = facts
        self._runs = runs
        self._clock = clock
        self._archive_after = timedelta(days=archive_days)
        self._compress_after = timedelta(days=compress_days)
        self._compress_messages = compress_messages
        self._rollback_for = timedelta(days=rollback_days)

    async def decay(self, owner: Owner) -> int:
        """Lower the importance of memories that nobody has read for 30 days; return the number of them."""
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
        """Archive memories whose time is over, and offer old feedback to the next consolidation."""
        now = self._clock()
        rows = await self._graph.fetch("maintenance.list_expired_memories", group_id=owner.group_id, now=now)
        expired = sum([await self._expire_memory(owner, row["memory_id"]) for row in rows])
        before = now - timedelta(days=FEEDBACK_REVIEW_DAYS)
        reviewed = await self._graph.execute(
            "maintenance.requeue_feedback", group_id=owner.group_id, now=now, before=before
        )
        return {"expired": expired, "feedback_to_review": int(reviewed[0]["reviewed"])}

    async def prune(self, owner: Owner) -> dict[str, int]:
        """Archive idle sessions, and delete the recorded changes of runs that can no longer be rolled back."""
        now = self._clock()
        rows = await self._graph.execute(
            "maintenance.archive_idle_sessions", group_id=owner.group_id, before=now - self._archive_after, now=now
        )
        images = await self._runs.delete_expired_changes(owner, now - self._rollback_for)
        return {"sessions_archived": int(rows[0]["archived"]), "images": images}

    async def list_old_sessions(self, owner: Owner) -> list[OldSession]:
        """Return the sessions that begin with many old messages, all of them extracted."""
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
        """Erase the text of the old messages up to `through` that a summary covers; return the number of them.

        Without such a summary, nothing is erased.
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
            return ledger.archive(memory_id, "expired")

        try:
            await self._facts.update_memory(owner, memory_id, act, actor="maintenance")
        except (NotFound, Conflict):
            return False
        return True

    def _compression_cutoff(self) -> datetime:
        return self._clock() - self._compress_after

    async def _write_locked(self, owner: Owner, query: str, **parameters: object) -> list[Row]:
        """Run a query under the user's lock; for a user who was forgotten meanwhile, do nothing and return no rows."""

        async def work(transaction: Transaction) -> list[Row]:
            await self._facts.lock_user(transaction, owner)
            return await transaction.run(query, group_id=owner.group_id, **parameters)

        try:
            return await self._graph.write(work)
        except (NotFound, UserBeingForgotten):
            return []
