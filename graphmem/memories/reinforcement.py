"""Counts retrievals in memory and writes them to the graph later: retrieved memories gain strength."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Awaitable, Callable, Iterable, Sequence
from contextlib import suppress
from contextvars import Context
from datetime import datetime, timedelta
from typing import Any, Generic, TypeVar

import structlog

from graphmem.memories.decay import RetrievalCount, decayed_strength
from graphmem.memories.fact_mapping import STRENGTH_DECIMALS
from graphmem.memories.fact_store import FactStore
from graphmem.memories.memory import Memory
from graphmem.neo4j.work import working_for
from graphmem.runtime.errors import Unavailable
from graphmem.runtime.times import Clock, parse_times
from graphmem.tenants.owners import Owner
from graphmem.tenants.scopes import Reader, scope_of

FLUSH_SECONDS = 2.0
"""Seconds between two writes of a buffer."""

_STATE_TIME_FIELDS = ("last_accessed_at", "first_created_at")
"""The times of the fragment `retrieval_state`, in its order."""

V = TypeVar("V")

_log = structlog.get_logger(__name__)


class WriteBuffer(Generic[V]):
    """Values by user and key, written every `interval_seconds` seconds, by `flush` and by `close`.

    `write` writes the values of one user; `merge` joins a value with an earlier one of the same key.
    """

    def __init__(
        self,
        write: Callable[[Owner, dict[str, V]], Awaitable[None]],
        merge: Callable[[V, V], V],
        interval_seconds: float = FLUSH_SECONDS,
    ) -> None:
        self._write = write
        self._merge = merge
        self._interval_seconds = interval_seconds
        self._pending: dict[Owner, dict[str, V]] = defaultdict(dict)
        self._writer: asyncio.Task[None] | None = None
        self._writing = asyncio.Lock()
        self._closing = asyncio.Event()

    def add(self, owner: Owner, key: str, value: V) -> None:
        """Add a value of a user."""
        self._collect(owner, key, value)
        if self._writer is None or self._writer.done():
            # Not in the context of a request, whose limits end with it.
            self._writer = asyncio.create_task(self._flush_periodically(), context=Context())

    async def flush(self) -> None:
        """Write the collected values, those of one user at a time; keep those that cannot be written."""
        async with self._writing:
            pending, self._pending = self._pending, defaultdict(dict)
            for owner, values in pending.items():
                try:
                    with working_for(owner.tenant):
                        await self._write(owner, values)
                except Unavailable as error:
                    _log.warning("buffered values are not written yet", reason=error.detail, values=len(values))
                    for key, value in values.items():
                        self._collect(owner, key, value)

    async def discard_user(self, owner: Owner) -> None:
        """Drop what has been collected for a user, after a write that is under way."""
        async with self._writing:
            self._pending.pop(owner, None)

    async def count_user(self, owner: Owner) -> int:
        """Return how many values of a user have been collected."""
        return len(self._pending.get(owner, ()))

    async def close(self) -> None:
        """Stop the timer and write the remaining values."""
        self._closing.set()
        if self._writer:
            await asyncio.gather(self._writer, return_exceptions=True)
        await self.flush()

    def _collect(self, owner: Owner, key: str, value: V) -> None:
        pending = self._pending[owner]
        pending[key] = self._merge(pending[key], value) if key in pending else value

    async def _flush_periodically(self) -> None:
        while self._pending and not self._closing.is_set():
            with suppress(TimeoutError):
                async with asyncio.timeout(self._interval_seconds):
                    await self._closing.wait()
            await self.flush()


class ReinforcementBuffer(WriteBuffer[RetrievalCount]):
    """A buffer of retrievals by memory."""

    def __init__(self, facts: FactStore, clock: Clock, interval_seconds: float = FLUSH_SECONDS) -> None:
        super().__init__(facts.reinforce, RetrievalCount.plus, interval_seconds)
        self._clock = clock

    def record(self, reader: Reader, memories: Iterable[Memory]) -> None:
        """Count one retrieval of each memory, but of those in spaces that the reader may not write."""
        scope, now = scope_of(reader), self._clock()
        for memory in memories:
            owner = memory.owner_for(scope.owner)
            if scope.may_write(owner):
                self.add(owner, memory.id, RetrievalCount(1, now))


def with_retrieval_states(
    memories: Iterable[Memory], states: Iterable[Sequence[Any]], now: datetime
) -> dict[str, Memory]:
    """Return memories, by id, with the values of the fragment `retrieval_state` that are of the same version."""
    known = {memory.id: memory for memory in memories}
    for memory_id, version, *state in states:
        if known[memory_id].version == version:
            known[memory_id] = known[memory_id].model_copy(update=_to_update(state, now))
    return known


def _to_update(state: Sequence[Any], now: datetime) -> dict[str, Any]:
    """Return what retrievals have changed of a memory, as callers see it at `now`.

    `state` has the strength, the decay rate, the confidence, the access count and the times of its version.
    """
    strength, decay_rate, confidence, access_count, epochs = state
    last_accessed_at, first_created_at = parse_times(_STATE_TIME_FIELDS, epochs).values()
    since = last_accessed_at or first_created_at
    assert since is not None, "every version has the time of the first one"
    return {
        "strength": round(decayed_strength(strength, decay_rate, (now - since) / timedelta(days=1)), STRENGTH_DECIMALS),
        "confidence": confidence,
        "access_count": access_count,
        "last_accessed_at": last_accessed_at,
    }
