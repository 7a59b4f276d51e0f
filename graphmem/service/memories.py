"""Memories without a model: save, list, change, end, undo, look back."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence

from graphmem.domain.belief import Ledger
from graphmem.domain.fact import Fact
from graphmem.domain.identity import Owner
from graphmem.domain.listing import ListFilters, Page, read_cursor, write_cursor
from graphmem.domain.memory import HistoryRow, Memory, MemoryIn, MemoryPatch, SaveResult
from graphmem.domain.times import Clock
from graphmem.errors import EndedMemory, InvalidInput
from graphmem.ingestion.saving import Saving
from graphmem.store.entities import EntityStore
from graphmem.store.facts import ErasesMemory, FactStore, known_at

Forgets = Callable[[Owner, str, Sequence[str]], Awaitable[None]]
"""What is erased beside a memory that is erased, given its owner, id and texts."""


class Memories:
    """The verbs of one memory or a list of them.

    `erasures` are what other rooms erase with a memory in its transaction, `forgets` what goes before it.
    """

    def __init__(
        self,
        saving: Saving,
        facts: FactStore,
        entities: EntityStore,
        clock: Clock,
        max_save: int,
        erasures: Sequence[ErasesMemory] = (),
        forgets: Sequence[Forgets] = (),
    ) -> None:
        self._saving = saving
        self._facts = facts
        self._entities = entities
        self._clock = clock
        self._max_save = max_save
        self._erasures = erasures
        self._forgets = forgets

    async def save(
        self, owner: Owner, memories: Sequence[MemoryIn], *, actor: str | None = None, kind: str = "api"
    ) -> list[SaveResult]:
        """Save a list of statements without a model: all of it or nothing."""
        if not memories:
            raise InvalidInput("The list of memories is empty.")
        if len(memories) > self._max_save:
            raise InvalidInput(f"A save takes up to {self._max_save} memories; send them in several.")
        return await self._saving.save(owner, memories, actor=actor, kind=kind)

    async def get(self, owner: Owner, memory_id: str) -> Memory:
        """Return a memory as it is now, deleted or not; raise NotFound for an unknown or erased one."""
        return await self._facts.get(owner, memory_id)

    async def page(self, owner: Owner, filters: ListFilters) -> Page[Memory]:
        """List memories by attributes, without ranking or embedding."""
        sort, direction = filters.order
        place = read_cursor(filters.cursor, (str, (int, float), str)) if filters.cursor else None
        if place and place[0] != filters.sort.value:
            raise InvalidInput("The cursor belongs to another sort order.")
        entity_ids = await self._entities.ids_named(owner, filters.entity) if filters.entity else None
        items, key, memory_id = await self._facts.page(
            owner,
            valid_at=filters.valid_as_of or self._clock(),
            known_at=known_at(filters.known_as_of),
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
            after_key=place[1] if place else None,
            after_id=place[2] if place else None,
            limit=filters.limit,
        )
        return Page(items=items, next_cursor=write_cursor(filters.sort.value, key, memory_id) if memory_id else None)

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
        changes, vector = await self._saving.prepare_patch(owner, patch)
        return await self._facts.change(
            owner,
            memory_id,
            lambda ledger: ledger.amend(memory_id, changes, if_version=if_version),
            actor=actor,
            vector=vector,
        )

    async def delete(self, owner: Owner, memory_id: str, *, actor: str | None = None) -> Memory:
        """End a memory; it stays readable by id and in history. Ending it twice changes nothing."""
        try:
            return await self._facts.change(owner, memory_id, lambda ledger: ledger.delete(memory_id), actor=actor)
        except EndedMemory:
            return await self._facts.get(owner, memory_id)

    async def erase(self, owner: Owner, memory_id: str) -> int:
        """Erase a memory everywhere; return how many versions there were."""
        versions = await self._facts.history(owner, memory_id)
        owned = owner if versions[0].user_id else owner.everyone
        # First, so that a store that is away leaves the memory to be erased again.
        for forget in self._forgets:
            await forget(owned, memory_id, list({each.content for each in versions}))
        return await self._facts.erase(owner, memory_id, self._erasures)

    async def history(self, owner: Owner, memory_id: str) -> list[HistoryRow]:
        """Return every version, oldest first, with why it ended and what replaced it."""
        return await self._facts.history(owner, memory_id)

    async def revert(self, owner: Owner, memory_id: str, *, actor: str | None = None) -> Memory:
        """Undo one supersession: reopen the memory and retire what replaced it."""

        def act(ledger: Ledger) -> Fact:
            return ledger.revert(memory_id)

        return await self._facts.change(owner, memory_id, act, actor=actor, related=True)
