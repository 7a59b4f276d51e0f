"""When two names may mean one entity. Pure."""

from __future__ import annotations

import unicodedata
from enum import IntEnum

from rapidfuzz import fuzz

from graphmem.domain.entity import DEFAULT_ENTITY_TYPE
from graphmem.domain.text import normalise

MIN_NAME_COSINE = 0.82
"""Cosine of two names from which on they may be spellings or translations of each other."""

_LEGAL_FORMS = frozenset(["inc", "ltd", "llc", "gmbh", "ag", "plc", "corp", "co", "kg", "bv", "srl", "the"])
"""Words that say no more than what kind of company it is."""


class NameMatch(IntEnum):
    """How alike two names are."""

    DIFFERENT = 0
    POSSIBLE = 1
    SAME = 2


def match_names(name: str, type: str | None, known: str, known_type: str | None, similarity: float) -> NameMatch:
    """Return whether two names mean the same: SAME but for accents, punctuation and legal forms; POSSIBLE where one is
    part of the other, a few letters differ, or their vectors are near (`similarity`, a cosine); else DIFFERENT.
    """
    if not _are_compatible_types(type, known_type):
        return NameMatch.DIFFERENT
    words, known_words = _significant_words(name), _significant_words(known)
    if not words or not known_words:
        return NameMatch.DIFFERENT
    if words == known_words:
        return NameMatch.SAME
    if set(words) < set(known_words) or set(known_words) < set(words):
        return NameMatch.POSSIBLE
    if are_different_people(name, known):
        return NameMatch.DIFFERENT
    if _is_similar_spelling("".join(words), "".join(known_words)) or similarity >= MIN_NAME_COSINE:
        return NameMatch.POSSIBLE
    return NameMatch.DIFFERENT


def is_short_form(name: str, full: str) -> bool:
    """Return whether a name is only part of a fuller one, such as a bare first name."""
    return set(_significant_words(name)) < set(_significant_words(full))


def are_different_people(name: str, other: str) -> bool:
    """Return whether two full names share the first name and not the last."""
    words, others = _significant_words(name), _significant_words(other)
    return (
        min(len(words), len(others)) > 1 and words[0] == others[0] and not _is_similar_spelling(words[-1], others[-1])
    )


def _are_compatible_types(one: str | None, other: str | None) -> bool:
    unknown = {None, "", DEFAULT_ENTITY_TYPE}
    return one in unknown or other in unknown or one == other


def _significant_words(name: str) -> list[str]:
    folded = unicodedata.normalize("NFD", normalise(name))
    letters = "".join(each if each.isalnum() else " " for each in folded if unicodedata.category(each) != "Mn")
    words = letters.split()
    kept = [word for word in words if word not in _LEGAL_FORMS]
    return kept or words


def _is_similar_spelling(one: str, other: str) -> bool:
    return min(len(one), len(other)) >= 5 and fuzz.ratio(one, other) >= 85
