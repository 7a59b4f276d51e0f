"""Operations on memories that need no language model: save, list, correct, end, revert, history."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from types import MappingProxyType

from pydantic import FiniteFloat

from graphmem.memories.declarations import DeclaredTypeService
from graphmem.memories.entity_store import EntityStore
from graphmem.memories.fact import Fact
from graphmem.memories.fact_store import FactStore, PagePosition
from graphmem.memories.filters import ListFilters, SortOrder
from graphmem.memories.memory import (
    Memory,
    MemoryIn,
    MemoryPatch,
    MemoryVersion,
    SaveResult,
)
from graphmem.memories.new_memory import with_implied_types
from graphmem.memories.writer import MemoryWriter
from graphmem.runtime.errors import InvalidInput, MemoryDeleted
from graphmem.runtime.field_types import StorableText
from graphmem.runtime.paging import Cursor, Page, StoredInteger
from graphmem.runtime.short_ids import complete_id
from graphmem.runtime.times import Clock
from graphmem.tenants.idempotency import IdempotentRequest
from graphmem.tenants.owners import Owner
from graphmem.tenants.spaces import Reader, scope_of
from graphmem.tenants.tenant_settings import TrustService
from graphmem.tenants.trust import DEFAULT_ORDER, SourceKind

_CURSOR: Cursor[tuple[SortOrder, int | float, str]] = Cursor(
    tuple[SortOrder, StoredInteger | FiniteFloat, StorableText]
)


SaveWithModel = Callable[..., Awaitable[list[SaveResult]]]
"""Saves statements, all or none, as `MemoryWriter.save` does, after a model compared them with known facts."""


class MemoryService:
    """Operations on the memories of one user, and on those of the spaces that the user may use.

    A write with an idempotent `request` happens once: a repetition changes nothing and returns the same.
    """

    def __init__(
        self,
        memory_writer: MemoryWriter,
        inferred_save: SaveWithModel,
        declared_types: DeclaredTypeService,
        facts: FactStore,
        entities: EntityStore,
        clock: Clock,
        max_batch_size: int,
        trust: TrustService,
    ) -> None:
        self._memory_writer = memory_writer
        self._inferred_save = inferred_save
        self._declared_types = declared_types
        self._facts = facts
        self._entities = entities
        self._clock = clock
        self._max_batch_size = max_batch_size
        self._trust = trust

    async def save(
        self,
        owner: Owner,
        memories: Sequence[MemoryIn],
        *,
        actor: str | None = None,
        kind: SourceKind = "user",
        request: IdempotentRequest | None = None,
        infer: bool = False,
        spaces: Mapping[str, Owner] = MappingProxyType({}),
    ) -> list[SaveResult]:
        """Save statements, all or none; with `infer`, a model compares them with known facts.

        `kind` is the source of statements that name none. `spaces` are those that the owner may write, by id. Raises
        InvalidInput for an empty list, a list that is too long, and a type that is not declared, NotFound for an
        unknown association and an unavailable space, and NotConfigured for `infer` without a model.
        """
        if not memories:
            raise InvalidInput("The list of memories is empty.")
        if len(memories) > self._max_batch_size:
            raise InvalidInput(f"A save takes up to {self._max_batch_size} memories: send them in several saves.")
        resolved = await self._declared_types.resolve_all(owner, memories)
        typed = with_implied_types(resolved)
        save = self._inferred_save if infer else self._memory_writer.save
        return await save(owner, typed, actor=actor, kind=kind, request=request, spaces=spaces)

    async def complete_id(self, reader: Reader, given: str) -> str:
        """Return the id of the memory that begins with `given`; raise InvalidInput if several do."""
        return complete_id(given, await self._facts.find_memory_ids(reader, given))

    async def get(self, reader: Reader, memory_id: str) -> Memory:
        """Return the latest version of a memory, deleted or not; raise NotFound if it is unknown or erased."""
        return await self._facts.get(reader, memory_id)

    async def page(self, reader: Reader, filters: ListFilters) -> Page[Memory]:
        """Return one page of memories; raise InvalidInput for a cursor from another list or sort order.

        Raises NotFound for a `space` that the reader cannot read. Type filters must name built-in or declared types.
        """
        owner = scope_of(reader).owner
        await self._declared_types.check_filter(owner, filters.type)
        entity_ids = await self._entities.resolve_entity_ids(reader, filters.entity) if filters.entity else None
        order = DEFAULT_ORDER if filters.min_trust is None else await self._trust.get_order(owner.tenant)
        memories, position = await self._facts.list_page(
            reader,
            filters.to_memory_filters().resolve(entity_ids, self._clock(), order),
            keyword=filters.keyword,
            sort=filters.sort,
            after=_parse_cursor(filters),
            limit=filters.limit,
            only=None if filters.space is None else scope_of(reader).find_space(filters.space),
        )
        return Page(items=memories, next_cursor=_CURSOR.encode((filters.sort, *position)) if position else None)

    async def patch(
        self,
        reader: Reader,
        memory_id: str,
        patch: MemoryPatch,
        *,
        if_version: int | None = None,
        actor: str | None = None,
        kind: SourceKind | None = None,
        request: IdempotentRequest | None = None,
    ) -> Memory:
        """Create a version with the given fields; raise VersionConflict if `if_version` is not the latest.

        `kind` is the source of the change; None may change anything. The text of a memory from a more trusted source is
        kept, and the change is returned as a contested memory next to it.
        """
        owner = scope_of(reader).owner
        resolved = await self._declared_types.resolve_patch(owner, patch)
        vector = await self._memory_writer.prepare_patch(owner, resolved, kind)
        return await self._facts.update_memory(
            reader,
            memory_id,
            lambda ledger: ledger.amend(memory_id, resolved, if_version=if_version),
            actor=actor,
            vector=vector,
            associations=patch.associations,
            request=request,
            kind=kind,
        )

    async def delete(
        self, reader: Reader, memory_id: str, *, actor: str | None = None, kind: SourceKind | None = None
    ) -> Memory:
        """End a memory, which stays readable by id and in its history; a deleted one is returned unchanged.

        Raises Forbidden for a memory from a source trusted more than `kind`; None may delete any.
        """
        try:
            return await self._facts.update_memory(
                reader, memory_id, lambda ledger: ledger.delete(memory_id), actor=actor, kind=kind
            )
        except MemoryDeleted:
            return await self._facts.get(reader, memory_id)

    async def history(self, reader: Reader, memory_id: str) -> list[MemoryVersion]:
        """Return every version of a memory, oldest first; raise NotFound if it is unknown."""
        return await self._facts.get_history(reader, memory_id)

    async def resolve(
        self,
        reader: Reader,
        memory_id: str,
        *,
        holds: bool,
        actor: str | None = None,
        kind: SourceKind | None = None,
        request: IdempotentRequest | None = None,
    ) -> Memory:
        """Resolve a contested memory: it replaces the memories it contests, or is retired.

        Raises Conflict for a memory that is not contested, and Forbidden if a memory to end is trusted more than
        `kind`.
        """
        return await self._facts.update_memory(
            reader,
            memory_id,
            lambda ledger: ledger.resolve(memory_id, holds=holds),
            actor=actor,
            request=request,
            kind=kind,
        )

    async def list_contested(self, owner: Owner) -> list[Fact]:
        """Return the contested memories of an owner, the latest first."""
        return await self._facts.list_contested(owner)

    async def revert(
        self,
        reader: Reader,
        memory_id: str,
        *,
        actor: str | None = None,
        kind: SourceKind | None = None,
        request: IdempotentRequest | None = None,
    ) -> Memory:
        """Undo one supersession, or the resolution of a contested memory; raise Conflict if that is impossible.

        Raises Forbidden if a memory to retire is trusted more than `kind`; None may revert anything.
        """
        return await self._facts.update_memory(
            reader,
            memory_id,
            lambda ledger: ledger.revert(memory_id),
            actor=actor,
            request=request,
            kind=kind,
        )


def _parse_cursor(filters: ListFilters) -> PagePosition | None:
    if not filters.cursor:
        return None
    sort, key, memory_id = _CURSOR.decode(filters.cursor)
    if sort is not filters.sort:
        raise InvalidInput("The cursor belongs to another sort order.")
    return key, memory_id
