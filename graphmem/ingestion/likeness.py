"""When two names may mean one entity. Pure."""

from __future__ import annotations

import unicodedata
from enum import IntEnum

from rapidfuzz import fuzz

from graphmem.domain.entity import DEFAULT_TYPE
from graphmem.domain.text import normalise

NEAR = 0.82
"""Cosine of two names from which on they may be spellings or translations of each other."""

_FORMS = frozenset(["inc", "ltd", "llc", "gmbh", "ag", "plc", "corp", "co", "kg", "bv", "srl", "the"])
"""Words that say no more than what kind of company it is."""


class Likeness(IntEnum):
    """How alike two names are."""

    DIFFERENT = 0
    DOUBTFUL = 1
    SAME = 2


def likeness(name: str, type: str | None, known: str, known_type: str | None, similarity: float) -> Likeness:
    """Return whether two names mean the same: SAME but for accents, punctuation and legal forms; DOUBTFUL where one is
    part of the other, a few letters differ, or their vectors are near (`similarity`, a cosine); else DIFFERENT.
    """
    if not _types_agree(type, known_type):
        return Likeness.DIFFERENT
    words, known_words = _words(name), _words(known)
    if not words or not known_words:
        return Likeness.DIFFERENT
    if words == known_words:
        return Likeness.SAME
    if set(words) < set(known_words) or set(known_words) < set(words):
        return Likeness.DOUBTFUL
    if are_two_people(name, known):
        return Likeness.DIFFERENT
    if _close("".join(words), "".join(known_words)) or similarity >= NEAR:
        return Likeness.DOUBTFUL
    return Likeness.DIFFERENT


def is_short_form(name: str, full: str) -> bool:
    """Return whether a name is only part of a fuller one, such as a bare first name."""
    return set(_words(name)) < set(_words(full))


def are_two_people(name: str, other: str) -> bool:
    """Return whether two full names share the first name and not the last."""
    words, others = _words(name), _words(other)
    return min(len(words), len(others)) > 1 and words[0] == others[0] and not _close(words[-1], others[-1])


def _types_agree(one: str | None, other: str | None) -> bool:
    unknown = {None, "", DEFAULT_TYPE}
    return one in unknown or other in unknown or one == other


def _words(name: str) -> list[str]:
    folded = unicodedata.normalize("NFD", normalise(name))
    letters = "".join(each if each.isalnum() else " " for each in folded if unicodedata.category(each) != "Mn")
    words = letters.split()
    kept = [word for word in words if word not in _FORMS]
    return kept or words


def _close(one: str, other: str) -> bool:
    return min(len(one), len(other)) >= 5 and fuzz.ratio(one, other) >= 85
