"""A limit on the requests in progress, so that a crowd is refused at once instead of slowing everybody down."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

from graphmem.runtime.errors import Unavailable

RETRY_SECONDS = 1
"""Seconds after which a refused request may be sent again."""

RESERVED_SHARE = 4
"""One in so many places is kept from any single key, so that one that sends too much does not shut out the others."""


class Admission:
    """Counts the requests that are worked on, from their headers to the end of their responses.

    A request takes one of `limit` places once its body has arrived: slow senders take none. One key may have requests
    for most places only, and as many bodies on their way.
    """

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._limit_of_key = max(1, limit - limit // RESERVED_SHARE)
        self._in_progress = 0
        self._by_key: Counter[str] = Counter()

    @contextmanager
    def accepted(self, key_id: str) -> Iterator[RequestPlace]:
        """Count a request of a key from its headers to its response; raise Unavailable for one too many of the key."""
        if self._by_key[key_id] >= self._limit_of_key:
            raise Unavailable(
                "This key has too many requests in progress: send this one again after the seconds in `Retry-After`.",
                retry_after=RETRY_SECONDS,
            )
        self._count(key_id, 1, 0)
        try:
            yield RequestPlace(self, key_id)
        finally:
            self._count(key_id, -1, 0)

    def _check_room(self) -> None:
        if self._in_progress >= self._limit:
            raise Unavailable(
                "The server has too many requests in progress: send this one again after the seconds in `Retry-After`.",
                retry_after=RETRY_SECONDS,
            )

    def _count(self, key_id: str, of_key: int, in_progress: int) -> None:
        self._in_progress += in_progress
        self._by_key[key_id] += of_key
        if not self._by_key[key_id]:
            del self._by_key[key_id]


class RequestPlace:
    """What one request counts for: its key, and the server once it is worked on."""

    def __init__(self, admission: Admission, key_id: str) -> None:
        self._admission = admission
        self._key_id = key_id
        self._pauses = 0

    @contextmanager
    def worked_on(self) -> Iterator[None]:
        """Count a request whose body has arrived; raise Unavailable while all places are taken."""
        self._admission._check_room()
        self._admission._count(self._key_id, 0, 1)
        try:
            yield
        finally:
            self._admission._count(self._key_id, 0, -1)

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Count nothing while a request that is worked on waits for a job; afterwards it goes on in any case."""
        self._pauses += 1
        if self._pauses == 1:
            self._admission._count(self._key_id, -1, -1)
        try:
            yield
        finally:
            self._pauses -= 1
            if not self._pauses:
                self._admission._count(self._key_id, 1, 1)
