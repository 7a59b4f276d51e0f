"""The fast path: looks up the entities named in a text and the memories about them, without model or vectors."""

from __future__ import annotations

import time
from collections.abc import Iterable
from datetime import datetime, timedelta

from pydantic import TypeAdapter

from graphmem.memories.entity_store import EntityStore
from graphmem.memories.fact_store import ReinforcementBuffer
from graphmem.memories.filters import MemoryFilters
from graphmem.memories.memory import (
    CORE_IMPORTANCE,
    Memory,
    MemoryType,
    Scope,
)
from graphmem.memories.names import EntityMention, NameIndex
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
from graphmem.search.models import (
    EntityMemories,
    LookupResponse,
    UserProfile,
    normalise_query,
)
from graphmem.search.resident.copies import ResidentCopies
from graphmem.search.source import CandidateSource
from graphmem.tenants.owners import Owner
from graphmem.tenants.spaces import Reader
from graphmem.text.tokenising import query_terms

MAX_CACHED_NAMES = 20_000
"""Maximum entities whose names are cached; a user with more is searched by full text."""

MAX_FALLBACK_NAMES = 50
"""Maximum entities returned by a full-text search for names."""


_TOO_MANY_NAMES = NameIndex([])
"""Cached in place of the index of a user whose names are searched by full text."""


def cached_prefix(owner: Owner) -> str:
    """Return the prefix of all cache keys that may hold an owner's memories; for a space, those of all its readers."""
    return f"{owner.tenant}:" if owner.is_space else f"{owner.group_id}@"


class EntityNameCache:
    """Finds the entities named in a text; each user has one index, rebuilt after a write to the user."""

    def __init__(self, clock: Clock) -> None:
        self._indexes: LocalCache[NameIndex] = LocalCache(clock, LOOKUP_TTL_SECONDS)
        self._hit_rate = HitRate("entity_names")

    async def discard_user(self, owner: Owner) -> None:
        """Remove everything cached for a user."""
        await self._indexes.discard(cached_prefix(owner))

    async def count_user(self, owner: Owner) -> int:
        """Return the number of cached entries of a user."""
        return await self._indexes.count(f"{owner.group_id}@")

    async def find(self, source: CandidateSource, text: str) -> list[EntityMention]:
        """Return the entities named in a text, the most certain first."""
        index = await self._load_index(source)
        if index is None:
            index = NameIndex(await source.find_entity_names(query_terms(text), MAX_FALLBACK_NAMES))
        return index.find(text)

    async def find_user(self, source: CandidateSource) -> str | None:
        """Return the id of the user's own entity, if there is one and the names are cached."""
        index = await self._load_index(source)
        return index.user_entity_id if index else None

    async def _load_index(self, source: CandidateSource) -> NameIndex | None:
        """Return the index of a user's names, or None if there are too many."""
        key = f"{source.state.owner.group_id}@{source.state.write_version}"
        cached_index = await self._indexes.get(key)
        self._hit_rate.count(is_hit=cached_index is not None)
        if cached_index is not None:
            return None if cached_index is _TOO_MANY_NAMES else cached_index
        names = await source.list_entity_names(MAX_CACHED_NAMES + 1)
        index = NameIndex(names) if len(names) <= MAX_CACHED_NAMES else _TOO_MANY_NAMES
        await self._indexes.set(key, index)
        return None if index is _TOO_MANY_NAMES else index


MAX_LOOKUP_ENTITIES = 20
"""Maximum entities returned by one lookup."""

MAX_PROFILE_MEMORIES = 200
"""Maximum memories in a profile, the most important ones."""


