"""The fast path: looks up the entities that a text names and the memories about them, without model or vector."""

from __future__ import annotations

import time
from collections.abc import Iterable
from datetime import datetime, timedelta

from pydantic import TypeAdapter

from graphmem.memories.entity_names import EntityMention, NameIndex
from graphmem.memories.entity_store import EntityStore
from graphmem.memories.fact_store import FactStore
from graphmem.memories.filters import MemoryFilters
from graphmem.memories.memory import (
    CORE_IMPORTANCE,
    Memory,
    MemoryType,
    Scope,
)
from graphmem.memories.reinforcement import ReinforcementBuffer
from graphmem.neo4j.migrations import NAME_TEXT_FIELDS
from graphmem.runtime.cache import (
    LOOKUP_TTL_SECONDS,
    PROFILE_TTL_SECONDS,
    Cache,
    LocalCache,
    open_cache,
)
from graphmem.runtime.metrics import HitRate
from graphmem.runtime.times import (
    MAX_TIME,
    MIN_TIME,
    Clock,
    interval_contains,
)
from graphmem.search.candidates import SearchStore
from graphmem.search.models import (
    EntityMemories,
    LookupResponse,
    UserProfile,
    normalise_query,
)
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


MAX_LOOKUP_ENTITIES = 20
"""Most entities that one lookup returns."""

MAX_PROFILE_MEMORIES = 200
"""Most memories of a profile; the most important ones are chosen."""


class EntityLookup:
    """Looks up entities by name and the profile of a user, from caches that every write invalidates.

    What retrievals change of memories, their strength and access count, is read anew.
    """

    def __init__(
        self,
        store: SearchStore,
        entities: EntityStore,
        name_cache: EntityNameCache,
        reinforcement: ReinforcementBuffer,
        clock: Clock,
        cache_url: str | None = None,
    ) -> None:
        self._store = store
        self._entities = entities
        self._name_cache = name_cache
        self._reinforcement = reinforcement
        self._clock = clock
        self._answers: Cache[list[EntityMemories]] = open_cache(
            cache_url, "lookup", TypeAdapter(list[EntityMemories]), clock, LOOKUP_TTL_SECONDS
        )
        self._profiles: Cache[list[Memory]] = open_cache(
            cache_url, "profile", TypeAdapter(list[Memory]), clock, PROFILE_TTL_SECONDS
        )
        self._lookup_hits, self._profile_hits = HitRate("lookup"), HitRate("profile")

    async def lookup(
        self,
        owner: Owner,
        text: str,
        limit: int = 20,
        *,
        filters: MemoryFilters | None = None,
        reinforce: bool = True,
    ) -> LookupResponse:
        """Return the entities that a text names with up to `limit` memories each that pass the filters.

        Raises InvalidInput for an empty text. `reinforce` counts a retrieval of each memory.
        """
        started = time.perf_counter()
        text, filters = normalise_query(text), filters or MemoryFilters()
        version = await self._name_cache.write_version(owner)
        mentions = await self._name_cache.find(owner, text, version)
        entity_ids = [mention.id for mention in mentions[:MAX_LOOKUP_ENTITIES]]
        at = filters.valid_as_of or self._clock()
        given = filters.model_dump_json(exclude_defaults=True)
        key = f"{owner.group_id}@{version}/{limit}/{','.join(entity_ids)}/{given}"
        cached = await self._answers.get(key)
        if cached is None:
            about = await self._entities.resolve_entity_ids(owner, filters.entity) if filters.entity else None
            until = at + timedelta(seconds=LOOKUP_TTL_SECONDS)
            found = await self._store.load_entities_with_facts(
                owner, entity_ids, filters.resolve(about, at), until, limit
            )
            await self._answers.set(key, found)
        else:
            memories = [memory for known in cached for memory in known.memories]
            states = await self._store.load_retrieval_states(owner, memories, self._clock())
            found = [
                EntityMemories(entity=known.entity, memories=[states[memory.id] for memory in known.memories])
                for known in cached
            ]
        entities = [
            EntityMemories(
                entity=known.entity,
                memories=(known.memories if filters.include_superseded else _valid_at(known.memories, at))[:limit],
            )
            for known in found
        ]
        self._lookup_hits.count(is_hit=cached is not None)
        if reinforce:
            returned = {memory.id: memory for known in entities for memory in known.memories}
            self._reinforcement.record(owner, returned.values())
        return LookupResponse(
            entities=entities,
            cache="miss" if cached is None else "hit",
            took_ms=round((time.perf_counter() - started) * 1000, 3),
        )

    async def load_profile(self, owner: Owner, domain: str | None = None) -> UserProfile:
        """Return the current profile of a user, with the memories of a domain if one is given.

        Its core are the memories of profile scope from `CORE_IMPORTANCE`.
        """
        started = time.perf_counter()
        key = f"{owner.group_id}@{await self._name_cache.write_version(owner)}/{domain or ''}"
        now = self._clock()
        cached = await self._profiles.get(key)
        if cached is not None:
            found = list((await self._store.load_retrieval_states(owner, cached, now)).values())
        else:
            until = now + timedelta(seconds=PROFILE_TTL_SECONDS)
            found = await self._store.list_profile_facts(owner, domain, now, until, MAX_PROFILE_MEMORIES)
            await self._profiles.set(key, found)
        self._profile_hits.count(is_hit=cached is not None)
        memories = _valid_at(found, now)
        by_type: dict[MemoryType, list[Memory]] = {}
        for memory in memories:
            by_type.setdefault(memory.type, []).append(memory)
        return UserProfile(
            domain=domain,
            core=[memory for memory in memories if _is_core(memory)],
            memories=by_type,
            cache="miss" if cached is None else "hit",
            took_ms=round((time.perf_counter() - started) * 1000, 3),
        )

    async def discard_user(self, owner: Owner) -> None:
        """Remove everything cached of a user."""
        await self._name_cache.discard_user(owner)
        await self._answers.discard(f"{owner.group_id}@")
        await self._profiles.discard(f"{owner.group_id}@")

    async def count_user(self, owner: Owner) -> int:
        """Return how many entries there are of a user."""
        prefix = f"{owner.group_id}@"
        cached = await self._answers.count(prefix) + await self._profiles.count(prefix)
        return cached + await self._name_cache.count_user(owner)

    async def close(self) -> None:
        """Close the caches."""
        await self._answers.close()
        await self._profiles.close()


def _is_core(memory: Memory) -> bool:
    return memory.scope is Scope.PROFILE and memory.importance >= CORE_IMPORTANCE


def _valid_at(memories: Iterable[Memory], at: datetime) -> list[Memory]:
    """Return the memories that are valid at a time: a cached answer holds those of some moment of its lifetime."""
    return [
        memory
        for memory in memories
        if interval_contains(
            memory.valid_at or MIN_TIME, min(memory.invalid_at or MAX_TIME, memory.expires_at or MAX_TIME), at
        )
    ]
