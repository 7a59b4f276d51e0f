"""The memory of a long-running process once it has started."""

from __future__ import annotations

import ctypes
import gc
import sys

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
