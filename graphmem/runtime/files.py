"""Locks between processes; the kernel releases a lock when its process ends, even after a crash."""

from __future__ import annotations

import asyncio
import fcntl
import os
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Self

_POLL_SECONDS = 0.1
"""Seconds between two attempts."""


async def wait_until(condition: Callable[[], bool]) -> None:
    """Wait until a condition holds that another process brings about."""
    while not condition():  # noqa: ASYNC110 - other processes set no event here
        await asyncio.sleep(_POLL_SECONDS)


class FileLock:
    """A lock on a file: exclusive, or `shared` with other shared holders."""

    def __init__(self, path: Path, *, shared: bool = False) -> None:
        self._path = path
        self._mode = fcntl.LOCK_SH if shared else fcntl.LOCK_EX
        self._descriptor: int | None = None

    @property
    def is_held(self) -> bool:
        """Whether this object holds the lock."""
        return self._descriptor is not None

    def try_acquire(self) -> bool:
        """Take the lock if it is free; return whether this succeeded."""
        descriptor = os.open(self._path, os.O_RDWR | os.O_CREAT, 0o600)
        try:
            fcntl.flock(descriptor, self._mode | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(descriptor)
            return False
        self._descriptor = descriptor
        return True

    async def acquire(self) -> None:
        """Take the lock; wait until it is free."""
        await wait_until(self.try_acquire)

    def release(self) -> None:
        """Release the lock if this object holds it."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None

    async def __aenter__(self) -> Self:
        await self.acquire()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.release()
