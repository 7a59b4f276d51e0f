"""Identifiers in a text: words with digits, such as INV-20231 and iPhone 14, in which each digit matters. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from itertools import pairwise
from typing import NamedTuple

from graphmem.text.folding import UNSPACED_SCRIPTS
from graphmem.text.normalising import normalise
from graphmem.text.text_cache import cache_by_text
from graphmem.text.tokenising import tokenize
from graphmem.text.word_lists import load_words

_LETTER_OR_DIGIT = rf"[^\W_{UNSPACED_SCRIPTS}]"
_TOKEN = re.compile(rf"[{UNSPACED_SCRIPTS}]+|{_LETTER_OR_DIGIT}+(?:[-._/]{_LETTER_OR_DIGIT}+)*")
_DIGITS = re.compile(r"\d+")
_JOINT = re.compile(r"(?<=[^\W\d_])[-._/](?=\d)|(?<=\d)[-._/](?=[^\W\d_])")
"""What stands between letters and digits of an identifier in one spelling and not in another: ASR-1603, ASR1603."""

_YEAR = re.compile(r"(?:19|20)\d\d")

_NUMBERED = re.compile(r"[\d.,/-]*\d[^\W\d_]?")
"""A number as the things of a kind have it, such as 1803, 737-800 and 12A."""

_IN_TIME_OR_AMOUNT = re.compile(r"[:$€£¥%]")


class Identifier(NamedTuple):
    """An identifier: its digits with their letters, and its full name by each kind of thing that it may be one of.

    For room 1803 these are `1803` and `{"room0": "room1803"}`; a kind has 0 for each number.
    """

    token: str
    names: Mapping[str, str]


def find_identifiers(text: str, languages: tuple[str, ...]) -> list[Identifier]:
    """Return the identifiers in a text, but no times and amounts.

    An identifier is a word of letters and digits that begins with a letter (INV-20231, LH1400), or a number after a
    word that means something (iPhone 14, room 1803, bus no. 42, but not "in 2023" or "5 km") or after "#".
    """
    return [*_find(text, languages)]


def _find(text: str, languages: tuple[str, ...]) -> Iterator[Identifier]:
    text = normalise(text)
    before: list[str] = []
    end = 0
    for match in _TOKEN.finditer(text):
        gap, (end, written) = text[end : match.start()], (match.end(), match[0])
        if not _DIGITS.search(written):
            before = [*(before if gap.isspace() else []), written]
            continue
        token = _JOINT.sub("", written)
        if token[0].isalpha():
            yield Identifier(token, dict.fromkeys(_kinds_of(token), token))
        elif _NUMBERED.fullmatch(token) and not _IN_TIME_OR_AMOUNT.search(gap[-1:] + text[end : end + 1]):
            names = {f"{word}0": word + token for word in _numbered_words(before, gap, languages)}
            if names:
                yield Identifier(token, names)
        before = []


def _kinds_of(token: str) -> Iterable[str]:
    """Return the kinds of a word with digits: with its own letters, and with any letters and so many digits."""
    return _DIGITS.sub("0", token), re.sub(r"[^\W\d_]", "a", re.sub(r"\d", "0", token))


def _numbered_words(before: list[str], gap: str, languages: tuple[str, ...]) -> Iterator[str]:
    """Yield what a number is the number of: the word before it, and an empty text where it is marked as a number."""
    words = before
    if words and words[-1] in load_words(*languages).numbering_words and gap.strip() in ("", ".", "°"):
        words = words[:-1]
        yield ""
    elif gap.endswith("#"):
        yield ""
    elif gap.strip():
        return
    if words and tokenize(words[-1], languages):
        yield words[-1]


@cache_by_text
def _kinds_and_names(text: str, languages: tuple[str, ...]) -> tuple[frozenset[str], frozenset[str]]:
    """Return the kinds and the names of the identifiers in a text; those of a statement are needed by each search."""
    found = find_identifiers(text, languages)
    kinds = frozenset(kind for identifier in found for kind in identifier.names)
    return kinds, frozenset(name for identifier in found for name in identifier.names.values())


def names_other(asked: Iterable[Identifier], text: str, languages: tuple[str, ...]) -> bool:
    """Return whether a text has an identifier of a kind that is asked for, and none of those asked for."""
    if not _DIGITS.search(text):
        return False
    wanted: dict[str, set[str]] = {}
    for kind, name in ((kind, name) for identifier in asked for kind, name in identifier.names.items()):
        wanted.setdefault(kind, set()).add(name)
    kinds, known = _kinds_and_names(text, languages)
    return any(kind in kinds and known.isdisjoint(names) for kind, names in wanted.items())


def names_each(asked: Iterable[Identifier], text: str) -> bool:
    """Return whether a text has each identifier that is asked for, with or without a separator.

    A number that may be a year is not looked for: what held then need not say so.
    """
    tokens = [_JOINT.sub("", token) for token in _TOKEN.findall(normalise(text))]
    known = {*tokens, *(one + other for one, other in pairwise(tokens))}
    return all(
        identifier.token in known or not known.isdisjoint(identifier.names.values())
        for identifier in asked
        if not _YEAR.fullmatch(identifier.token)
    )
