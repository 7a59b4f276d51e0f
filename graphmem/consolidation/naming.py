"""Whether two names may be one thing's: evidence from the names alone, and what speaks against it. Pure."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable
from functools import cache

from nicknames import NickNamer
from rapidfuzz.distance import Levenshtein

from graphmem.consolidation.lexicon import GENERIC_NAME_WORDS, TITLES

_WORD = re.compile(r"[^\W_]+", re.UNICODE)
MAX_TYPO_SHARE = 0.1
"""Names with at most this share of letters changed are taken for a slip of the pen."""


def name_tokens(name: str) -> list[str]:
    """Return the words of a name, case-folded, without accents, titles and possessive endings."""
    plain = unicodedata.normalize("NFKD", re.sub(r"['’]s\b", "", name))
    bare = "".join(letter for letter in plain if not unicodedata.combining(letter))
    words = _WORD.findall(bare.casefold())
    return [word for word in words if word not in TITLES] or words


@cache
def _nicknames() -> NickNamer:
    return NickNamer()


@cache
def _first_names() -> frozenset[str]:
    names = _nicknames()
    return frozenset([*names.nickname_lookup, *names.canonical_lookup])


def is_first_name(word: str) -> bool:
    """Return whether a word is known as the first name of people (English ones)."""
    return word.casefold() in _first_names()


def _same_first_name(one: str, other: str) -> bool:
    if one == other or (1 in (len(one), len(other)) and one[0] == other[0]):
        return True
    names = _nicknames()
    return one in names.nicknames_of(other) or other in names.nicknames_of(one)


def may_be_same_person(one: str, other: str) -> bool:
    """Return whether nothing in two names of people speaks against one person."""
    first, second = sorted((name_tokens(one), name_tokens(other)), key=len)
    if not first:
        return False
    if set(first) <= set(second):
        return True
    rest = list(second)
    for word in first:
        match = next((each for each in rest if _same_first_name(word, each)), None)
        if match is None:
            return False
        rest.remove(match)
    return True


def same_name_reason(one: str, other: str, *, people: bool) -> str | None:
    """Return why two names may be one thing's, or None where the names alone do not say so.

    A part of a person's name may stand for the person; of other things only what adds nothing, as in Acme Corp.
    """
    first, second = sorted((name_tokens(one), name_tokens(other)), key=lambda words: len("".join(words)))
    if not first or _words_with_digits(first) != _words_with_digits(second):
        return None
    if "".join(first) == "".join(second):
        return "the same letters"
    if people and may_be_same_person(one, other):
        return "a part or a short form of the name"
    if set(first) < set(second) and set(second) - set(first) <= GENERIC_NAME_WORDS:
        return "the same name with a word that adds nothing"
    if len(first) == 1 and len(second) > 1 and first[0] == "".join(word[0] for word in second):
        return "the initials of the name"
    if people and len(first) == len(second) == 1 and _is_short_form(second[0], first[0]):
        return "the beginning of the name"
    letters = max(len("".join(first)), len("".join(second)))
    if Levenshtein.distance("".join(first), "".join(second)) <= MAX_TYPO_SHARE * letters:
        return "almost the same letters"
    return None


def find_same_name_reason(names: Iterable[str], others: Iterable[str], *, people: bool) -> str | None:
    """Return the first reason why one of `names` and one of `others` may name one thing."""
    others = list(others)
    pairs = ((name, other) for name in names for other in others)
    return next((why for one, other in pairs if (why := same_name_reason(one, other, people=people))), None)


def _words_with_digits(words: Iterable[str]) -> frozenset[str]:
    return frozenset(word for word in words if any(letter.isdigit() for letter in word))


def _is_short_form(name: str, short: str) -> bool:
    # Fred begins Frederick; but Alex is not Alexa.
    return len(short) >= 3 and len(name) >= len(short) + 2 and name.startswith(short)
