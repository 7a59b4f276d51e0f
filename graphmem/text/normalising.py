"""Normal forms of text, and folding that keeps offsets. Pure."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache

ACCENTS = re.compile("[\u0300-\u036f\u0591-\u05bd\u05bf\u05c1\u05c2\u05c4\u05c5\u05c7\u064b-\u065f]")
"""Combining diacritics, Hebrew points and Arabic vowel signs: marks that writers leave out.

The marks of other scripts, such as Japanese voicing marks and Devanagari vowel signs, change the letter and are kept.
"""


_STROKES = {"ø": "o", "ł": "l", "đ": "d", "ð": "d", "ħ": "h", "ı": "i", "þ": "th", "æ": "ae", "œ": "oe"}
"""Lower-case Latin letters that Unicode does not decompose, with their usual spelling without strokes."""

_BASE_LETTERS = str.maketrans(_STROKES)

FOLDINGS = [*([char, ""] for code in range(0x300, 0x660) if ACCENTS.fullmatch(char := chr(code))), *_STROKES.items()]
"""The replacements of `fold_accents` in a text in NFKD, for queries that fold."""


def normalise(text: str) -> str:
    """Return `text` in NFKC, case-folded, with each run of white space as one space."""
    return " ".join(unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).casefold()).split())


def fold_accents(text: str) -> str:
    """Return `text` without the marks and strokes that writers leave out, with other characters composed (NFC)."""
    return unicodedata.normalize("NFC", ACCENTS.sub("", unicodedata.normalize("NFKD", text))).translate(_BASE_LETTERS)


def is_storable(text: str) -> bool:
    """Return whether `text` contains neither a NUL character nor a lone surrogate."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return "\x00" not in text


def check_storable(text: str) -> str:
    """Return `text` unchanged; raise ValueError if it cannot be stored."""
    if not is_storable(text):
        raise ValueError("contains a NUL character or a lone surrogate, which is not text")
    return text


def remove_unstorable(text: str) -> str:
    """Return `text` with a space for each NUL character and without lone surrogates."""
    return text.replace("\x00", " ").encode("utf-8", "ignore").decode()


def replace_surrogates(text: str) -> str:
    """Return `text` with a question mark for each lone surrogate."""
    return text.encode("utf-8", "replace").decode()


_LATIN = str.maketrans(
    {
        **dict(zip("абвгдезийклмнопрстуфцыэіїґўј", "abvgdeziiklmnoprstufcyeiigwj", strict=True)),
        **{"ж": "zh", "х": "kh", "ч": "ch", "ш": "sh", "щ": "shch", "ъ": "", "ь": "", "ю": "yu", "я": "ya", "є": "ye"},
        **dict(zip("αβγδεζηικλμνξοπρσςτυω", "avgdeziiklmnxoprsstyo", strict=True)),
        **{"θ": "th", "φ": "f", "χ": "ch", "ψ": "ps"},
    }
)


def to_latin(text: str) -> str:
    """Return a text folded, with Cyrillic and Greek letters converted to Latin."""
    return fold_accents(normalise(text)).translate(_LATIN)


_INVISIBLE = frozenset("\u034f\u115f\u1160\u17b4\u17b5\u180b\u180c\u180d\u180f\u20e3\u3164\uffa0") | {
    chr(code) for code in range(0xFE00, 0xFE10)
}
_BRAILLE_BLANK = "\u2800"
_DASHES = frozenset("\u2010\u2011\u2012\u2013\u2014\u2015\u2212\u2043\u30fb\uff65\u00b7\u2022\u2027\u22c5")
_QUOTES = {"\u2018": "'", "\u2019": "'", "\u201a": "'", "\u201b": "'", "\u2032": "'", "\u02bc": "'"} | {
    "\u201c": '"', "\u201d": '"', "\u201e": '"', "\u201f": '"', "\u00ab": '"', "\u00bb": '"', "\u2039": '"',
    "\u203a": '"', "\u300c": '"', "\u300d": '"', "\u300e": '"', "\u300f": '"',
}  # fmt: skip
_NON_ASCII = re.compile(r"[\x00-\x7f]?[^\x00-\x7f]+")
"""Characters that may be folded, with the one before them, which a combining character changes."""

