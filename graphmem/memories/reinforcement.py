"""Counts retrievals in memory and writes them to the graph later: retrieved memories gain strength."""

from __future__ import annotations

from collections.abc import Iterable

from graphmem.memories.decay import RetrievalCount
from graphmem.memories.fact_store import FactStore
from graphmem.memories.memory import Memory
from graphmem.memories.write_buffer import FLUSH_SECONDS, WriteBuffer
from graphmem.runtime.times import Clock
from graphmem.tenants.owners import Owner


class ReinforcementBuffer(WriteBuffer[RetrievalCount]):
    """A buffer of retrievals by memory."""

    def __init__(self, facts: FactStore, clock: Clock, interval_seconds: float = FLUSH_SECONDS) -> None:
        super().__init__(facts.reinforce, RetrievalCount.plus, interval_seconds)
        self._clock = clock

    def record(self, owner: Owner, memories: Iterable[Memory]) -> None:
        """Count one retrieval of each memory; that of a global memory counts for the tenant."""
        now = self._clock()
        for memory in memories:
            self.add(owner if memory.user_id else owner.tenant_global, memory.id, RetrievalCount(1, now))
