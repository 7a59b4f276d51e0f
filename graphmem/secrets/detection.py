"""Common parts of the secret detectors: classes, findings, words, and the undoing of disguises.

A table is a list, a key its language, a value alternatives of a regular expression separated by `|`, on any number of
lines. To add a language, add keys, and sentences to `tests/secrets/secret_sentences.yaml`.
"""

from __future__ import annotations

import html
import re
import tomllib
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from itertools import groupby, product
from operator import itemgetter
from typing import Literal, get_args

from graphmem.text.normalising import FoldedText, fold
from graphmem.text.word_lists import LANGUAGES, load_words

SecretClass = Literal[
    "card", "iban", "ssn", "api_key", "password", "birth_date", "account_number", "email", "phone", "street_address"
]
"""The classes of secrets; a finding of an earlier class hides those within it."""

SECRET_CLASSES: tuple[SecretClass, ...] = get_args(SecretClass)


@dataclass(frozen=True, slots=True)
class SecretFinding:
    """One secret in a text: its class and its half-open range of characters."""

    cls: SecretClass
    start: int
    end: int


Span = tuple[int, int]
"""A half-open range of characters in folded text."""


@dataclass(frozen=True, slots=True)
class Vocabulary:
    """Lists of alternatives by list name and language."""

    lists: Mapping[str, Mapping[str, str]]

    def any_of(self, *names: str) -> str:
        """Return a group that matches any alternative of the named lists."""
        return f"(?:{'|'.join(alternatives for name in names for alternatives in self.lists[name].values())})"


def load_vocabulary(name: str) -> Vocabulary:
    """Return the lists of `words/<name>.toml` and those shared by all detectors."""
    return Vocabulary(_read("shared") | _read(name))


@cache
def month_pattern() -> str:
    """Return a group that matches the name of a month in any language."""
    # Months are grouped by first letter, because "re" tries all alternatives of a group one by one.
    groups = groupby(sorted(load_words(*LANGUAGES).months), key=itemgetter(0))
    return f"(?:{'|'.join(f'{initial}(?:{_alternatives(months)})' for initial, months in groups)})"


def _alternatives(months: Iterable[str]) -> str:
    return "|".join(month[1:] for month in months)


@cache
def _read(name: str) -> dict[str, dict[str, str]]:
    tables = tomllib.loads((files("graphmem.secrets") / "words" / f"{name}.toml").read_text("utf-8"))
    return {
        table: {language: "".join(map(str.strip, text.splitlines())) for language, text in languages.items()}
        for table, languages in tables.items()
    }


_DIGITS = load_vocabulary("digits").lists
_DIGIT_OF_WORD = {
    word: str(digit) for words in _DIGITS["words"].values() for digit, word in enumerate(words.split("|"))
} | {"oh": "0"}
_TIMES_OF_WORD = {
    word: times for words in _DIGITS["times"].values() for times, word in enumerate(words.split("|"), start=2)
}
_TWO_DIGITS_OF_WORD = {word: digits for word, digits in load_words(*LANGUAGES).numbers.items() if len(digits) == 2}
_WORD = rf"(?:{'|'.join(sorted({*_DIGIT_OF_WORD, *_TWO_DIGITS_OF_WORD}, key=len, reverse=True))})"
_TIMES = rf"(?:{'|'.join(_TIMES_OF_WORD)})"
_ITEM = rf"(?:{_TIMES}[ \-])?(?:{_WORD}|\d(?!\d))"
_RUN = re.compile(
    rf"(?<!\w)(?=[\d ,.;\-\n]{{0,60}}[^\W\d_]){_ITEM}(?:[ ,.;\-\n]{{1,3}}{_ITEM}){{1,}}+(?!\w)", re.IGNORECASE
)
"""A run of digit words, which may contain single digits."""

_FEWEST_SPELLED = 4
"""Minimum number of digits in such a run: fewer are a count, and no secret is that short."""

_RUN_WORD = re.compile(r"[^\W\d_]+|\d")


def fold_spelled_digits(folded: FoldedText) -> FoldedText:
    """Return a text with digits for runs of digit words and of number words below 100.

    "four triple one" becomes `4 1 1 1`, and "five twelve forty-four" becomes `5 12 44`.
    """
    return folded.replace(_RUN, _to_digits)


def _to_digits(run: re.Match[str]) -> str:
    digits: list[str] = []
    times = 1
    for word in map(str.lower, _RUN_WORD.findall(run.group())):
        if word in _TIMES_OF_WORD:
            times = _TIMES_OF_WORD[word]
            continue
        digit = word if word.isdigit() else _DIGIT_OF_WORD.get(word)
        if digit and digit != "0" and times == 1 and digits and re.fullmatch("[2-9]0", digits[-1]):
            digits[-1] = digits[-1][0] + digit
        else:
            digits += [digit or _TWO_DIGITS_OF_WORD[word]] * times
        times = 1
    return " ".join(digits) if len(digits) >= _FEWEST_SPELLED else run.group()


_ESCAPE = re.compile(r"&(?:#\d{1,7}|#[xX][0-9a-fA-F]{1,6}|[A-Za-z]{2,31});|(?<=\w)%(?:20|40|2[DdEe]|3[Aa])(?=\w)")
"""An HTML character reference, or a percent-encoded space, `@`, `-`, `.` or `:` within a word."""

