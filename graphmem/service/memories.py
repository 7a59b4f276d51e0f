"""Memory operations without a model: save, list, change, end, undo, look back."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence

from graphmem.domain.fact import Fact
from graphmem.domain.identity import Owner
from graphmem.domain.listing import ListFilters, Page, decode_cursor, encode_cursor
from graphmem.domain.memory import Memory, MemoryIn, MemoryPatch, MemoryVersion, SaveResult
from graphmem.domain.times import Clock
from graphmem.domain.versioning import Ledger
from graphmem.errors import InvalidInput, MemoryDeleted
from graphmem.ingestion.memory_writer import MemoryWriter
from graphmem.store.entities import EntityStore
from graphmem.store.facts import FactStore, MemoryEraser, known_at_or_now

MemoryTraceEraser = Callable[[Owner, str, Sequence[str]], Awaitable[None]]
"""What is erased beside a memory that is erased, given its owner, id and texts."""


class MemoryService:
    """The verbs of one memory or a list of them.

    `memory_erasers` are what other rooms erase with a memory in its transaction, `trace_erasers` what goes before it.
    """

    def __init__(
        self,
        memory_writer: MemoryWriter,
        facts: FactStore,
        entities: EntityStore,
        clock: Clock,
        max_batch_size: int,
        memory_erasers: Sequence[MemoryEraser] = (),
        trace_erasers: Sequence[MemoryTraceEraser] = (),
    ) -> None:
        self._memory_writer = memory_writer
        self._facts = facts
        self._entities = entities
        self._clock = clock
        self._max_batch_size = max_batch_size
        self._memory_erasers = memory_erasers
        self._trace_erasers = trace_erasers

    async def save(
        self, owner: Owner, memories: Sequence[MemoryIn], *, actor: str | None = None, kind: str = "api"
    ) -> list[SaveResult]:
        """Save a list of statements without a model: all of it or nothing."""
        if not memories:
            raise InvalidInput("The list of memories is empty.")
        if len(memories) > self._max_batch_size:
            raise InvalidInput(f"A save takes up to {self._max_batch_size} memories; send them in several.")
        return await self._memory_writer.save(owner, memories, actor=actor, kind=kind)

    async def get(self, owner: Owner, memory_id: str) -> Memory:
        """Return a memory as it is now, deleted or not; raise NotFound for an unknown or erased one."""
        return await self._facts.get(owner, memory_id)

    async def page(self, owner: Owner, filters: ListFilters) -> Page[Memory]:
        """List memories by attributes, without ranking or embedding."""
        sort, direction = filters.sort_property
        after_cursor = decode_cursor(filters.cursor, (str, (int, float), str)) if filters.cursor else None
        if after_cursor and after_cursor[0] != filters.sort.value:
            raise InvalidInput("The cursor belongs to another sort order.")
        entity_ids = await self._entities.resolve_entity_ids(owner, filters.entity) if filters.entity else None
        items, key, memory_id = await self._facts.list_page(
            owner,
            valid_at=filters.valid_as_of or self._clock(),
            known_at=known_at_or_now(filters.known_as_of),
            any_validity=filters.include_superseded,
            types=[each.value for each in filters.type] or None,
            tags=filters.tag,
            not_tags=filters.not_tag,
            domain=filters.domain,
            scope=filters.scope.value if filters.scope else None,
            entity_ids=entity_ids,
            keyword=filters.keyword.lower() if filters.keyword else None,
            session_id=filters.session_id,
            min_importance=filters.min_importance,
            min_confidence=filters.min_confidence,
            created_after=filters.created_after,
            created_before=filters.created_before,
            sort=sort,
            direction=direction,
            after_key=after_cursor[1] if after_cursor else None,
            after_id=after_cursor[2] if after_cursor else None,
            limit=filters.limit,
        )
        return Page(items=items, next_cursor=encode_cursor(filters.sort.value, key, memory_id) if memory_id else None)

    async def patch(
        self,
        owner: Owner,
        memory_id: str,
        patch: MemoryPatch,
        *,
        if_version: int | None = None,
        actor: str | None = None,
    ) -> Memory:
        """Make a new version with the fields given; raise VersionConflict when `if_version` is not the latest."""
        changes, vector = await self._memory_writer.prepare_patch(owner, patch)
        return await self._facts.update_memory(
            owner,
            memory_id,
            lambda ledger: ledger.amend(memory_id, changes, if_version=if_version),
            actor=actor,
            vector=vector,
        )

    async def delete(self, owner: Owner, memory_id: str, *, actor: str | None = None) -> Memory:
        """End a memory; it stays readable by id and in history. Ending it twice changes nothing."""
        try:
            return await self._facts.update_memory(
                owner, memory_id, lambda ledger: ledger.delete(memory_id), actor=actor
            )
        except MemoryDeleted:
            return await self._facts.get(owner, memory_id)

    async def erase(self, owner: Owner, memory_id: str) -> int:
        """Erase a memory everywhere; return how many versions there were."""
        versions = await self._facts.get_history(owner, memory_id)
        owned = owner if versions[0].user_id else owner.tenant_global
        # First, so that a store that is away leaves the memory to be erased again.
        for forget in self._trace_erasers:
            await forget(owned, memory_id, list({each.content for each in versions}))
        return await self._facts.erase_memory(owner, memory_id, self._memory_erasers)

    async def history(self, owner: Owner, memory_id: str) -> list[MemoryVersion]:
        """Return every version, oldest first, with why it ended and what replaced it."""
        return await self._facts.get_history(owner, memory_id)

    async def revert(self, owner: Owner, memory_id: str, *, actor: str | None = None) -> Memory:
        """Undo one supersession: reopen the memory and retire what replaced it."""

        def act(ledger: Ledger) -> Fact:
            return ledger.revert(memory_id)

        return await self._facts.update_memory(owner, memory_id, act, actor=actor, related=True)
