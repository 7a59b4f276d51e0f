"""Progress of long operations."""

from __future__ import annotations

from collections.abc import Callable

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
