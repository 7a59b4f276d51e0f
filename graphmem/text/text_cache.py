"""A cache for pure functions of a text: it keeps fewer results of long texts and none of very long ones."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache, wraps
from typing import Concatenate, ParamSpec, TypeVar

MAX_SHORT_CHARACTERS, MAX_SHORT_TEXTS = 500, 8192
"""Maximum characters of a short text, as most are, and the number of short texts whose results a function keeps.

These are the statements and messages of some twenty active users.
"""

MAX_LONG_CHARACTERS, MAX_LONG_TEXTS = 8000, 256
"""The same limits for longer texts, whose results take more memory."""

P = ParamSpec("P")
T = TypeVar("T")


def cache_by_text(function: Callable[Concatenate[str, P], T]) -> Callable[Concatenate[str, P], T]:
    """Return the function with a cache of its most recent results, which must be immutable."""
    short: Callable[..., T] = lru_cache(maxsize=MAX_SHORT_TEXTS)(function)
    long: Callable[..., T] = lru_cache(maxsize=MAX_LONG_TEXTS)(function)

    @wraps(function)
    def call(text: str, /, *args: P.args, **kwargs: P.kwargs) -> T:
        if len(text) <= MAX_SHORT_CHARACTERS:
            return short(text, *args, **kwargs)
        return (long if len(text) <= MAX_LONG_CHARACTERS else function)(text, *args, **kwargs)

    return call
