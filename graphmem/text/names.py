"""Names and identifiers in a text: primitives for comparing names, and words in which each digit matters. Pure."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from itertools import pairwise
from typing import NamedTuple

from nicknames import NickNamer
from rapidfuzz.distance import OSA

from graphmem.text.folding import UNSPACED_SCRIPTS
from graphmem.text.normalising import fold_accents, normalise
from graphmem.text.text_cache import cache_by_text
from graphmem.text.tokenising import tokenize
from graphmem.text.word_lists import LANGUAGES, load_words

POSSESSIVE_ENDING = re.compile(r"['’]s\b")
"""The ending of a possessive, as in "Mara's sister"."""

_POSSESSIVE_PHRASE = re.compile(r"(?:['’]s|s['’]) ")
_ASCII_WORD = re.compile("[a-z0-9]+")


def fold_name(name: str) -> str:
    """Return a name in its comparison form: no case, width, accents or punctuation, words separated by one space."""
    if name.isascii():
        words: list[str] = _ASCII_WORD.findall(name.lower())
        return " ".join(words)
    folded = fold_accents(normalise(name))
    return " ".join("".join(char if _is_part_of_word(char) else " " for char in folded).split())


def name_words(name: str) -> list[str]:
    """Return the words of a name in their comparison form."""
    return fold_name(name).split()


def words_with_digits(words: Iterable[str]) -> frozenset[str]:
    """Return the words that contain a digit, which only match between two names if they are equal."""
    return frozenset(word for word in words if any(char.isdigit() for char in word))


def strip_possessive(text: str) -> str:
    """Return `text` without possessive endings."""
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
    """Return the inserted, deleted, replaced and transposed characters between two texts, or None above `limit`."""
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
    """Return the nicknames of a folded first name and the names it is a nickname of."""
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


_LETTER_OR_DIGIT = rf"[^\W_{UNSPACED_SCRIPTS}]"
_TOKEN = re.compile(rf"[{UNSPACED_SCRIPTS}]+|{_LETTER_OR_DIGIT}+(?:[-._/]{_LETTER_OR_DIGIT}+)*")
_DIGITS = re.compile(r"\d+")
_JOINT = re.compile(r"(?<=[^\W\d_])[-._/](?=\d)|(?<=\d)[-._/](?=[^\W\d_])")
"""Separators between letters and digits of an identifier that some spellings omit: ASR-1603, ASR1603."""

_YEAR = re.compile(r"(?:19|20)\d\d")

_NUMBERED = re.compile(r"[\d.,/-]*\d[^\W\d_]?")
"""A number that identifies one thing of a kind, such as 1803, 737-800 and 12A."""

_GROUPED = re.compile(r"\d+(?:[.-]\d+){3,}")
"""Digits in four groups or more, which no date has, such as 10.0.0.1 and 978-3-16-148410-0."""

_IN_TIME_OR_AMOUNT = re.compile(r"[:$€£¥%年月日년월일]")
_NEXT_WORD = re.compile(r"\.?\s+([^\W\d_]+)")


class Identifier(NamedTuple):
    """An identifier: its digits with their letters, and its full name by each kind of thing that it may be one of.

    For room 1803 these are `1803` and `{"room0": "room1803"}`; a kind has 0 for each number.
    """

    token: str
    names: Mapping[str, str]


def find_identifiers(text: str, languages: tuple[str, ...]) -> list[Identifier]:
    """Return the identifiers in a text, excluding times and amounts.

    An identifier is a word of letters and digits that begins with a letter (INV-20231, LH1400), digits in four groups
    or more (10.0.0.1), or a number after a content word (iPhone 14, room 1803, bus no. 42, but not "March 13",
    "since 2023" or "5 km") or after "#".
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
        elif _GROUPED.fullmatch(token):
            yield Identifier(token, {_DIGITS.sub("0", token): token})
        elif _NUMBERED.fullmatch(token) and not _is_in_time_or_amount(token, gap, text[end:]):
            names = {f"{word}0": word + token for word in _numbered_words(before, gap, languages)}
            if names:
                yield Identifier(token, names)
        before = []


def _is_in_time_or_amount(number: str, before: str, after: str) -> bool:
    month = _NEXT_WORD.match(after) if len(number) <= 2 or _YEAR.fullmatch(number) else None
    in_date = month is not None and month[1] in load_words(*LANGUAGES).months
    return in_date or _IN_TIME_OR_AMOUNT.search(before[-1:] + after[:1]) is not None


@cache
def _words_before_times() -> frozenset[str]:
    """Return the words of all languages after which a number is a day or year, as in "March 13" and "since 2020"."""
    words = load_words(*LANGUAGES)
    functional = words.stop_words | words.time_fillers | words.time_prepositions | words.year_introducers
    return functional.union(words.months, words.weekdays)


def _kinds_of(token: str) -> Iterable[str]:
    """Return the kinds of a word with digits: with its own letters, and with any letters and this number of digits."""
    return _DIGITS.sub("0", token), re.sub(r"[^\W\d_]", "a", re.sub(r"\d", "0", token))


def _numbered_words(before: list[str], gap: str, languages: tuple[str, ...]) -> Iterator[str]:
    """Yield the kinds of thing a number may identify: the word before it, and an empty text if marked as a number."""
    words = before
    if words and words[-1] in load_words(*languages).numbering_words and gap.strip() in ("", ".", "°"):
        words = words[:-1]
        yield ""
    elif gap.endswith("#"):
        yield ""
    elif gap.strip():
        return
    if words and words[-1] not in _words_before_times() and tokenize(words[-1], languages):
        yield words[-1]


@cache_by_text
def _kinds_and_names(text: str, languages: tuple[str, ...]) -> tuple[frozenset[str], frozenset[str]]:
    """Return the kinds and names of the identifiers in a text; cached, since every search needs each statement's."""
    found = find_identifiers(text, languages)
    kinds = frozenset(kind for identifier in found for kind in identifier.names)
    return kinds, frozenset(name for identifier in found for name in identifier.names.values())


def names_other(asked: Iterable[Identifier], text: str, languages: tuple[str, ...]) -> bool:
    """Return whether a text has an identifier of a requested kind, but none of the requested identifiers."""
    if not _DIGITS.search(text):
        return False
    wanted: dict[str, set[str]] = {}
    for kind, name in ((kind, name) for identifier in asked for kind, name in identifier.names.items()):
        wanted.setdefault(kind, set()).add(name)
    kinds, known = _kinds_and_names(text, languages)
    return any(kind in kinds and known.isdisjoint(names) for kind, names in wanted.items())


def names_each(asked: Iterable[Identifier], text: str) -> bool:
    """Return whether a text has each requested identifier, with or without a separator.

    A number that may be a year is not required: facts from that time need not say so.
    """
    tokens = [_JOINT.sub("", token) for token in _TOKEN.findall(normalise(text))]
    known = {*tokens, *(one + other for one, other in pairwise(tokens))}
    return all(
        identifier.token in known or not known.isdisjoint(identifier.names.values())
        for identifier in asked
        if not _YEAR.fullmatch(identifier.token)
    )
