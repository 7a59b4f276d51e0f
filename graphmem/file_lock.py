"""Locks between processes, kept by the kernel: they end with their process, however it ends."""

from __future__ import annotations

import asyncio
import fcntl
import os
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Self

_POLL_SECONDS = 0.1


async def until(condition: Callable[[], bool]) -> None:
    """Wait until something in another process has come about."""
    while not condition():  # noqa: ASYNC110 - other processes set no event here
        await asyncio.sleep(_POLL_SECONDS)


class FileLock:
    """A lock on a file: exclusive, or `shared` with other shared holders."""

    def __init__(self, path: Path, *, shared: bool = False) -> None:
        self._path = path
        self._mode = fcntl.LOCK_SH if shared else fcntl.LOCK_EX
        self._descriptor: int | None = None

    @property
    def held(self) -> bool:
        """Whether this object holds the lock."""
        return self._descriptor is not None

    def try_acquire(self) -> bool:
        """Take the lock if it is free; say whether it was."""
        descriptor = os.open(self._path, os.O_RDWR | os.O_CREAT, 0o600)
        try:
            fcntl.flock(descriptor, self._mode | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(descriptor)
            return False
        self._descriptor = descriptor
        return True

    async def acquire(self) -> None:
        """Take the lock, waiting for whoever holds it."""
        await until(self.try_acquire)

    def release(self) -> None:
        """Let go of the lock, if held."""
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