class EntityLookup:
    """Looks up entities by name and the profile of a user, from caches that every write invalidates.

    Values that retrievals change, strength and access count, are always read again.
    """

    def __init__(
        self,
        sources: ResidentCopies,
        entities: EntityStore,
        name_cache: EntityNameCache,
        reinforcement: ReinforcementBuffer,
        clock: Clock,
        cache_url: str | None = None,
    ) -> None:
        self._sources = sources
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
        reader: Reader,
        text: str,
        limit: int = 20,
        *,
        filters: MemoryFilters | None = None,
        reinforce: bool = True,
    ) -> LookupResponse:
        """Return the entities named in a text, with up to `limit` memories each that pass the filters.

        Raises InvalidInput for an empty text. `reinforce` counts a retrieval of each memory.
        """
        started = time.perf_counter()
        text, filters = normalise_query(text), filters or MemoryFilters()
        source = await self._sources.open(reader)
        scope = source.state
        mentions = await self._name_cache.find(source, text)
        entity_ids = [mention.id for mention in mentions[:MAX_LOOKUP_ENTITIES]]
        at = filters.valid_as_of or self._clock()
        given = filters.model_dump_json(exclude_defaults=True)
        order = source.state.trust_order
        if filters.min_trust is not None:
            given += ",".join(order.trusted_as_much_as(filters.min_trust))
        key = f"{scope.owner.group_id}@{source.state.write_version}/{limit}/{','.join(entity_ids)}/{given}"
        cached = await self._answers.get(key)
        if cached is None:
            about = await self._entities.resolve_entity_ids(scope, filters.entity) if filters.entity else None
            until = at + timedelta(seconds=LOOKUP_TTL_SECONDS)
            resolved = filters.resolve(about, at, order)
            profiles = {} if resolved.compares_attributes else await source.load_profiles(entity_ids, resolved)
            found = [
                EntityMemories(entity=known.entity, profile=profiles.get(known.entity.id), memories=known.memories)
                for known in await source.load_entities_with_facts(entity_ids, resolved, until, limit)
            ]
            await self._answers.set(key, found)
        else:
            memories = [memory for known in cached for memory in known.memories]
            states, _ = await source.load_shown(memories, [], self._clock())
            found = [
                known.model_copy(update={"memories": [states[memory.id] for memory in known.memories]})
                for known in cached
            ]
        entities = [
            EntityMemories(
                entity=known.entity,
                profile=known.profile if known.profile and known.profile.holds_at(at) else None,
                memories=(known.memories if filters.include_superseded else _valid_at(known.memories, at))[:limit],
            )
            for known in found
        ]
        self._lookup_hits.count(is_hit=cached is not None)
        if reinforce:
            returned = {memory.id: memory for known in entities for memory in known.memories}
            self._reinforcement.record(scope, returned.values())
        return LookupResponse(
            entities=entities,
            cache="miss" if cached is None else "hit",
            took_ms=round((time.perf_counter() - started) * 1000, 3),
        )

    async def load_profile(self, reader: Reader, domain: str | None = None) -> UserProfile:
        """Return the current profile of a user, with the memories of a domain if one is given.

        Its core are the memories of profile scope with at least `CORE_IMPORTANCE`.
        """
        started = time.perf_counter()
        source = await self._sources.open(reader)
        key = f"{source.state.owner.group_id}@{source.state.write_version}/{domain or ''}"
        now = self._clock()
        cached = await self._profiles.get(key)
        if cached is not None:
            shown, _ = await source.load_shown(cached, [], now)
            found = list(shown.values())
        else:
            until = now + timedelta(seconds=PROFILE_TTL_SECONDS)
            found = await source.list_profile_facts(domain, now, until, MAX_PROFILE_MEMORIES)
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
        """Remove everything cached for a user."""
        await self._sources.discard_user(owner)
        await self._name_cache.discard_user(owner)
        await self._answers.discard(cached_prefix(owner))
        await self._profiles.discard(cached_prefix(owner))

    async def count_user(self, owner: Owner) -> int:
        """Return the number of cached entries of a user."""
        prefix = f"{owner.group_id}@"
        cached = await self._answers.count(prefix) + await self._profiles.count(prefix)
        return cached + await self._name_cache.count_user(owner) + await self._sources.count_user(owner)

    async def close(self) -> None:
        """Close the caches."""
        await self._sources.close()
        await self._answers.close()
        await self._profiles.close()


def _is_core(memory: Memory) -> bool:
    return memory.scope is Scope.PROFILE and memory.importance >= CORE_IMPORTANCE


def _valid_at(memories: Iterable[Memory], at: datetime) -> list[Memory]:
    """Return the memories valid at a time; a cached answer holds those valid at any moment of its lifetime."""
    return [
        memory
        for memory in memories
        if interval_contains(
            memory.valid_at or MIN_TIME, min(memory.invalid_at or MAX_TIME, memory.expires_at or MAX_TIME), at
        )
    ]
