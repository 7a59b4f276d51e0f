"""Process-wide settings: for graphmem's own processes, and for processes that use it as a library."""

from __future__ import annotations

import asyncio
import contextvars
import ctypes
import gc
import os
import sys
from collections.abc import Callable, Coroutine, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any, TypeVar

T = TypeVar("T")


_is_own = False


def is_own() -> bool:
    """Return whether the process is graphmem's own, to be configured freely, rather than a caller's."""
    return _is_own


def run(work: Coroutine[Any, Any, T]) -> T:
    """Run the main coroutine of one of graphmem's own processes, and return its result."""
    global _is_own
    _is_own = True
    if sys.platform == "win32":
        return asyncio.run(work)
    import uvloop

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(work)


_COLLECTION_THRESHOLD = 10_000
"""New objects between two collections: a search creates thousands, hardly any of them part of a cycle."""

_MALLOC_ARENAS = 2
"""C library heaps shared by threads; by default two cores get 16, each of which keeps some free memory."""

_M_ARENA_MAX = -8
"""glibc's number for the limit on these heaps."""


def prepare_server() -> None:
    """Prepare a server process, before it imports the application and starts threads.

    Call it only in graphmem's own processes. No garbage is collected until `freeze_startup_objects`: imports create
    half a million objects that stay, and collections in between take a fifth of the startup time.
    """
    gc.disable()
    if (libc := _glibc()) is not None:
        libc.mallopt(_M_ARENA_MAX, _MALLOC_ARENAS)


def freeze_startup_objects() -> None:
    """Collect garbage once, exclude the remaining objects from later collections, and return free memory.

    Call it only in graphmem's own processes, because it affects every object of the process. Without it, each full
    collection traverses half a million objects of imported modules, for a tenth of a second. Repeated calls handle only
    objects created since the last one.
    """
    gc.collect()
    gc.freeze()
    gc.enable()
    gc.set_threshold(_COLLECTION_THRESHOLD, *gc.get_threshold()[1:])
    if (libc := _glibc()) is not None:  # it keeps freed memory
        libc.malloc_trim(0)


def _glibc() -> ctypes.CDLL | None:
    """Return the C library if it is glibc."""
    libc = ctypes.CDLL(None) if sys.platform == "linux" else None
    return libc if hasattr(libc, "malloc_trim") else None


@contextmanager
def environment_defaults(**values: str) -> Iterator[None]:
    """Set unset environment variables during the block, for a library that reads them on import or opening."""
    added = {name: value for name, value in values.items() if name not in os.environ}
    os.environ.update(added)
    try:
        yield
    finally:
        for name in added:
            os.environ.pop(name, None)


INLINE_CHARACTERS = 4_000
"""Characters up to which text is read on the event loop: a few milliseconds, less than a thread switch may take."""

# One thread: the interpreter runs one at a time, and each further thread would delay the event loop more.
_THREAD = ThreadPoolExecutor(max_workers=1, thread_name_prefix="graphmem-text")


async def read_text(characters: int, work: Callable[[], T]) -> T:
    """Return the result of work that reads `characters` characters, using a thread if there are many."""
    if characters <= INLINE_CHARACTERS:
        return work()
    context = contextvars.copy_context()
    return await asyncio.get_running_loop().run_in_executor(_THREAD, lambda: context.run(work))
