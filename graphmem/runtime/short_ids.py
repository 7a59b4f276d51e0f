"""Short ids: the first characters of an id, which tables show and commands accept."""

from __future__ import annotations

from collections.abc import Collection

from graphmem.runtime.errors import InvalidInput

FULL_ID_CHARS = 36
"""Characters of an id that graphmem makes."""


SHORT_ID_CHARS = 8
"""Characters of a short id; 32 bits of a random id."""


MAX_MATCHES = 5
"""Most ids that a query for a beginning returns; two are enough to tell that it is ambiguous."""


def shorten_id(id: str) -> str:
    """Return the beginning of an id that tables show."""
    return id[:SHORT_ID_CHARS]


def complete_id(given: str, found: Collection[str]) -> str:
    """Return the id of `found`, the ids that begin with `given`; `given` itself when none does.

    Raises InvalidInput when several do and none is equal.
    """
    if given in found or not found:
        return given
    if len(found) > 1:
        raise InvalidInput(f"Several ids begin with {given}: give more characters.")
    return next(iter(found))
