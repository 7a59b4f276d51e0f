"""A thread for work that reads long texts, so that the event loop goes on serving other requests."""

from __future__ import annotations

import asyncio
import contextvars
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TypeVar

T = TypeVar("T")

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
