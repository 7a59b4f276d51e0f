"""Cache of context snapshots that no write leaves stale."""

from __future__ import annotations

from datetime import timedelta

from cachetools import TTLCache

from graphmem.context.models import ContextSnapshot
from graphmem.context.store import ContextStore
from graphmem.runtime.metrics import HitRate
from graphmem.runtime.times import Clock
from graphmem.tenants.owners import Owner

CACHE_SECONDS = 3600
"""Seconds for which a snapshot is cached."""

CACHE_ENTRIES = 1000
"""Snapshots cached at most; the least recently used one is evicted."""

SnapshotKey = tuple[str, str | None, int]
"""Group id of the user, session id, number of messages."""


class SnapshotCache:
    """Loads snapshots; each load asks the store for a newer version and reuses the cached one when there is none."""

    def __init__(self, store: ContextStore, clock: Clock) -> None:
        self._store = store
        self._clock = clock
        self._entries: TTLCache[SnapshotKey, ContextSnapshot] = TTLCache(
            CACHE_ENTRIES, CACHE_SECONDS, timer=lambda: clock().timestamp()
        )
        self._hit_rate = HitRate("context")

    async def load(self, owner: Owner, session_id: str | None, message_limit: int) -> ContextSnapshot:
        """Return the current snapshot of a user and session, with that many of its latest messages at most."""
        key = (owner.group_id, session_id, message_limit)
        now = self._clock()
        cached = self._entries.get(key)
        reusable = cached if cached is not None and now < cached.valid_until else None
        newer = await self._store.load_snapshot(
            owner,
            session_id,
            message_limit=message_limit,
            valid_until=now + timedelta(seconds=CACHE_SECONDS),
            cached_version=reusable.version if reusable else None,
        )
        if newer is not None:
            self._entries[key] = newer
        self._hit_rate.count(is_hit=newer is None)
        snapshot = newer or reusable
        assert snapshot is not None, "without a cached version the store returns a snapshot"
        return snapshot.as_of(self._clock())

    async def discard_user(self, owner: Owner) -> None:
        """Remove the snapshots of a user."""
        for key in [key for key in self._entries if key[0] == owner.group_id]:
            self._entries.pop(key, None)

    async def count_user(self, owner: Owner) -> int:
        """Return how many snapshots of a user there are."""
        return sum(key[0] == owner.group_id for key in self._entries)
