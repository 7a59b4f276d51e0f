"""A limit on the requests in progress, so that a crowd is refused at once instead of slowing everybody down."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from graphmem.runtime.errors import Unavailable

RETRY_SECONDS = 1
"""Seconds after which a refused request may be sent again."""

RESERVED_SHARE = 4
"""One in so many places is kept from any single key, so that one that sends too much does not shut out the others."""


class Admission:
    """Counts the requests that are worked on; those that wait for a job do not count.

    A request takes one of `limit` places once its body has arrived: slow senders take none. One key may have requests
    for most places only, and as many bodies on their way. `count_waiting` returns how many requests wait for a job.
    """

    def __init__(self, limit: int, count_waiting: Callable[[], int]) -> None:
        self._limit = limit
        self._limit_of_key = max(1, limit - limit // RESERVED_SHARE)
        self._count_waiting = count_waiting
        self._in_progress = 0
        self._by_key: Counter[str] = Counter()

    @contextmanager
    def accepted(self, key_id: str) -> Iterator[None]:
        """Count a request of a key from its headers to its response; raise Unavailable for one too many of the key."""
        if self._by_key[key_id] - self._count_waiting() >= self._limit_of_key:
            raise Unavailable(
                "This key has too many requests in progress: send this one again after the seconds in `Retry-After`.",
                retry_after=RETRY_SECONDS,
            )
        self._by_key[key_id] += 1
        try:
            yield
        finally:
            self._by_key[key_id] -= 1
            if not self._by_key[key_id]:
                del self._by_key[key_id]

    @contextmanager
    def worked_on(self) -> Iterator[None]:
        """Count a request whose body has arrived; raise Unavailable while all places are taken."""
        if self._in_progress - self._count_waiting() >= self._limit:
            raise Unavailable(
                "The server has too many requests in progress: send this one again after the seconds in `Retry-After`.",
                retry_after=RETRY_SECONDS,
            )
        self._in_progress += 1
        try:
            yield
        finally:
            self._in_progress -= 1
