"""The primitives of comparing names; what a likeness means is decided by the packages that compare them."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable
from functools import cache

from nicknames import NickNamer
from rapidfuzz.distance import OSA

from graphmem.text.normalising import fold_accents, normalise

POSSESSIVE_ENDING = re.compile(r"['’]s\b")
"""The ending of a possessive, as in "Mara's sister"."""

_POSSESSIVE_PHRASE = re.compile(r"(?:['’]s|s['’]) ")
_ASCII_WORD = re.compile("[a-z0-9]+")


def fold_name(name: str) -> str:
    """Return a name as names are compared: case, width, accents and punctuation gone, words separated by one space."""
    if name.isascii():
        return " ".join(_ASCII_WORD.findall(name.lower()))
    folded = fold_accents(normalise(name))
    return " ".join("".join(char if _is_part_of_word(char) else " " for char in folded).split())


def name_words(name: str) -> list[str]:
    """Return the words of a name as they are compared."""
    return fold_name(name).split()


def words_with_digits(words: Iterable[str]) -> frozenset[str]:
    """Return the words that hold a digit, which are the same in two names only if they are equal."""
    return frozenset(word for word in words if any(char.isdigit() for char in word))


def strip_possessive(text: str) -> str:
    """Return `text` without the endings of possessives."""
    return POSSESSIVE_ENDING.sub("", text)


def is_possessive_phrase(name: str) -> bool:
    """Return whether a name only describes a relation, such as "Mara's sister"."""
    return _POSSESSIVE_PHRASE.search(name) is not None


def max_typos(length: int) -> int:
    """Return how many typos a name of `length` characters may contain: none below 5, one below 9, else two."""
    if length < 5:
        return 0
    return 1 if length < 9 else 2


def edit_distance(one: str, other: str, limit: int) -> int | None:
    """Return the inserted, deleted, replaced and transposed characters between two texts; None above `limit`."""
    distance = OSA.distance(one, other, score_cutoff=limit)
    return distance if distance <= limit else None


def is_first_name(word: str) -> bool:
    """Return whether a word is an English first name or nickname."""
    return word.casefold() in _first_names()


def may_be_same_first_name(one: str, other: str) -> bool:
    """Return whether two folded first names are equal, or one is the initial or a nickname of the other."""
    if one == other or (1 in (len(one), len(other)) and one[0] == other[0]):
        return True
    nicknames = _nicknames()
    return one in nicknames.nicknames_of(other) or other in nicknames.nicknames_of(one)


def first_name_forms(word: str) -> frozenset[str]:
    """Return the nicknames of a folded first name and the names of which it is a nickname."""
    nicknames = _nicknames()
    return frozenset([*nicknames.nicknames_of(word), *nicknames.canonicals_of(word)])


def _is_part_of_word(char: str) -> bool:
    return char.isalnum() or unicodedata.category(char)[0] == "M"


@cache
def _nicknames() -> NickNamer:
    return NickNamer()


@cache
def _first_names() -> frozenset[str]:
    nicknames = _nicknames()
    return frozenset([*nicknames.nickname_lookup, *nicknames.canonical_lookup])
