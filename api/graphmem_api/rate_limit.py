"""Per-key rate limiting in a moving window; processes share it through Redis where one is configured."""

from __future__ import annotations

import math
import time

from limits import RateLimitItem, parse
from limits.aio.storage import MemoryStorage
from limits.aio.strategies import MovingWindowRateLimiter
from limits.storage import storage_from_string

from graphmem.runtime.errors import RateLimited
from graphmem.tenants.access import ApiKey


class RateLimiter:
    """Limits the requests of each key; without a rate it limits nothing."""

    def __init__(self, rate: str | None, cache_url: str | None) -> None:
        self._rate: RateLimitItem | None = parse(rate) if rate else None
        shared = cache_url and storage_from_string(f"async+{cache_url}", implementation="redispy")
        self._limiter = MovingWindowRateLimiter(shared or MemoryStorage())

    async def check(self, caller: ApiKey) -> None:
        """Count a request; raise RateLimited with the seconds to wait when the window is full."""
        if self._rate is None or await self._limiter.hit(self._rate, caller.tenant, caller.id):
            return
        reset_time = (await self._limiter.get_window_stats(self._rate, caller.tenant, caller.id)).reset_time
        raise RateLimited(
            f"The limit of this key is {self._rate}: wait for the seconds in `Retry-After`.",
            retry_after=max(1, math.ceil(reset_time - time.time())),
        )
