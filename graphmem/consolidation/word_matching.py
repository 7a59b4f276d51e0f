"""Whether two words of names are one word in another form: inflected, compounded, or in another script. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache

from graphmem.text.names import edit_distance
from graphmem.text.transliterating import to_latin

MIN_COMMON_PREFIX = 4
"""Fewest letters with which two forms of one word begin; words that are shorter begin with all of the shorter one."""

MAX_ENDING = 3
"""Most letters of the ending of a form."""

MIN_COMPOUND_PART = 4
"""Fewest letters of a word that is looked for within a compound."""


@lru_cache(maxsize=65536)
def is_like(one: str, other: str) -> bool:
    """Return whether two case-folded words may be forms of one word."""
    if one == other:
        return True
    shorter, longer = sorted((to_latin(one), to_latin(other)), key=len)
    if not shorter or shorter == longer:
        return shorter == longer
    if len(shorter) >= MIN_COMPOUND_PART and shorter in longer:
        return True
    common = next((at for at, (a, b) in enumerate(zip(shorter, longer, strict=False)) if a != b), len(shorter))
    needed = min(MIN_COMMON_PREFIX, max(len(shorter) - 1, 2)) if not one.isascii() else MIN_COMMON_PREFIX
    if common >= needed and len(shorter) - common <= MAX_ENDING and len(longer) - common <= MAX_ENDING:
        return True
    if common == len(shorter) >= 3 and len(longer) - common <= 2:
        return True
    is_other_script = one.isascii() != other.isascii() and shorter[0] == longer[0]
    return is_other_script and edit_distance(shorter, longer, len(longer) // 3) is not None


def is_like_any(word: str, others: Iterable[str]) -> bool:
    """Return whether a word may be a form of one of `others`."""
    return any(is_like(word, other) for other in others)
