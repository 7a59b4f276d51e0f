"""Limits how often a client may present unknown API keys."""

from __future__ import annotations

import ipaddress
import math
import time
from collections import OrderedDict
from dataclasses import dataclass

from graphmem.runtime.errors import RateLimited

MAX_CLIENTS = 10_000
"""Clients that are remembered; the one that failed longest ago is forgotten first."""

_IPV6_PREFIX = 64
"""Bits of an IPv6 address that identify a client, who may use all addresses with this prefix."""


@dataclass(slots=True)
class _Bucket:
    tokens: float
    updated: float


class FailureThrottle:
    """A token bucket per client address: `per_minute` failures at once, and as many per minute; 0 is no limit."""

    def __init__(self, per_minute: int) -> None:
        self._capacity = per_minute
        self._buckets: OrderedDict[str, _Bucket] = OrderedDict()

    def check(self, client: str) -> None:
        """Raise RateLimited with the seconds to wait when a client has failed too often."""
        bucket = self._refilled(_client_key(client))
        if bucket is not None and bucket.tokens < 1:
            raise RateLimited(
                "This address has sent too many unknown keys: wait for the seconds in `Retry-After`.",
                retry_after=math.ceil((1 - bucket.tokens) * 60 / self._capacity),
            )

    def count_failure(self, client: str) -> None:
        """Count a failure of a client."""
        if not self._capacity:
            return
        name = _client_key(client)
        bucket = self._refilled(name) or _Bucket(self._capacity, time.monotonic())
        bucket.tokens = max(0.0, bucket.tokens - 1)
        self._buckets[name] = bucket
        self._buckets.move_to_end(name)
        if len(self._buckets) > MAX_CLIENTS:
            self._buckets.popitem(last=False)

    def _refilled(self, name: str) -> _Bucket | None:
        bucket = self._buckets.get(name)
        if bucket is not None:
            now = time.monotonic()
            bucket.tokens = min(self._capacity, bucket.tokens + (now - bucket.updated) * self._capacity / 60)
            bucket.updated = now
        return bucket


def _client_key(address: str) -> str:
    try:
        parsed = ipaddress.ip_address(address)
    except ValueError:
        return address
    if parsed.version == 4 or parsed.ipv4_mapped:
        return address
    return str(ipaddress.ip_network((parsed, _IPV6_PREFIX), strict=False))
