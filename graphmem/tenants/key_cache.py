"""Looked-up API keys in memory, for so short a time that a revoked key is soon refused everywhere."""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from graphmem.tenants.access import ApiKey

KEY_TTL_SECONDS = 2.0
"""Seconds for which the result of a look-up is used."""

MAX_KEYS = 10_000
"""Results that are kept, of valid and of unknown keys each; the oldest are dropped first."""


@dataclass(frozen=True, slots=True)
class _LookUp:
    key: ApiKey | None
    time: float


class KeyCache:
    """Results of look-ups by the hash of the key.

    Results that have expired are kept to distinguish keys that were valid from those that never were.
    """

    def __init__(self) -> None:
        self._valid: OrderedDict[str, _LookUp] = OrderedDict()
        self._unknown: OrderedDict[str, _LookUp] = OrderedDict()
        self._expired_before = 0.0

    def is_known(self, key_hash: str) -> bool:
        """Return whether the last look-up of a hash found a valid key."""
        return key_hash in self._valid

    async def get(self, key_hash: str, look_up: Callable[[], Awaitable[ApiKey | None]]) -> ApiKey | None:
        """Return the key of a hash, from memory or by `look_up`; None for an unknown one."""
        cached = self._valid.get(key_hash) or self._unknown.get(key_hash)
        if cached and cached.time > max(self._expired_before, time.monotonic() - KEY_TTL_SECONDS):
            return cached.key
        started = time.monotonic()
        key = await look_up()
        self._valid.pop(key_hash, None)
        self._unknown.pop(key_hash, None)
        # The time before the query: a result that is older than a change must not outlive it.
        found = self._valid if key else self._unknown
        found[key_hash] = _LookUp(key, started)
        if len(found) > MAX_KEYS:
            found.popitem(last=False)
        return key

    def clear(self) -> None:
        """Use no result of a look-up that has started before now."""
        self._expired_before = time.monotonic()
