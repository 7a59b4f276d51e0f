"""Which failed calls are sent again, and when."""

from __future__ import annotations

import random
from dataclasses import dataclass

from graphmem.runtime.errors import GraphmemError, RateLimited, Unavailable

MAX_RETRY_AFTER_SECONDS = 60
"""Seconds; a call is not retried when the server asks for a longer pause."""

BACKOFF_SECONDS = 0.25
"""Longest pause after the first attempt, in seconds; it doubles with each further attempt."""

MAX_BACKOFF_SECONDS = 10
"""Longest pause that the client chooses itself, in seconds."""


@dataclass(frozen=True, slots=True)
class CallRetryPolicy:
    """Retries calls that may succeed soon, `attempts` attempts in all."""

    attempts: int

    def pause_after(self, attempt: int, error: GraphmemError) -> float | None:
        """Return the seconds to wait after a failed attempt (from 1), or None when the call has failed for good.

        The server's `Retry-After` counts; without it the pause is random, with a limit that grows exponentially.
        """
        if attempt >= self.attempts or not isinstance(error, RateLimited | Unavailable):
            return None
        if error.retry_after is not None:
            return error.retry_after if error.retry_after <= MAX_RETRY_AFTER_SECONDS else None
        return random.uniform(0, min(MAX_BACKOFF_SECONDS, BACKOFF_SECONDS * 2.0 ** (attempt - 1)))
