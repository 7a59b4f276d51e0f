"""Progress of long operations, and reports of what startup is waiting for."""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    from graphmem.runtime.artifacts import DownloadProgress


QUIET_SECONDS = 2.0
"""Seconds that startup may wait before it reports what it is waiting for."""

REPEAT_SECONDS = 10.0
"""Seconds between two reports of the same wait or download."""


class StartProgress:
    """Reports what startup is waiting for: sentences to `write`, bytes downloaded and in total to `on_download`.

    Without `on_download`, downloads are reported in sentences; without either, nothing is reported.
    """

    def __init__(self, write: Callable[[str], None] | None = None, on_download: DownloadProgress | None = None) -> None:
        self._write = write
        self._on_download = on_download
        self._next_report = 0.0

    @classmethod
    def on_standard_error(cls) -> Self:
        """Return a StartProgress that writes lines to standard error."""
        return cls(lambda sentence: print(f"graphmem: {sentence}", file=sys.stderr, flush=True))

    def download(self, downloaded: int, total: int) -> None:
        """Report the bytes downloaded so far and in total; as sentences at the start, at the end, and at intervals."""
        if self._on_download is not None:
            self._on_download(downloaded, total)
        elif self._write is not None:
            is_complete = downloaded >= total
            if is_complete or time.monotonic() >= self._next_report:
                self._next_report = time.monotonic() + REPEAT_SECONDS
                done = f"{100 * downloaded // total} %" if total else "100 %"
                self._write(f"downloading {total / 1e6:.0f} MB, once: {done}")
            if is_complete:
                self._next_report = 0.0

    @asynccontextmanager
    async def waiting_for(self, what: str, *, quiet_seconds: float = QUIET_SECONDS) -> AsyncIterator[None]:
        """Report what the block waits for: first after `quiet_seconds`, then at intervals."""
        if self._write is None:
            yield
            return
        reports = asyncio.create_task(self._report_wait(self._write, what, quiet_seconds))
        try:
            yield
        finally:
            reports.cancel()

    @staticmethod
    async def _report_wait(write: Callable[[str], None], what: str, quiet_seconds: float) -> None:
        started = time.monotonic()
        await asyncio.sleep(quiet_seconds)
        write(f"{what} …")
        while True:
            await asyncio.sleep(REPEAT_SECONDS)
            write(f"{what} … ({time.monotonic() - started:.0f} s)")


ProgressCallback = Callable[[int, int], None]
"""Called with the number of entries done and the number of entries in total."""


def ignore_progress(_done: int, _total: int) -> None:
    """Report nothing."""


class ProgressCounter:
    """Counts finished entries and reports the count to a callback."""

    def __init__(self, progress: ProgressCallback, total: int) -> None:
        self._progress = progress
        self._total = total
        self._done = 0

    def add(self, count: int) -> None:
        """Count `count` more entries as done and report the progress."""
        self._done += count
        self._progress(self._done, self._total)
