"""Limits on how often something happens for each name; processes share one through Redis where one is configured."""

from __future__ import annotations

import math
import time

from limits import RateLimitItem
from limits.aio.storage import MemoryStorage
from limits.aio.strategies import MovingWindowRateLimiter
from limits.storage import storage_from_string

from graphmem.runtime.errors import RateLimited


class RateLimit:
    """A limit for each name in a moving window; without a rate there is none.

    `reason` begins the error: what has happened too often.
    """

    def __init__(self, rate: RateLimitItem | None, reason: str, cache_url: str | None = None) -> None:
        self._rate = rate
        self._reason = reason
        shared = cache_url and storage_from_string(f"async+{cache_url}", implementation="redispy")
        self._limiter = MovingWindowRateLimiter(shared or MemoryStorage())

    async def check(self, *names: str) -> None:
        """Raise RateLimited with the seconds to wait when the window is full; count nothing."""
        if self._rate is not None and not await self._limiter.test(self._rate, *names):
            await self._refuse(self._rate, *names)

    async def hit(self, *names: str) -> None:
        """Count once; raise RateLimited with the seconds to wait when the window is full."""
        if self._rate is not None and not await self._limiter.hit(self._rate, *names):
            await self._refuse(self._rate, *names)

    async def _refuse(self, rate: RateLimitItem, *names: str) -> None:
        reset_time = (await self._limiter.get_window_stats(rate, *names)).reset_time
        raise RateLimited(
            f"{self._reason}: wait for the seconds in `Retry-After`.",
            retry_after=max(1, math.ceil(reset_time - time.time())),
        )