_LATIN_OF_LOOKALIKE = str.maketrans(
    "АВЕЅІЈКМНОРСТУХаеорсухіјѕһԁԛԝΑΒΕΖΗΙΚΜΝΟΡΤΥΧο",
    "ABESIJKMHOPCTYXaeopcyxijshdqwABEZHIKMNOPTYXo",
)
"""The Latin letters that Cyrillic and Greek ones look like, from Unicode's list of confusable characters."""

_MIXED_WORD = re.compile(r"(?=\w*[A-Za-z0-9])(?=\w*[Ͱ-ԯ])\w{2,60}")
"""A word with letters of two scripts, which nobody writes to be read."""

_DIGIT_OF_LOOKALIKE = str.maketrans("lI|OoSB", "1110058")
_LOOKALIKE_NUMBER = re.compile(r"(?<![\w|])(?=[lI|OoSB .\-]{0,30}\d)[\dlI|OoSB](?:[ .\-]?[\dlI|OoSB]){8,40}+(?![\w|])")
"""Nine characters or more, each a digit or a lookalike of one: fewer may be a word."""

_HAS_LOOKALIKE = re.compile(r"[lIOoSB]|\|\|")
"""A letter or two bars: a single bar alone separates groups of digits."""

_IN_GAP = r"[^\d.!?\n$€£¥%\x1f]"
_GAP_BETWEEN_DIGITS = re.compile(rf"(?<=\d)(?![^\W_]){_IN_GAP}{{1,40}}(?<![^\W_])(?=\d)")
_WORD_BETWEEN_DIGITS = re.compile(rf"\d(?![^\W_]){_IN_GAP}{{1,39}}?[^\W\d_]{_IN_GAP}{{0,39}}(?<![^\W_])\d")
_UNIFORM_GAP = " & "
"""A gap that the number detectors only read across if it is the same everywhere."""


def undisguise(folded: FoldedText) -> FoldedText:
    """Return a folded text with disguised characters replaced by the ones they stand for."""
    if "&" in folded.text or "%" in folded.text:
        folded = folded.replace(_ESCAPE, _unescape)
    if not folded.text.isascii():
        folded = folded.replace(_MIXED_WORD, lambda word: word.group().translate(_LATIN_OF_LOOKALIKE))
    return folded.replace(_LOOKALIKE_NUMBER, _lookalikes_to_digits)


def join_digit_groups(folded: FoldedText) -> FoldedText | None:
    """Return a text whose groups of digits have uniform separators, whatever words stand between them.

    None if no words stand between groups of digits.
    """
    if not _WORD_BETWEEN_DIGITS.search(folded.text):
        return None
    return folded.replace(_GAP_BETWEEN_DIGITS, lambda _: _UNIFORM_GAP)


_PIECES = load_vocabulary("pieces")
_PIECE = re.compile(
    rf"(?<!\w)(?:(?P<start>{_PIECES.any_of('starts')})|(?P<middle>{_PIECES.any_of('middles')})"
    rf"|(?P<end>{_PIECES.any_of('ends')}))"
    rf"(?:(?:[ ]{_PIECES.any_of('links')}|[ ]\d(?=[ ])|[ ]?:){{1,5}}[ ][\"'“]?|[ ](?=\d))"
    r"(?P<piece>[^\W_][\w\-*#!@%&+]{0,30}(?:[ ]\d{2,6}(?![\w.,])){0,3})",
    re.IGNORECASE,
)
"""A part of something, with the word that says which part it is."""

_ORDER = ("start", "middle", "end")
_LABEL_BEFORE = re.compile(r"[^.!?\n\x1f]{0,80}$")


def assemble_pieces(text: str) -> Iterator[tuple[str, Span]]:
    """Yield numbers given in pieces in a sentence, as a label followed by the whole, and the span of the pieces.

    For example, "SSN 078051120" for "the SSN ends in 1120 and begins with 078-05".
    """
    for _, group in groupby(_PIECE.finditer(text), key=_SentenceNumber(text)):
        pieces = list(group)
        by_place = {_place(piece): piece["piece"] for piece in pieces}
        if len(by_place) < 2:
            continue
        whole = "".join(re.sub(r"[ \-]", "", by_place[place]) for place in _ORDER if place in by_place)
        span = (pieces[0].start("piece"), pieces[-1].end("piece"))
        for end, joint in product((pieces[0].start(), span[0]), (" ", " is ")):
            label = _LABEL_BEFORE.search(text, 0, end)
            yield f"{label.group().rstrip() if label else ''}{joint}{whole}", span


def _place(piece: re.Match[str]) -> str:
    return next(place for place in _ORDER if piece[place])


class _SentenceNumber:
    """The number of the sentence in which a match begins."""

    def __init__(self, text: str) -> None:
        self._ends = [end.end() for end in re.finditer(r"[.!?](?=\s)|\n", text)]

    def __call__(self, match: re.Match[str]) -> int:
        return bisect_right(self._ends, match.start())


def _unescape(escape: re.Match[str]) -> str:
    text = escape.group()
    if text[0] == "%":
        return chr(int(text[1:], 16))
    return fold(html.unescape(text)).text


def _lookalikes_to_digits(number: re.Match[str]) -> str:
    text = number.group()
    return text.translate(_DIGIT_OF_LOOKALIKE) if _HAS_LOOKALIKE.search(text) else text
