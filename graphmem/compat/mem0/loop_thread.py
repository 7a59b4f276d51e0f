"""An event loop in a thread of its own, in which blocking methods run asynchronous ones."""

from __future__ import annotations

import asyncio
import concurrent.futures.thread  # noqa: F401 - its hook for the end of a program must be registered before ours
import threading
import weakref
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


class LoopThread:
    """Runs coroutines one after another or side by side, until it is closed or the program ends; then `end` runs."""

    def __init__(self, end: Callable[[], Awaitable[None]]) -> None:
        self._loop = asyncio.new_event_loop()
        threading.Thread(target=self._loop.run_forever, name="graphmem-mem0", daemon=True).start()
        self._end = weakref.finalize(self, _stop, self._loop, end)
        # When a program ends, no thread can be started any more by the time `atexit` runs, and closing needs some.
        register = getattr(threading, "_register_atexit", None)
        if register is not None:
            register(self._end)

    def run(self, coroutine: Coroutine[Any, Any, T]) -> T:
        """Return what a coroutine returns; raise RuntimeError once the thread is closed."""
        if not self._end.alive:
            coroutine.close()
            raise RuntimeError("The memory is closed: make another one.")
        return asyncio.run_coroutine_threadsafe(coroutine, self._loop).result()

    def close(self) -> None:
        """Run the end and stop the thread; nothing happens the second time."""
        self._end()


def _stop(loop: asyncio.AbstractEventLoop, end: Callable[[], Awaitable[None]]) -> None:
    async def run_end() -> None:
        await end()

    try:
        asyncio.run_coroutine_threadsafe(run_end(), loop).result()
    finally:
        loop.call_soon_threadsafe(loop.stop)
