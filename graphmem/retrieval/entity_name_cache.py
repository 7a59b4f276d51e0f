"""The names of a user's entities, kept at hand to find them in texts."""

from __future__ import annotations

from graphmem.domain.identity import Owner
from graphmem.domain.times import Clock
from graphmem.retrieval.cache import LOOKUP_TTL_SECONDS, LocalCache
from graphmem.retrieval.lucene_query import build_lucene_query, query_terms
from graphmem.retrieval.name_index import EntityMention, NameIndex
from graphmem.store.facts import FactStore
from graphmem.store.search import SearchStore

MAX_CACHED_NAMES = 20_000
"""A user with more entities than this is searched by full text instead."""

NAME_FIELDS = {"name": 1.0, "alias_text": 1.0}
MAX_FALLBACK_NAMES = 50


class EntityNameCache:
    """Finds the entities a text names; one index a user, rebuilt when the user was written to."""

    def __init__(self, store: SearchStore, facts: FactStore, clock: Clock) -> None:
        self._store = store
        self._facts = facts
        self._indexes: LocalCache[NameIndex | None] = LocalCache(clock, LOOKUP_TTL_SECONDS)
        self._last_versions: LocalCache[int] = LocalCache(clock, LOOKUP_TTL_SECONDS)

    async def write_version(self, owner: Owner) -> int:
        """Return the user's write version, which keys every cache."""
        version = await self._facts.get_write_version(owner)
        await self._last_versions.set(owner.group_id, version)
        return version

    async def last_seen_version(self, owner: Owner) -> int:
        """Return the write version as it was when it was last asked for: by now there may be a later one."""
        last_version = await self._last_versions.get(owner.group_id)
        return await self.write_version(owner) if last_version is None else last_version

    async def find(self, owner: Owner, text: str, version: int) -> list[EntityMention]:
        """Return the entities named in a text, the surest first."""
        index = await self._load_index(owner, version)
        if index is None:
            words = [f"{word}" for word in query_terms(text)]
            index = NameIndex(
                await self._store.find_entity_names(
                    owner, build_lucene_query(words, owner.readable_group_ids, NAME_FIELDS), MAX_FALLBACK_NAMES
                )
            )
        return index.find(text)

    async def _load_index(self, owner: Owner, version: int) -> NameIndex | None:
        key = f"{owner.group_id}@{version}"
        if (cached_index := await self._indexes.get(key)) is not None:
            return cached_index
        names = await self._store.list_entity_names(owner, MAX_CACHED_NAMES + 1)
        if len(names) > MAX_CACHED_NAMES:
            return None
        index = NameIndex(names)
        await self._indexes.set(key, index)
        return index