_MAX_CLUSTER = 8
"""Maximum characters that are composed together."""


@dataclass(frozen=True, slots=True)
class FoldedText:
    """Folded text and the range of the original behind each of its characters; None means equal offsets."""

    text: str
    starts: Sequence[int] | None = None
    ends: Sequence[int] | None = None

    def original_span(self, start: int, end: int) -> tuple[int, int]:
        """Return the range of the original text behind a non-empty range of the folded text."""
        if self.starts is None or self.ends is None:
            return start, end
        return self.starts[start], self.ends[end - 1]

    def replace(self, pattern: re.Pattern[str], replacement: Callable[[re.Match[str]], str]) -> FoldedText:
        """Return the text with each match replaced; all replacement characters map to the whole match."""
        builder, at = _Builder(), 0
        for match in pattern.finditer(self.text):
            builder.copy(self, at, match.start())
            builder.add(replacement(match), *self.original_span(match.start(), match.end()))
            at = match.end()
        if not at:
            return self
        builder.copy(self, at, len(self.text))
        return builder.build()


class _Builder:
    """Collects folded characters with the ranges behind them."""

    def __init__(self) -> None:
        self._parts: list[str] = []
        self._starts: list[int] = []
        self._ends: list[int] = []

    def add(self, text: str, start: int, end: int) -> None:
        """Add characters that all map to one range."""
        self._parts.append(text)
        self._starts += [start] * len(text)
        self._ends += [end] * len(text)

    def copy(self, source: FoldedText, start: int, end: int) -> None:
        """Add a range of a folded text unchanged."""
        self._parts.append(source.text[start:end])
        self._starts += range(start, end) if source.starts is None else source.starts[start:end]
        self._ends += range(start + 1, end + 1) if source.ends is None else source.ends[start:end]

    def build(self) -> FoldedText:
        return FoldedText("".join(self._parts), self._starts, self._ends)


def fold(text: str) -> FoldedText:
    """Return `text` in NFKC with ASCII digits, dashes and quotes, without invisible characters and marks on digits."""
    if text.isascii():
        return FoldedText(text)
    original, builder, at = FoldedText(text), _Builder(), 0
    for run in _NON_ASCII.finditer(text):
        builder.copy(original, at, run.start())
        at = _fold_run(text, run.start(), run.end(), builder)
    builder.copy(original, at, len(text))
    return builder.build()


def is_blank(text: str) -> bool:
    """Return whether a text has no visible character, ignoring white space and everything that `fold` removes."""
    return all(char.isspace() or char == _BRAILLE_BLANK or not _fold_char(char) or char < " " for char in text)


def _fold_run(text: str, at: int, limit: int, builder: _Builder) -> int:
    on_digit = False
    while at < limit:
        end = at + 1
        while end < limit and end - at < _MAX_CLUSTER and unicodedata.combining(text[end]):
            end += 1
        folded = _fold_cluster(text[at:end])
        if on_digit and unicodedata.combining(text[at]):
            folded = ""
        else:
            on_digit = folded.isdigit()
        builder.add(folded, at, end)
        at = end
    return at


@lru_cache(maxsize=8192)
def _fold_cluster(cluster: str) -> str:
    composed = unicodedata.normalize("NFKC", cluster)
    if composed[0].isdecimal():
        composed = "".join(char for char in composed if not unicodedata.combining(char))
    return "".join(_fold_char(char) for char in composed)


def _fold_char(char: str) -> str:
    if char in _INVISIBLE or unicodedata.category(char) == "Cf":
        return ""
    if char in _DASHES:
        return "-"
    if char in _QUOTES:
        return _QUOTES[char]
    digit = unicodedata.decimal(char, None)
    return char if digit is None else str(digit)
