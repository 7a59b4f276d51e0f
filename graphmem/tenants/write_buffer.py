"""Values of users that are collected in memory and written later, so that no request waits for them."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Awaitable, Callable
from contextlib import suppress
from contextvars import Context
from typing import Generic, TypeVar

import structlog

from graphmem.neo4j.tenant_context import use_tenant
from graphmem.runtime.errors import Unavailable
from graphmem.tenants.owners import Owner

FLUSH_SECONDS = 2.0
"""Seconds between two writes of a buffer."""

V = TypeVar("V")

_log = structlog.get_logger(__name__)


class WriteBuffer(Generic[V]):
    """Values by user and key, written every `interval_seconds` seconds, by `flush` and by `close`.

    `write` writes the values of one user; `merge` joins a value with an earlier one of the same key.
    """

    def __init__(
        self,
        write: Callable[[Owner, dict[str, V]], Awaitable[None]],
        merge: Callable[[V, V], V],
        interval_seconds: float = FLUSH_SECONDS,
    ) -> None:
        self._write = write
        self._merge = merge
        self._interval_seconds = interval_seconds
        self._pending: dict[Owner, dict[str, V]] = defaultdict(dict)
        self._writer: asyncio.Task[None] | None = None
        self._writing = asyncio.Lock()
        self._closing = asyncio.Event()

    def add(self, owner: Owner, key: str, value: V) -> None:
        """Add a value of a user."""
        self._collect(owner, key, value)
        if self._writer is None or self._writer.done():
            # Not in the context of a request, whose limits end with it.
            self._writer = asyncio.create_task(self._flush_periodically(), context=Context())

    async def flush(self) -> None:
        """Write the collected values, those of one user at a time; keep those that cannot be written."""
        async with self._writing:
            pending, self._pending = self._pending, defaultdict(dict)
            for owner, values in pending.items():
                try:
                    with use_tenant(owner.tenant):
                        await self._write(owner, values)
                except Unavailable as error:
                    _log.warning("buffered values are not written yet", reason=error.detail, values=len(values))
                    for key, value in values.items():
                        self._collect(owner, key, value)

    async def discard_user(self, owner: Owner) -> None:
        """Drop what has been collected for a user, after a write that is under way."""
        async with self._writing:
            self._pending.pop(owner, None)

    async def count_user(self, owner: Owner) -> int:
        """Return how many values of a user have been collected."""
        return len(self._pending.get(owner, ()))

    async def close(self) -> None:
        """Stop the timer and write the remaining values."""
        self._closing.set()
        if self._writer:
            await asyncio.gather(self._writer, return_exceptions=True)
        await self.flush()

    def _collect(self, owner: Owner, key: str, value: V) -> None:
        pending = self._pending[owner]
        pending[key] = self._merge(pending[key], value) if key in pending else value

    async def _flush_periodically(self) -> None:
        while self._pending and not self._closing.is_set():
            with suppress(TimeoutError):
                async with asyncio.timeout(self._interval_seconds):
                    await self._closing.wait()
            await self.flush()
