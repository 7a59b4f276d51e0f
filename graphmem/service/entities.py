"""Operations that explore the entities of a user."""

from __future__ import annotations

from datetime import datetime

from graphmem.domain.entity import Entity
from graphmem.domain.filters import FactFilters, known_at_or_now
from graphmem.domain.identity import Owner
from graphmem.domain.listing import Page, decode_cursor, encode_cursor
from graphmem.domain.memory import Memory
from graphmem.domain.search_models import EntityGraph
from graphmem.domain.times import Clock
from graphmem.errors import InvalidInput
from graphmem.store.entities import EntityStore
from graphmem.store.facts import FactStore
from graphmem.store.search import SearchStore

MAX_PAGE = 200
"""Most entities or memories in one answer."""

MAX_DEPTH = 3
"""Most steps that a graph extends from its entity."""

MAX_EDGES = 500
"""Most memories in a graph."""


class EntityService:
    """Operations on the entities of one user."""

    def __init__(self, entities: EntityStore, facts: FactStore, search: SearchStore, clock: Clock) -> None:
        self._entities = entities
        self._facts = facts
        self._search = search
        self._clock = clock

    async def page(
        self,
        owner: Owner,
        *,
        query: str | None = None,
        type: str | None = None,
        limit: int = 50,
        cursor: str | None = None,
    ) -> Page[Entity]:
        """Return one page of entities by name; `query` is part of a name or alias."""
        _require(1 <= limit <= MAX_PAGE, "limit", f"must be between 1 and {MAX_PAGE}")
        position = decode_cursor(cursor, (str, str)) if cursor else None
        after = (str(position[0]), str(position[1])) if position else None
        items, following = await self._entities.list_page(owner, text=query, type=type, after=after, limit=limit)
        return Page(items=items, next_cursor=encode_cursor(*following) if following else None)

    async def get(self, owner: Owner, entity_id: str) -> Entity:
        """Return one entity; raise NotFound for one that is not this user's."""
        return await self._entities.get(owner, entity_id)

    async def list_memories(
        self,
        owner: Owner,
        entity_id: str,
        *,
        valid_as_of: datetime | None = None,
        known_as_of: datetime | None = None,
        include_superseded: bool = False,
        limit: int = 50,
    ) -> list[Memory]:
        """Return the memories about an entity, the most important first; raise NotFound for an unknown entity."""
        _require(1 <= limit <= MAX_PAGE, "limit", f"must be between 1 and {MAX_PAGE}")
        await self._entities.get(owner, entity_id)
        filters = FactFilters(
            valid_at=valid_as_of or self._clock(),
            known_at=known_at_or_now(known_as_of),
            any_validity=include_superseded,
        )
        return await self._facts.list_entity_facts(owner, entity_id, filters, limit)

    async def get_graph(
        self,
        owner: Owner,
        entity_id: str,
        *,
        depth: int = 1,
        valid_as_of: datetime | None = None,
        known_as_of: datetime | None = None,
    ) -> EntityGraph:
        """Return the entities within `depth` (1 to 3) steps and up to 500 memories between them.

        Raises NotFound for an unknown entity.
        """
        _require(1 <= depth <= MAX_DEPTH, "depth", f"must be between 1 and {MAX_DEPTH}")
        await self._entities.get(owner, entity_id)
        now = self._clock()
        filters = FactFilters(valid_at=valid_as_of or now, known_at=known_at_or_now(known_as_of))
        return await self._search.load_entity_graph(owner, entity_id, filters, depth, MAX_EDGES, now)


def _require(condition: bool, parameter: str, rule: str) -> None:
    """Raise InvalidInput for a parameter that does not meet a rule."""
    if not condition:
        raise InvalidInput(f"{parameter} {rule}.", errors=[{"loc": [parameter], "msg": rule}])
