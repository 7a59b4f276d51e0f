"""Whether two names may mean one thing: evidence for and against, from the names alone. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache

from graphmem.text.names import edit_distance, may_be_same_first_name, name_words, strip_possessive
from graphmem.text.normalising import fold, to_latin
from graphmem.text.tokenising import UNSPACED_LETTER, split_words
from graphmem.text.word_lists import WRITTEN_LANGUAGES, load_words

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


MAX_TYPO_SHARE = 0.1
"""Largest share of the letters by which two names may differ and still be taken for one with typos.

It is stricter than `max_typos`, which the search and the extraction use: no one checks the names again before two
entities are merged.
"""

MIN_SHORT_FORM_LENGTH = 3
"""Fewest letters of a short form such as "Fred"."""

MIN_DROPPED_LETTERS = 2
"""Fewest letters by which a name is longer than its short form: "Fred" may be "Frederick", "Alex" is not "Alexa"."""

_WORDS = load_words(*WRITTEN_LANGUAGES)
_GENERIC_WORDS = _WORDS.generic_name_words | _WORDS.legal_forms


PART_OF_NAME = "a part of the name"
"""The reason for which two names of people may mean one, and which is no evidence without another."""

_NEUTRAL_TITLES = frozenset({"dr", "prof", "доктор"})
"""Titles that one person has beside another title."""


def name_tokens(name: str) -> list[str]:
    """Return the folded words of a name without titles and possessive endings."""
    words = name_words(strip_possessive(name))
    return [word for word in words if word not in _WORDS.titles] or words


def mentions_name(text: str, name: str) -> bool:
    """Return whether a text contains every word of a name, as it is or inflected."""
    tokens = name_tokens(name)
    if not tokens:
        return False
    text, name = fold(text).text.casefold(), fold(name).text.casefold()
    if UNSPACED_LETTER.search(name):
        return name in text
    mentioned = {token for word in split_words(text) for token in name_words(word)}
    return all(token in mentioned or (not token.isdigit() and is_like_any(token, mentioned)) for token in tokens)


def may_be_same_person(one: str, other: str) -> bool:
    """Return whether nothing in two names of people is evidence of two people."""
    shorter, longer = sorted((name_tokens(one), name_tokens(other)), key=len)
    if not shorter:
        return False
    if set(shorter) <= set(longer):
        return True
    unmatched = list(longer)
    for word in shorter:
        match = next((candidate for candidate in unmatched if may_be_same_first_name(word, candidate)), None)
        if match is None:
            return False
        unmatched.remove(match)
    return True


def same_name_reason(one: str, other: str, *, people: bool) -> str | None:
    """Return the evidence in two names that they mean one thing, or None.

    A part of a person's name may stand for the person, which `PART_OF_NAME` says. Of other things only generic words
    may be missing, as in "Acme Corp", or a few letters may differ.
    """
    if people and _have_different_titles(one, other):
        return None
    shorter, longer = sorted((name_tokens(one), name_tokens(other)), key=lambda words: len("".join(words)))
    if not shorter or _words_with_digits(shorter) != _words_with_digits(longer):
        return None
    if "".join(shorter) == "".join(longer):
        return "the same letters"
    if one.isascii() != other.isascii() and _is_transliterated(shorter, longer):
        return "the same letters in another script"
    if people and may_be_same_person(one, other):
        return "a short form of the name" if len(shorter) == len(longer) else PART_OF_NAME
    if set(shorter) < set(longer) and set(longer) - set(shorter) <= _GENERIC_WORDS:
        return "the same name with a generic word"
    if len(shorter) == 1 and len(longer) > 1 and shorter[0] == "".join(word[0] for word in longer):
        return "the initials of the name"
    if people and len(shorter) == len(longer) == 1 and _is_clipped(shorter[0], longer[0]):
        return "the beginning of the name"
    if people:
        return None
    if edit_distance("".join(shorter), "".join(longer), int(MAX_TYPO_SHARE * len("".join(longer)))) is not None:
        return "almost the same letters"
    return None


def find_same_name_reason(names: Iterable[str], others: Iterable[str], *, people: bool) -> str | None:
    """Return the best evidence that one of `names` and one of `others` mean one thing, or None."""
    others = list(others)
    reasons = [same_name_reason(name, other, people=people) for name in names for other in others]
    found = sorted((reason for reason in reasons if reason), key=lambda reason: reason == PART_OF_NAME)
    return found[0] if found else None


def _have_different_titles(one: str, other: str) -> bool:
    """Return whether two names have titles that one person does not have both of, such as "Mr" and "Mrs"."""
    titles, other_titles = (
        {word for word in name_words(name) if word in _WORDS.titles} - _NEUTRAL_TITLES for name in (one, other)
    )
    return bool(titles and other_titles) and titles.isdisjoint(other_titles)


def _is_transliterated(words: list[str], others: list[str]) -> bool:
    return len(words) == len(others) and all(
        edit_distance(to_latin(word), to_latin(other), 1 if len(word) > MIN_SHORT_FORM_LENGTH else 0) is not None
        for word, other in zip(words, others, strict=True)
    )


def _words_with_digits(words: Iterable[str]) -> frozenset[str]:
    return frozenset(word for word in words if any(char.isdigit() for char in word))


def _is_clipped(short: str, name: str) -> bool:
    return (
        len(short) >= MIN_SHORT_FORM_LENGTH and len(name) >= len(short) + MIN_DROPPED_LETTERS and name.startswith(short)
    )
