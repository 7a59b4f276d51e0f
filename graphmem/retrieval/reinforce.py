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
from graphmem.store.facts import FactStore
from graphmem.store.rows import seconds_of

FLUSH_SECONDS = 2.0

_log = structlog.get_logger(__name__)


@dataclass(slots=True)
class _Hit:
    times: int
    at: datetime


class Reinforcement:
    """A buffer of retrievals, written every few seconds, when asked for, and at the end."""

    def __init__(self, graph: Graph, facts: FactStore, clock: Clock, every: float = FLUSH_SECONDS) -> None:
        self._graph = graph
        self._facts = facts
        self._clock = clock
        self._every = every
        self._hits: dict[Owner, dict[str, _Hit]] = defaultdict(dict)
        self._writer: asyncio.Task[None] | None = None
        self._writing = asyncio.Lock()
        self._closing = asyncio.Event()

    def note(self, owner: Owner, memories: Iterable[Memory]) -> None:
        """Count one retrieval of each memory; global ones are the tenant's."""
        now = self._clock()
        for memory in memories:
            owned = owner if memory.user_id else owner.everyone
            self._add(owned, memory.id, 1, now)
        if self._hits and (self._writer is None or self._writer.done()):
            self._writer = asyncio.create_task(self._write_behind())

    async def flush(self) -> None:
        """Write what has been counted, one short transaction a user; what cannot be written now is kept."""
        async with self._writing:
            waiting, self._hits = self._hits, defaultdict(dict)
            for owner, hits in waiting.items():
                try:
                    await self._write(owner, hits)
                except Unavailable as error:
                    _log.warning("retrievals are not counted yet", reason=error.detail, memories=len(hits))
                    for memory_id, hit in hits.items():
                        self._add(owner, memory_id, hit.times, hit.at)

    async def close(self) -> None:
        """Stop the timer and write what is left."""
        self._closing.set()
        if self._writer:
            await asyncio.gather(self._writer, return_exceptions=True)
        await self.flush()

    def _add(self, owner: Owner, memory_id: str, times: int, at: datetime) -> None:
        hit = self._hits[owner].setdefault(memory_id, _Hit(0, at))
        hit.times += times
        hit.at = max(hit.at, at)

    async def _write_behind(self) -> None:
        while self._hits and not self._closing.is_set():
            with suppress(TimeoutError):
                async with asyncio.timeout(self._every):
                    await self._closing.wait()
            await self.flush()

    async def _write(self, owner: Owner, hits: dict[str, _Hit]) -> None:
        rows = [{"memory_id": key, "times": hit.times, "at": seconds_of(hit.at)} for key, hit in sorted(hits.items())]

        async def work(transaction: Transaction) -> None:
            await self._facts.lock(transaction, owner, count=0)
            await transaction.run("facts.reinforce", group_ids=[owner.group_id], hits=rows)

        await self._graph.write(work)
