"""Which memories went into which answer: contexts are remembered, and ratings of answers credit what they held."""

from __future__ import annotations

from datetime import timedelta

from graphmem.context.context_use import (
    MAX_MEMORIES_OF_USE,
    ContextFeedbackResult,
    ContextUse,
    MemoryUse,
)
from graphmem.context.context_uses import ContextUseStore
from graphmem.context.learned_preferences import FeedbackVerdict, verdict_for_score
from graphmem.context.models import ContextResponse
from graphmem.memories.decay import RetrievalCount
from graphmem.memories.fact_store import FactStore
from graphmem.memories.write_buffer import WriteBuffer
from graphmem.runtime.times import Clock
from graphmem.tenants.owners import Owner


class ContextUsage:
    """Remembers contexts for a number of days; they are written a moment after they were built."""

    def __init__(self, store: ContextUseStore, facts: FactStore, clock: Clock, days: int) -> None:
        self._store = store
        self._facts = facts
        self._clock = clock
        self._lifetime = timedelta(days=days)
        self.buffer: WriteBuffer[ContextUse] = WriteBuffer(store.save, lambda _, latest: latest)

    def record(self, owner: Owner, context: ContextResponse, session_id: str | None) -> None:
        """Remember which memories a context held."""
        if not context.memories:
            return
        now = self._clock()
        use = ContextUse(
            context_id=context.context_id,
            session_id=session_id,
            memory_ids=[memory.id for memory in context.memories[:MAX_MEMORIES_OF_USE]],
            created_at=now,
            expires_at=now + self._lifetime,
        )
        self.buffer.add(owner, use.context_id, use)

    async def rate(self, owner: Owner, context_id: str, score: int) -> ContextFeedbackResult:
        """Store the rating of the answer that a context led to.

        The first positive rating counts as one more retrieval of each memory that the context held. A negative one is
        shown and changes no memory: a bad answer does not make a fact wrong. Raises NotFound for an unknown context.
        """
        await self.buffer.flush()
        verdict = verdict_for_score(score)
        rated = await self._store.rate(owner, context_id, score, credits_memories=verdict is FeedbackVerdict.POSITIVE)
        if rated.credited:
            counts = {memory_id: RetrievalCount(1, rated.at) for memory_id in rated.credited}
            for owned in (owner, owner.tenant_global):
                await self._facts.reinforce(owned, counts)
        return ContextFeedbackResult(context_id=context_id, score=score, verdict=verdict, credited=list(rated.credited))

    async def list_of_memory(self, owner: Owner, memory_id: str, limit: int) -> list[MemoryUse]:
        """Return the contexts that held a memory, the latest first; raise NotFound for an unknown memory."""
        await self.buffer.flush()
        await self._facts.get(owner, memory_id)
        return await self._store.list_of_memory(owner, memory_id, limit)

    async def prune(self, owner: Owner) -> dict[str, int]:
        """Delete expired contexts; return how many."""
        return {"contexts": await self._store.delete_expired(owner)}
