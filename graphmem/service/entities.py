"""Exploring: the entities of a user, what is known about each, and what lies around them."""

from __future__ import annotations

from datetime import datetime

from graphmem.domain.entity import Entity
from graphmem.domain.identity import Owner
from graphmem.domain.listing import Page, decode_cursor, encode_cursor
from graphmem.domain.memory import Memory
from graphmem.domain.search_models import EntityGraph, FactFilters
from graphmem.domain.times import AS_OF_NOW, Clock
from graphmem.errors import InvalidInput
from graphmem.store.entities import EntityStore
from graphmem.store.facts import FactStore, known_at_or_now
from graphmem.store.search import SearchStore

MAX_PAGE = 200
MAX_DEPTH = 3
MAX_EDGES = 500


class EntityService:
    """The verbs of entities; every read takes both times."""

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
        """List entities by name; `query` is part of a name or alias."""
        _validate_parameter(1 <= limit <= MAX_PAGE, "limit", f"lies between 1 and {MAX_PAGE}")
        place = decode_cursor(cursor, (str, str)) if cursor else None
        after = (str(place[0]), str(place[1])) if place else None
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
        """Return what is known about an entity, the most important first; raise NotFound for an unknown one."""
        _validate_parameter(1 <= limit <= MAX_PAGE, "limit", f"lies between 1 and {MAX_PAGE}")
        await self._entities.get(owner, entity_id)
        return await self._facts.list_entity_facts(
            owner,
            entity_id,
            valid_at=valid_as_of or self._clock(),
            known_at=known_at_or_now(known_as_of),
            any_validity=include_superseded,
            limit=limit,
        )

    async def get_graph(
        self,
        owner: Owner,
        entity_id: str,
        *,
        depth: int = 1,
        valid_as_of: datetime | None = None,
        known_as_of: datetime | None = None,
    ) -> EntityGraph:
        """Return the entities within `depth` (1 to 3) steps and the memories between them, up to 500."""
        _validate_parameter(1 <= depth <= MAX_DEPTH, "depth", f"lies between 1 and {MAX_DEPTH}")
        await self._entities.get(owner, entity_id)
        now = self._clock()
        filters = FactFilters(valid_at=valid_as_of or now, known_at=known_as_of or AS_OF_NOW)
        return await self._search.load_entity_graph(owner, entity_id, filters, depth, MAX_EDGES, now)


def _validate_parameter(holds: bool, field: str, rule: str) -> None:
    if not holds:
        raise InvalidInput(f"{field} {rule}.", errors=[{"loc": [field], "msg": rule}])
