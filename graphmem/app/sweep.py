"""The sweep: at intervals, what a crash or an outage left undone is done."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from contextlib import suppress

from graphmem.runtime.errors import Unavailable

SWEEP_SECONDS = 30.0
"""Seconds between two sweeps."""

log = logging.getLogger(__name__)


async def attempt(task: Callable[[], Awaitable[int]]) -> None:
    """Run a task that may be repeated; log its failure."""
    try:
        await task()
    except Unavailable as error:
        log.warning("a task is not complete: %s", error.detail)
    except Exception:
        log.exception("a task is not complete")


class Sweep:
    """Runs tasks every `seconds` seconds, by default `SWEEP_SECONDS`.

    Each task returns how many things it has done, and may be repeated.
    """

    def __init__(self, *tasks: Callable[[], Awaitable[int]], seconds: float | None = None) -> None:
        self._tasks = tasks
        self._seconds = SWEEP_SECONDS if seconds is None else seconds
        self._loop: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Sweep now and at intervals until `stop`."""
        self._loop = asyncio.create_task(self._run_periodically())

    async def stop(self) -> None:
        """Stop sweeping."""
        if self._loop is not None:
            self._loop.cancel()
            with suppress(asyncio.CancelledError):
                await self._loop

    async def _run_periodically(self) -> None:
        while True:
            for task in self._tasks:
                await attempt(task)
            await asyncio.sleep(self._seconds)
