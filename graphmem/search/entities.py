"""Operations that explore the entities of a user."""

from __future__ import annotations

from graphmem.memories.entity import Entity
from graphmem.memories.entity_store import EntityStore
from graphmem.memories.fact_store import FactStore
from graphmem.memories.filters import FactFilters, known_at_or_now
from graphmem.memories.memory import Memory
from graphmem.runtime.paging import Cursor, Page
from graphmem.runtime.text import StorableText
from graphmem.runtime.times import Clock
from graphmem.search.candidates import SearchStore
from graphmem.search.models import EntityGraph
from graphmem.search.req_search import EntityGraphQuery, EntityListQuery, EntityMemoriesQuery
from graphmem.tenants.owners import Owner

MAX_EDGES = 500
"""Most memories in a graph."""

_CURSOR: Cursor[tuple[str, str]] = Cursor(tuple[StorableText, StorableText])


class EntityService:
    """Operations on the entities of one user."""

    def __init__(self, entities: EntityStore, facts: FactStore, search: SearchStore, clock: Clock) -> None:
        self._entities = entities
        self._facts = facts
        self._search = search
        self._clock = clock

    async def page(self, owner: Owner, query: EntityListQuery) -> Page[Entity]:
        """Return one page of entities by name."""
        after = _CURSOR.decode(query.cursor) if query.cursor else None
        items, following = await self._entities.list_page(
            owner, text=query.query, type=query.type, after=after, limit=query.limit
        )
        return Page(items=items, next_cursor=_CURSOR.encode(following) if following else None)

    async def get(self, owner: Owner, entity_id: str) -> Entity:
        """Return one entity; raise NotFound for one that is not this user's."""
        return await self._entities.get(owner, entity_id)

    async def list_memories(self, owner: Owner, entity_id: str, query: EntityMemoriesQuery) -> list[Memory]:
        """Return the memories about an entity, the most important first; raise NotFound for an unknown entity."""
        await self._entities.get(owner, entity_id)
        filters = FactFilters(
            valid_at=query.valid_as_of or self._clock(),
            known_at=known_at_or_now(query.known_as_of),
            any_validity=query.include_superseded,
        )
        return await self._facts.list_entity_facts(owner, entity_id, filters, query.limit)

    async def get_graph(self, owner: Owner, entity_id: str, query: EntityGraphQuery) -> EntityGraph:
        """Return the entities around one and up to 500 memories between them; raise NotFound for an unknown entity."""
        await self._entities.get(owner, entity_id)
        now = self._clock()
        filters = FactFilters(valid_at=query.valid_as_of or now, known_at=known_at_or_now(query.known_as_of))
        return await self._search.load_entity_graph(owner, entity_id, filters, query.depth, MAX_EDGES, now)
