"""Caches with a time to live: in memory by default, in Redis if several processes share one.

Keys contain the user's write version, so a write makes earlier entries unreachable, and erasing the user all of them: a
later life of the user has different versions.
"""

from __future__ import annotations

import hashlib
import json
import re
from typing import Generic, Protocol, TypeVar

from cachetools import TTLCache
from pydantic import TypeAdapter

from graphmem.runtime.times import Clock

T = TypeVar("T")

_WILDCARDS = re.compile(r"[\[\]*?\\^-]")
"""Characters with a special meaning in Redis key patterns."""

LOOKUP_TTL_SECONDS = 300
"""Time to live of a lookup result, in seconds."""

PROFILE_TTL_SECONDS = 3600
"""Time to live of a profile, in seconds."""

MAX_ENTRIES = 1000
"""Maximum entries of an in-memory cache; a full one drops the least recently used entry."""


class Cache(Protocol[T]):
    """Values by key, with a time to live."""

    async def get(self, key: str) -> T | None:
        """Return the value of a key; None if there is none or it has expired."""

    async def set(self, key: str, value: T) -> None:
        """Store a value."""

    async def discard(self, prefix: str) -> None:
        """Remove the values of every key that begins with `prefix`."""

    async def count(self, prefix: str) -> int:
        """Return how many keys begin with `prefix`."""

    async def close(self) -> None:
        """Release connections and entries."""


class LocalCache(Generic[T]):
    """A cache in memory."""

    def __init__(self, clock: Clock, ttl_seconds: float, entries: int = MAX_ENTRIES) -> None:
        self._entries: TTLCache[str, T] = TTLCache(entries, ttl_seconds, timer=lambda: clock().timestamp())

    async def get(self, key: str) -> T | None:
        """Return the value of a key; None if there is none or it has expired."""
        return self._entries.get(key)

    async def set(self, key: str, value: T) -> None:
        """Store a value."""
        self._entries[key] = value

    async def discard(self, prefix: str) -> None:
        """Remove the values of every key that begins with `prefix`."""
        for key in [key for key in self._entries if key.startswith(prefix)]:
            self._entries.pop(key, None)

    async def count(self, prefix: str) -> int:
        """Return how many keys begin with `prefix`."""
        return sum(key.startswith(prefix) for key in self._entries)

    async def close(self) -> None:
        """Drop all entries."""
        self._entries.clear()

    def __len__(self) -> int:
        return len(self._entries)


class SharedCache(Generic[T]):
    """A cache in Redis with values as JSON; while Redis is unavailable, every get is a miss.

    Processes of versions with different JSON schemas do not read each other's values.
    """

    def __init__(self, url: str, prefix: str, adapter: TypeAdapter[T], ttl_seconds: float) -> None:
        from cashews import Cache as Redis

        self._redis = Redis(prefix)
        self._redis.setup(url, suppress=True, disable=False)
        self._prefix, self._adapter, self._ttl_seconds = prefix, adapter, ttl_seconds
        schema = json.dumps(adapter.json_schema(mode="serialization"), sort_keys=True)
        self._schema_digest = hashlib.sha256(schema.encode()).hexdigest()[:12]

    async def get(self, key: str) -> T | None:
        """Return the value of a key; None if there is none or Redis is unavailable."""
        stored = await self._redis.get(self._value_key(key))
        return None if stored is None else self._adapter.validate_json(stored)

    async def set(self, key: str, value: T) -> None:
        """Store a value."""
        await self._redis.set(self._value_key(key), self._adapter.dump_json(value).decode(), expire=self._ttl_seconds)

    async def discard(self, prefix: str) -> None:
        """Remove the values of every key that begins with `prefix`; wildcards in it also match themselves."""
        await self._redis.delete_match(self._pattern(prefix))

    async def count(self, prefix: str) -> int:
        """Return how many keys begin with `prefix`, where wildcards also match themselves; 0 without Redis."""
        return sum([1 async for _ in self._redis.scan(self._pattern(prefix))])

    async def close(self) -> None:
        """Close the connections."""
        await self._redis.close()

    def _value_key(self, key: str) -> str:
        # The digest comes last, so that a user's values of all versions share a prefix and are erased together.
        return f"{self._key(key)}:{self._schema_digest}"

    def _key(self, key: str) -> str:
        return f"graphmem:{self._prefix}:{key}"

    def _pattern(self, prefix: str) -> str:
        return _WILDCARDS.sub("?", self._key(prefix)) + "*"


def open_cache(url: str | None, prefix: str, adapter: TypeAdapter[T], clock: Clock, ttl_seconds: float) -> Cache[T]:
    """Return a cache in Redis at `url`, or in memory without a `url`."""
    return SharedCache(url, prefix, adapter, ttl_seconds) if url else LocalCache(clock, ttl_seconds)
