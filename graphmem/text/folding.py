"""Text as scanners read it: compatibility forms folded, invisible characters removed, offsets of the original kept."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

_INVISIBLE = frozenset("\u034f\u115f\u1160\u17b4\u17b5\u180b\u180c\u180d\u180f\u20e3\u3164\uffa0") | {
    chr(code) for code in range(0xFE00, 0xFE10)
}
_DASHES = frozenset("\u2010\u2011\u2012\u2013\u2014\u2015\u2212\u2043\u30fb\uff65\u00b7\u2022\u2027\u22c5")
_QUOTES = {"\u2018": "'", "\u2019": "'", "\u201a": "'", "\u201b": "'", "\u2032": "'", "\u02bc": "'"} | {
    "\u201c": '"', "\u201d": '"', "\u201e": '"', "\u201f": '"', "\u00ab": '"', "\u00bb": '"', "\u2039": '"',
    "\u203a": '"', "\u300c": '"', "\u300d": '"', "\u300e": '"', "\u300f": '"',
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class FoldedText:
    """Folded text and the range of the original behind each of its characters; None stands for the same offsets."""

    text: str
    starts: Sequence[int] | None = None
    ends: Sequence[int] | None = None

    def original_span(self, start: int, end: int) -> tuple[int, int]:
        """Return the range of the original text behind a non-empty range of the folded text."""
        if self.starts is None or self.ends is None:
            return start, end
        return self.starts[start], self.ends[end - 1]


def fold(text: str) -> FoldedText:
    """Return `text` in NFKC with ASCII digits, dashes and quotes, and without invisible characters."""
    if text.isascii():
        return FoldedText(text)
    parts: list[str] = []
    starts: list[int] = []
    ends: list[int] = []
    at, length = 0, len(text)
    while at < length:
        end = at + 1
        while end < length and end - at < 8 and unicodedata.combining(text[end]):
            end += 1
        for char in _fold_cluster(text[at:end]):
            parts.append(char)
            starts.append(at)
            ends.append(end)
        at = end
    return FoldedText("".join(parts), starts, ends)


@lru_cache(maxsize=8192)
def _fold_cluster(cluster: str) -> str:
    return "".join(_fold_char(char) for char in unicodedata.normalize("NFKC", cluster))


def _fold_char(char: str) -> str:
    if char in _INVISIBLE or unicodedata.category(char) == "Cf":
        return ""
    if char in _DASHES:
        return "-"
    if char in _QUOTES:
        return _QUOTES[char]
    digit = unicodedata.decimal(char, None)
    return char if digit is None else str(digit)
