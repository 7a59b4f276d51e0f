"""How far something long has come."""

from __future__ import annotations

from collections.abc import Callable

ProgressCallback = Callable[[int, int], None]
"""Told how many entries of a whole are done, and how many there are."""


def ignore_progress(_done: int, _of: int) -> None:
    """Tell nobody."""


class ProgressCounter:
    """Counts what is done of a whole and tells it on."""

    def __init__(self, progress: ProgressCallback, total: int) -> None:
        self._progress = progress
        self._total = total
        self._done = 0

    def add(self, count: int) -> None:
        """Count further entries as done."""
        self._done += count
        self._progress(self._done, self._total)
