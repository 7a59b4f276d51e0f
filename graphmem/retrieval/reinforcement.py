"""Counts retrievals in memory and writes them to the graph later: retrieved memories gain strength."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Iterable
from contextlib import suppress
from contextvars import Context

import structlog

from graphmem.domain.decay import RetrievalCount
from graphmem.domain.identity import Owner
from graphmem.domain.memory import Memory
from graphmem.domain.times import Clock
from graphmem.errors import Unavailable
from graphmem.store.facts import FactStore

FLUSH_SECONDS = 2.0
"""Seconds between two writes of counted retrievals."""

_log = structlog.get_logger(__name__)


class ReinforcementBuffer:
    """A buffer of retrievals, written every `interval_seconds` seconds, by `flush` and by `close`."""

    def __init__(self, facts: FactStore, clock: Clock, interval_seconds: float = FLUSH_SECONDS) -> None:
        self._facts = facts
        self._clock = clock
        self._interval_seconds = interval_seconds
        self._pending: dict[Owner, dict[str, RetrievalCount]] = defaultdict(dict)
        self._writer: asyncio.Task[None] | None = None
        self._writing = asyncio.Lock()
        self._closing = asyncio.Event()

    def record(self, owner: Owner, memories: Iterable[Memory]) -> None:
        """Count one retrieval of each memory; that of a global memory counts for the tenant."""
        now = self._clock()
        for memory in memories:
            owned = owner if memory.user_id else owner.tenant_global
            self._count(owned, memory.id, RetrievalCount(1, now))
        if self._pending and (self._writer is None or self._writer.done()):
            # Not in the context of a request, whose limits end with it.
            self._writer = asyncio.create_task(self._flush_periodically(), context=Context())

    async def flush(self) -> None:
        """Write the counted retrievals, one transaction for each user; keep those that cannot be written."""
        async with self._writing:
            pending, self._pending = self._pending, defaultdict(dict)
            for owner, counts in pending.items():
                try:
                    await self._facts.reinforce(owner, counts)
                except Unavailable as error:
                    _log.warning("retrievals are not written yet", reason=error.detail, memories=len(counts))
                    for memory_id, count in counts.items():
                        self._count(owner, memory_id, count)

    async def discard_user(self, owner: Owner) -> None:
        """Drop what has been counted for a user, after a write that is under way."""
        async with self._writing:
            self._pending.pop(owner, None)

    async def count_user(self, owner: Owner) -> int:
        """Return of how many memories of a user retrievals have been counted."""
        return len(self._pending.get(owner, ()))

    async def close(self) -> None:
        """Stop the timer and write the remaining retrievals."""
        self._closing.set()
        if self._writer:
            await asyncio.gather(self._writer, return_exceptions=True)
        await self.flush()

    def _count(self, owner: Owner, memory_id: str, count: RetrievalCount) -> None:
        pending = self._pending[owner]
        pending[memory_id] = pending[memory_id].plus(count) if memory_id in pending else count

    async def _flush_periodically(self) -> None:
        while self._pending and not self._closing.is_set():
            with suppress(TimeoutError):
                async with asyncio.timeout(self._interval_seconds):
                    await self._closing.wait()
            await self.flush()
