"""The memories behind each answer: contexts are recorded, and ratings of answers credit their memories."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from datetime import timedelta
from itertools import chain

from graphmem.context.models import (
    MAX_MEMORIES_OF_USE,
    MAX_USES,
    ContextFeedbackResult,
    ContextUse,
    FeedbackVerdict,
    MemoryUse,
    RatedContext,
    verdict_for_score,
)
from graphmem.memories.fact import RetrievalCount
from graphmem.memories.fact_store import FactStore
from graphmem.memories.memory import Memory
from graphmem.neo4j.driver import Graph, Transaction
from graphmem.runtime.errors import NotFound, UserBeingForgotten
from graphmem.runtime.times import Clock
from graphmem.tenants.owners import Owner
from graphmem.tenants.spaces import Reader, scope_of
from graphmem.tenants.tenant_settings import find_trust_order
from graphmem.tenants.trust import Effect, StatedKind
from graphmem.tenants.users import WriteBuffer, lock_user


class ContextUseStore:
    """The contexts of all users, each until it expires, at most `MAX_USES` per user."""

    def __init__(self, graph: Graph, clock: Clock) -> None:
        self._graph = graph
        self._clock = clock

    async def save(self, owner: Owner, uses: Mapping[str, ContextUse]) -> None:
        """Store contexts; those of a user who has been forgotten in the meantime are dropped."""
        rows = [
            {
                "uuid": use.context_id,
                "session_id": use.session_id,
                "memory_ids": list(use.memory_ids),
                "created_at": use.created_at,
                "expires_at": use.expires_at,
            }
            for use in uses.values()
        ]

        async def work(transaction: Transaction) -> None:
            await lock_user(transaction, owner, self._clock(), count=0)
            await transaction.run(
                "context_uses.save",
                group_id=owner.group_id,
                group_ids=[*scope_of(owner).group_ids, *_groups_of_spaces(owner, uses.values())],
                rows=rows,
                max_uses=MAX_USES,
            )

        with suppress(NotFound, UserBeingForgotten):
            await self._graph.write(work)

    async def rate(
        self, owner: Owner, context_id: str, score: int, kind: StatedKind | None, *, credits_memories: bool
    ) -> RatedContext:
        """Store the rating of a context, and return the memories it credits: only the first crediting rating does.

        Raises NotFound for a context that is unknown or has expired, and Forbidden if a more trusted source has rated
        it.
        """
        context = {"group_id": owner.group_id, "context_id": context_id}

        async def work(transaction: Transaction) -> RatedContext:
            now = await lock_user(transaction, owner, self._clock(), count=0)
            rows = await transaction.run("context_uses.find", now=now, **context)
            if not rows:
                raise NotFound("There is no such context: it is unknown or has expired.")
            if rows[0]["score"] is not None:
                order = await find_trust_order(transaction, owner.tenant, {kind, rows[0]["rating_source_kind"]})
                order.require(Effect.END, kind, rows[0]["rating_source_kind"], "The rating of this context")
            was_credited = bool(rows[0]["credited"])
            credited = was_credited or credits_memories
            rated = {"score": score, "credited": credited, "rating_source_kind": kind or "user"}
            await transaction.run("context_uses.rate", now=now, **rated, **context)
            return RatedContext(rows[0]["memory_ids"] if credits_memories and not was_credited else [], now)

        return await self._graph.write(work)

    async def list_of_memory(self, owner: Owner, memory_id: str, limit: int) -> list[MemoryUse]:
        """Return the contexts that held a memory, the latest first."""
        rows = await self._graph.fetch(
            "context_uses.list_of_memory",
            group_id=owner.group_id,
            memory_id=memory_id,
            now=self._clock(),
            limit=limit,
        )
        return [
            MemoryUse(
                context_id=use["uuid"],
                session_id=use["session_id"],
                at=use["created_at"],
                score=use["score"],
                verdict=None if use["score"] is None else verdict_for_score(use["score"]),
                rated_at=use["rated_at"],
            )
            for use in (row["use"] for row in rows)
        ]

    async def delete_expired(self, owner: Owner) -> int:
        """Delete a user's expired contexts; return their number."""
        rows = await self._graph.execute("context_uses.delete_expired", group_id=owner.group_id, now=self._clock())
        return int(rows[0]["deleted"])

    async def erase_memory(self, transaction: Transaction, owner: Owner, memory_id: str) -> None:
        """Remove a memory from the contexts of a user."""
        await transaction.run("context_uses.erase_memory", group_id=owner.group_id, memory_id=memory_id)


def _groups_of_spaces(owner: Owner, uses: Iterable[ContextUse]) -> list[str]:
    """Return the group ids of the spaces whose memories some contexts held."""
    return [Owner.of_space(owner.tenant, space).group_id for space in sorted({*chain(*(use.spaces for use in uses))})]


class ContextUsage:
    """Remembers contexts for a number of days; they are written shortly after they were built."""

    def __init__(self, store: ContextUseStore, facts: FactStore, clock: Clock, days: int) -> None:
        self._store = store
        self._facts = facts
        self._clock = clock
        self._lifetime = timedelta(days=days)
        self.buffer: WriteBuffer[ContextUse] = WriteBuffer(store.save, lambda _, latest: latest)

    def record(self, owner: Owner, context_id: str, memories: Sequence[Memory], session_id: str | None) -> None:
        """Remember which memories a context held."""
        if not memories:
            return
        now = self._clock()
        use = ContextUse(
            context_id=context_id,
            session_id=session_id,
            memory_ids=[memory.id for memory in memories[:MAX_MEMORIES_OF_USE]],
            created_at=now,
            expires_at=now + self._lifetime,
            spaces=frozenset(memory.space for memory in memories if memory.space is not None),
        )
        self.buffer.add(owner, use.context_id, use)

    async def rate(
        self, reader: Reader, context_id: str, score: int, kind: StatedKind | None = None
    ) -> ContextFeedbackResult:
        """Store the rating of a context's answer; memories of spaces only count if the reader may write there.

        The first positive rating counts as one more retrieval of each memory that the context held. A negative rating
        is shown but changes no memory: a bad answer does not make a fact wrong. `kind` is the source that rates, None
        for an admin. Raises NotFound for an unknown context, and Forbidden if a more trusted source has rated it.
        """
        await self.buffer.flush()
        scope, verdict = scope_of(reader), verdict_for_score(score)
        owner = scope.owner
        credits_memories = verdict is FeedbackVerdict.POSITIVE
        rated = await self._store.rate(owner, context_id, score, kind, credits_memories=credits_memories)
        if rated.credited:
            counts = {memory_id: RetrievalCount(1, rated.at) for memory_id in rated.credited}
            for owned in (owner, owner.tenant_global, *(space for space, _ in scope.spaces if scope.may_write(space))):
                await self._facts.reinforce(owned, counts)
        return ContextFeedbackResult(context_id=context_id, score=score, verdict=verdict, credited=list(rated.credited))

    async def list_of_memory(self, reader: Reader, memory_id: str, limit: int) -> list[MemoryUse]:
        """Return the contexts of a user that held a memory, the latest first; raise NotFound for an unknown memory."""
        await self.buffer.flush()
        await self._facts.get(reader, memory_id)
        return await self._store.list_of_memory(scope_of(reader).owner, memory_id, limit)

    async def prune(self, owner: Owner) -> dict[str, int]:
        """Delete expired contexts; return their number."""
        return {"contexts": await self._store.delete_expired(owner)}
