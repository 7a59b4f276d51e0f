"""What is recalled grows stronger: counted in memory, written behind (UMB-08)."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime

import structlog

from graphmem.domain.identity import Owner
from graphmem.domain.memory import Memory
from graphmem.domain.times import Clock
from graphmem.errors import Unavailable
from graphmem.store.driver import Graph, Transaction
from graphmem.store.fact_mapping import to_epoch_pair
from graphmem.store.facts import FactStore

FLUSH_SECONDS = 2.0

_log = structlog.get_logger(__name__)


@dataclass(slots=True)
class _RetrievalCount:
    times: int
    at: datetime


class ReinforcementBuffer:
    """A buffer of retrievals, written every few seconds, when asked for, and at the end."""

    def __init__(self, graph: Graph, facts: FactStore, clock: Clock, interval_seconds: float = FLUSH_SECONDS) -> None:
        self._graph = graph
        self._facts = facts
        self._clock = clock
        self._interval_seconds = interval_seconds
        self._pending: dict[Owner, dict[str, _RetrievalCount]] = defaultdict(dict)
        self._writer: asyncio.Task[None] | None = None
        self._writing = asyncio.Lock()
        self._closing = asyncio.Event()

    def record(self, owner: Owner, memories: Iterable[Memory]) -> None:
        """Count one retrieval of each memory; global ones are the tenant's."""
        now = self._clock()
        for memory in memories:
            owned = owner if memory.user_id else owner.tenant_global
            self._count(owned, memory.id, 1, now)
        if self._pending and (self._writer is None or self._writer.done()):
            self._writer = asyncio.create_task(self._flush_periodically())

    async def flush(self) -> None:
        """Write what has been counted, one short transaction a user; what cannot be written now is kept."""
        async with self._writing:
            waiting, self._pending = self._pending, defaultdict(dict)
            for owner, hits in waiting.items():
                try:
                    await self._write(owner, hits)
                except Unavailable as error:
                    _log.warning("retrievals are not counted yet", reason=error.detail, memories=len(hits))
                    for memory_id, hit in hits.items():
                        self._count(owner, memory_id, hit.times, hit.at)

    async def close(self) -> None:
        """Stop the timer and write what is left."""
        self._closing.set()
        if self._writer:
            await asyncio.gather(self._writer, return_exceptions=True)
        await self.flush()

    def _count(self, owner: Owner, memory_id: str, times: int, at: datetime) -> None:
        hit = self._pending[owner].setdefault(memory_id, _RetrievalCount(0, at))
        hit.times += times
        hit.at = max(hit.at, at)

    async def _flush_periodically(self) -> None:
        while self._pending and not self._closing.is_set():
            with suppress(TimeoutError):
                async with asyncio.timeout(self._interval_seconds):
                    await self._closing.wait()
            await self.flush()

    async def _write(self, owner: Owner, hits: dict[str, _RetrievalCount]) -> None:
        rows = [
            {"memory_id": key, "times": hit.times, "at": to_epoch_pair(hit.at)} for key, hit in sorted(hits.items())
        ]

        async def work(transaction: Transaction) -> None:
            await self._facts.lock_user(transaction, owner, count=0)
            await transaction.run("facts.reinforce", group_ids=[owner.group_id], hits=rows)

        await self._graph.write(work)
