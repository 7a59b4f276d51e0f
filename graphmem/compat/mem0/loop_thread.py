"""The event loop in a thread of its own in which the blocking classes of a process run the asynchronous ones."""

from __future__ import annotations

import asyncio
import concurrent.futures.thread  # noqa: F401 - its hook for the end of a program must be registered before ours
import threading
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, ClassVar, TypeVar

T = TypeVar("T")


class LoopThread:
    """Runs coroutines until the program ends; what was entrusted to it is closed before."""

    _shared: ClassVar[LoopThread | None] = None
    _lock: ClassVar[threading.Lock] = threading.Lock()

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._closes: list[Callable[[], Awaitable[None]]] = []
        threading.Thread(target=self._loop.run_forever, name="graphmem-mem0", daemon=True).start()
        # When a program ends, no thread can be started any more by the time `atexit` runs, and closing needs some.
        register = getattr(threading, "_register_atexit", None)
        if register is not None:
            register(self._end)

    @classmethod
    def of_process(cls) -> LoopThread:
        """Return the one of this process."""
        with cls._lock:
            if cls._shared is None:
                cls._shared = cls()
            return cls._shared

    def run(self, coroutine: Coroutine[Any, Any, T]) -> T:
        """Return what a coroutine returns."""
        return asyncio.run_coroutine_threadsafe(coroutine, self._loop).result()

    def close_at_end(self, close: Callable[[], Awaitable[None]]) -> None:
        """Call `close` when the program ends, unless `close_now` did."""
        self._closes.append(close)

    def close_now(self, close: Callable[[], Awaitable[None]]) -> None:
        """Call what was given to `close_at_end`; nothing happens the second time."""
        if close in self._closes:
            self._closes.remove(close)
            self.run(_call(close))

    def _end(self) -> None:
        for close in [*self._closes]:
            self.close_now(close)
        self._loop.call_soon_threadsafe(self._loop.stop)


async def _call(close: Callable[[], Awaitable[None]]) -> None:
    await close()
