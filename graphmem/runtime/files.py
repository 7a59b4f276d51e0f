"""A process's files: locks between processes, free disk space, and locations of packaged files."""

from __future__ import annotations

import asyncio
import fcntl
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Self

_POLL_SECONDS = 0.1
"""Seconds between two attempts."""


async def wait_until(condition: Callable[[], bool]) -> None:
    """Wait until a condition holds, which another process may bring about."""
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


_MEGABYTE = 1024**2

MIN_FREE_AFTER_DOWNLOAD = 64 * _MEGABYTE
"""Bytes that must remain free on the cache's disk after a download."""

MIN_FREE_FOR_SERVER = 512 * _MEGABYTE
"""Bytes that must be free on the data folder's disk for the embedded Neo4j to start."""

MIN_FREE_WHILE_STARTING = 16 * _MEGABYTE
"""Free bytes below which a starting server is given up, because it cannot write its logs."""

RECOMMENDED_FREE = 1024 * _MEGABYTE
"""Bytes that must be free for `graphmem doctor` to pass a disk: more than a start needs, so that data can be added."""


def free_bytes(folder: Path) -> int:
    """Return the free bytes on the disk of an existing folder."""
    return shutil.disk_usage(folder).free


def to_megabytes(size: int) -> int:
    """Return a number of bytes in megabytes (2**20 bytes), rounded."""
    return round(size / _MEGABYTE)


_PACKAGE = Path(__file__).parents[1]


def cypher_root() -> Path:
    """Return the folder of the `.cypher` files: inside the installed package, or next to it in a checkout."""
    return _resources("cypher")


def examples_root() -> Path:
    """Return the folder of the example programs: inside the installed package, or next to it in a checkout."""
    return _resources("examples")


def _resources(name: str) -> Path:
    packaged = _PACKAGE / "_resources" / name
    return packaged if packaged.is_dir() else _PACKAGE.parent / name
