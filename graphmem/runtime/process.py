"""What a process sets up for itself: its event loop, its memory, and a thread for work on long texts."""

from __future__ import annotations

import asyncio
import contextvars
import ctypes
import gc
import sys
from collections.abc import Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any, TypeVar

T = TypeVar("T")


def run(work: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine to completion and return its result."""
    if sys.platform == "win32":
        return asyncio.run(work)
    import uvloop

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(work)


_COLLECTION_THRESHOLD = 10_000
"""New objects between two collections: a search makes some thousands, of which hardly any is part of a cycle."""


def settle() -> None:
    """Return memory that only the start needed, and let collections pass over the objects that it left behind.

    A full collection would otherwise look at half a million objects of imported modules, for a tenth of a second.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(_COLLECTION_THRESHOLD, *gc.get_threshold()[1:])
    if sys.platform == "linux" and hasattr(libc := ctypes.CDLL(None), "malloc_trim"):  # glibc keeps what is freed
        libc.malloc_trim(0)


INLINE_CHARACTERS = 4_000
"""Characters up to which text is read on the event loop: some milliseconds, less than a change of threads may wait."""

# One thread: the interpreter runs one at a time, and with each further one the event loop would wait longer.
_THREAD = ThreadPoolExecutor(max_workers=1, thread_name_prefix="graphmem-text")


async def read_text(characters: int, work: Callable[[], T]) -> T:
    """Return the result of work that reads so many characters, in a thread when they are many."""
    if characters <= INLINE_CHARACTERS:
        return work()
    context = contextvars.copy_context()
    return await asyncio.get_running_loop().run_in_executor(_THREAD, partial(context.run, work))
