"""A bounded cache for pure functions of a text, which reads long texts again so that its memory is bounded too."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache, wraps
from typing import Concatenate, ParamSpec, TypeVar

MAX_KEPT_CHARACTERS = 500
"""Longest text whose result is kept; most statements and messages are shorter."""

MAX_KEPT_TEXTS = 8192
"""Texts of which a function keeps the results: the statements and messages of some twenty active users."""

P = ParamSpec("P")
T = TypeVar("T")


def cache_short_texts(function: Callable[Concatenate[str, P], T]) -> Callable[Concatenate[str, P], T]:
    """Return the function with the results of the short texts that were given last; they must be immutable."""
    cached: Callable[..., T] = lru_cache(maxsize=MAX_KEPT_TEXTS)(function)

    @wraps(function)
    def call(text: str, /, *args: P.args, **kwargs: P.kwargs) -> T:
        kept = len(text) <= MAX_KEPT_CHARACTERS
        return cached(text, *args, **kwargs) if kept else function(text, *args, **kwargs)

    return call
