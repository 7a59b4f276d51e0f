"""Whether two names may mean one thing: evidence for and against, from the names alone. Pure."""

from __future__ import annotations

from collections.abc import Iterable

from graphmem.text.names import edit_distance, may_be_same_first_name, name_words, strip_possessive
from graphmem.text.word_lists import WESTERN_LANGUAGES, load_words

MAX_TYPO_SHARE = 0.1
"""Largest share of the letters by which two names may differ and still be taken for one with typos.

It is stricter than `max_typos`, which the search and the extraction use: no one checks the names again before two
entities are merged.
"""

MIN_SHORT_FORM_LENGTH = 3
"""Fewest letters of a short form such as "Fred"."""

MIN_DROPPED_LETTERS = 2
"""Fewest letters by which a name is longer than its short form: "Fred" may be "Frederick", "Alex" is not "Alexa"."""

_WORDS = load_words(*WESTERN_LANGUAGES)
_GENERIC_WORDS = _WORDS.generic_name_words | _WORDS.legal_forms


def name_tokens(name: str) -> list[str]:
    """Return the folded words of a name without titles and possessive endings."""
    words = name_words(strip_possessive(name))
    return [word for word in words if word not in _WORDS.titles] or words


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

    A part of a person's name may stand for the person. Of other things only generic words may be missing, as in
    "Acme Corp".
    """
    shorter, longer = sorted((name_tokens(one), name_tokens(other)), key=lambda words: len("".join(words)))
    if not shorter or _words_with_digits(shorter) != _words_with_digits(longer):
        return None
    if "".join(shorter) == "".join(longer):
        return "the same letters"
    if people and may_be_same_person(one, other):
        return "a part or a short form of the name"
    if set(shorter) < set(longer) and set(longer) - set(shorter) <= _GENERIC_WORDS:
        return "the same name with a generic word"
    if len(shorter) == 1 and len(longer) > 1 and shorter[0] == "".join(word[0] for word in longer):
        return "the initials of the name"
    if people and len(shorter) == len(longer) == 1 and _is_clipped(shorter[0], longer[0]):
        return "the beginning of the name"
    if edit_distance("".join(shorter), "".join(longer), int(MAX_TYPO_SHARE * len("".join(longer)))) is not None:
        return "almost the same letters"
    return None


def find_same_name_reason(names: Iterable[str], others: Iterable[str], *, people: bool) -> str | None:
    """Return the first evidence that one of `names` and one of `others` mean one thing, or None."""
    others = list(others)
    pairs = ((name, other) for name in names for other in others)
    return next((reason for one, other in pairs if (reason := same_name_reason(one, other, people=people))), None)


def _words_with_digits(words: Iterable[str]) -> frozenset[str]:
    return frozenset(word for word in words if any(char.isdigit() for char in word))


def _is_clipped(short: str, name: str) -> bool:
    return (
        len(short) >= MIN_SHORT_FORM_LENGTH and len(name) >= len(short) + MIN_DROPPED_LETTERS and name.startswith(short)
    )
