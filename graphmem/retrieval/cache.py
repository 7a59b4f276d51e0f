"""Answers kept for a while: in this process by default, in Redis for several processes.

Keys hold the user's write version, so that an entry of an earlier state is never asked for again.
"""

from __future__ import annotations

from typing import Generic, Protocol, TypeVar

from cachetools import TTLCache
from pydantic import TypeAdapter

from graphmem.domain.times import Clock

T = TypeVar("T")

LOOKUP_TTL_SECONDS = 300
"""How long an answer of the fast path is kept (UMB-06)."""

CORE_TTL_SECONDS = 3600
"""How long core memories are kept (TRUE-25)."""

MAX_ENTRIES = 1000
"""How many entries a cache in memory holds before the least recently used one leaves (TRUE-25)."""


class Cache(Protocol[T]):
    """Values by key, forgotten after a time."""

    async def get(self, key: str) -> T | None:
        """Return the value of a key; None when there is none, or none any more."""

    async def set(self, key: str, value: T) -> None:
        """Keep a value."""

    async def close(self) -> None:
        """Let go of what is held."""


class LocalCache(Generic[T]):
    """A cache in memory: the least recently used entry leaves a full one."""

    def __init__(self, clock: Clock, ttl_seconds: float, entries: int = MAX_ENTRIES) -> None:
        self._entries: TTLCache[str, T] = TTLCache(entries, ttl_seconds, timer=lambda: clock().timestamp())

    async def get(self, key: str) -> T | None:
        """Return the value of a key; None when there is none, or none any more."""
        return self._entries.get(key)

    async def set(self, key: str, value: T) -> None:
        """Keep a value."""
        self._entries[key] = value

    async def close(self) -> None:
        """Forget everything."""
        self._entries.clear()

    def __len__(self) -> int:
        return len(self._entries)


class SharedCache(Generic[T]):
    """A cache in Redis; values are JSON, and a Redis that is away only means that nothing is found."""

    def __init__(self, url: str, prefix: str, adapter: TypeAdapter[T], ttl_seconds: float) -> None:
        from cashews import Cache as Redis

        self._redis = Redis(prefix)
        self._redis.setup(url, suppress=True, disable=False)
        self._prefix, self._adapter, self._ttl_seconds = prefix, adapter, ttl_seconds

    async def get(self, key: str) -> T | None:
        """Return the value of a key; None when there is none, or Redis is away."""
        written = await self._redis.get(self._key(key))
        return None if written is None else self._adapter.validate_json(written)

    async def set(self, key: str, value: T) -> None:
        """Keep a value."""
        await self._redis.set(self._key(key), self._adapter.dump_json(value).decode(), expire=self._ttl_seconds)

    async def close(self) -> None:
        """Close the connections."""
        await self._redis.close()

    def _key(self, key: str) -> str:
        return f"graphmem:{self._prefix}:{key}"


def open_cache(url: str | None, prefix: str, adapter: TypeAdapter[T], clock: Clock, ttl_seconds: float) -> Cache[T]:
    """Return the cache the settings ask for: Redis at `url`, or one in memory."""
    return SharedCache(url, prefix, adapter, ttl_seconds) if url else LocalCache(clock, ttl_seconds)
