"""Counts retrievals in memory and writes them to the graph later: retrieved memories gain strength."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from typing import Any

from graphmem.memories.decay import RetrievalCount, decayed_strength
from graphmem.memories.fact import STRENGTH_DECIMALS
from graphmem.memories.fact_store import FactStore
from graphmem.memories.memory import Memory
from graphmem.runtime.times import Clock, parse_times
from graphmem.tenants.scopes import Reader, scope_of
from graphmem.tenants.write_buffer import FLUSH_SECONDS, WriteBuffer

_STATE_TIME_FIELDS = ("last_accessed_at", "first_created_at")
"""The times of the fragment `retrieval_state`, in its order."""


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
