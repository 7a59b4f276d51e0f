"""The names of each user's entities, cached to find them in texts."""

from __future__ import annotations

from graphmem.memories.entity_names import EntityMention, NameIndex
from graphmem.memories.fact_store import FactStore
from graphmem.neo4j.fulltext import NAME_TEXT_FIELDS
from graphmem.runtime.cache import LOOKUP_TTL_SECONDS, LocalCache
from graphmem.runtime.metrics import HitRate
from graphmem.runtime.times import Clock
from graphmem.search.candidates import SearchStore
from graphmem.tenants.owners import Owner
from graphmem.text.lucene import build_lucene_query, query_terms

MAX_CACHED_NAMES = 20_000
"""Entities whose names are cached; the names of a user with more are searched by full text."""

MAX_FALLBACK_NAMES = 50
"""Entities that a full-text search for names returns."""


class EntityNameCache:
    """Finds the entities that a text names; each user has one index, rebuilt after a write to the user."""

    def __init__(self, store: SearchStore, facts: FactStore, clock: Clock) -> None:
        self._store = store
        self._facts = facts
        self._indexes: LocalCache[NameIndex] = LocalCache(clock, LOOKUP_TTL_SECONDS)
        self._last_versions: LocalCache[str] = LocalCache(clock, LOOKUP_TTL_SECONDS)
        self._hit_rate = HitRate("entity_names")

    async def write_version(self, owner: Owner) -> str:
        """Return the user's write version, which is part of every cache key."""
        version = await self._facts.get_write_version(owner)
        await self._last_versions.set(owner.group_id, version)
        return version

    async def last_seen_version(self, owner: Owner) -> str:
        """Return the write version that was read last; a later write may have changed it since."""
        last_version = await self._last_versions.get(owner.group_id)
        return await self.write_version(owner) if last_version is None else last_version

    async def discard_user(self, owner: Owner) -> None:
        """Remove everything cached of a user."""
        await self._indexes.discard(f"{owner.group_id}@")
        await self._last_versions.discard(owner.group_id)

    async def count_user(self, owner: Owner) -> int:
        """Return how many entries there are of a user."""
        return await self._indexes.count(f"{owner.group_id}@")

    async def find(self, owner: Owner, text: str, version: str) -> list[EntityMention]:
        """Return the entities that a text names, the surest first."""
        index = await self._load_index(owner, version) or await self._search_names(owner, text)
        return index.find(text)

    async def _load_index(self, owner: Owner, version: str) -> NameIndex | None:
        key = f"{owner.group_id}@{version}"
        cached_index = await self._indexes.get(key)
        self._hit_rate.count(is_hit=cached_index is not None)
        if cached_index is not None:
            return cached_index
        names = await self._store.list_entity_names(owner, MAX_CACHED_NAMES + 1)
        if len(names) > MAX_CACHED_NAMES:
            return None
        index = NameIndex(names)
        await self._indexes.set(key, index)
        return index

    async def _search_names(self, owner: Owner, text: str) -> NameIndex:
        query = build_lucene_query(query_terms(text), owner.readable_group_keys, NAME_TEXT_FIELDS)
        return NameIndex(await self._store.find_entity_names(owner, query, MAX_FALLBACK_NAMES))
