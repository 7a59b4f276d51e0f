"""Thin disguises of secrets, undone: HTML entities, percent escapes, letters of other scripts, letters for digits."""

from __future__ import annotations

import html
import re

from graphmem.text.folding import FoldedText, fold

_ESCAPE = re.compile(r"&(?:#\d{1,7}|#[xX][0-9a-fA-F]{1,6}|[A-Za-z]{2,31});|(?<=\w)%(?:20|40|2[DdEe]|3[Aa])(?=\w)")
"""A character reference of HTML, or a percent-encoded space, `@`, `-`, `.` or `:` within a word."""

_LATIN_OF_LOOKALIKE = str.maketrans(
    "АВЕЅІЈКМНОРСТУХаеорсухіјѕһԁԛԝΑΒΕΖΗΙΚΜΝΟΡΤΥΧο",
    "ABESIJKMHOPCTYXaeopcyxijshdqwABEZHIKMNOPTYXo",
)
"""The Latin letters that Cyrillic and Greek ones look like, as Unicode's list of confusable characters gives them."""

_MIXED_WORD = re.compile(r"(?=\w*[A-Za-z0-9])(?=\w*[Ͱ-ԯ])\w{2,60}")
"""A word with letters of two scripts, which nobody writes to be read."""

_DIGIT_OF_LOOKALIKE = str.maketrans("lI|OoSB", "1110058")
_LOOKALIKE_NUMBER = re.compile(r"(?<![\w|])(?=[lI|OoSB .\-]{0,30}\d)[\dlI|OoSB](?:[ .\-]?[\dlI|OoSB]){8,40}+(?![\w|])")
"""Nine characters or more of which each is a digit or looks like one: fewer may be a word."""

_HAS_LOOKALIKE = re.compile(r"[lIOoSB]|\|\|")
"""A letter or two bars: a single bar alone separates groups of digits."""

_IN_GAP = r"[^\d.!?\n$€£¥%\x1f]"
_GAP_BETWEEN_DIGITS = re.compile(rf"(?<=\d)(?![^\W_]){_IN_GAP}{{1,40}}(?<![^\W_])(?=\d)")
_WORD_BETWEEN_DIGITS = re.compile(rf"\d(?![^\W_]){_IN_GAP}{{1,39}}?[^\W\d_]{_IN_GAP}{{0,39}}(?<![^\W_])\d")
_UNIFORM_GAP = " & "
"""A gap that the detectors of numbers read across only where it is the same everywhere."""


def undisguise(folded: FoldedText) -> FoldedText:
    """Return a folded text with what the disguised characters stand for."""
    if "&" in folded.text or "%" in folded.text:
        folded = folded.replace(_ESCAPE, _unescape)
    if not folded.text.isascii():
        folded = folded.replace(_MIXED_WORD, lambda word: word.group().translate(_LATIN_OF_LOOKALIKE))
    return folded.replace(_LOOKALIKE_NUMBER, _to_digits)


def join_digit_groups(folded: FoldedText) -> FoldedText | None:
    """Return a text whose groups of digits are separated alike, whatever words stand between them.

    None if no words stand between groups of digits.
    """
    if not _WORD_BETWEEN_DIGITS.search(folded.text):
        return None
    return folded.replace(_GAP_BETWEEN_DIGITS, lambda _: _UNIFORM_GAP)


def _unescape(escape: re.Match[str]) -> str:
    text = escape.group()
    if text[0] == "%":
        return chr(int(text[1:], 16))
    return fold(html.unescape(text)).text


def _to_digits(number: re.Match[str]) -> str:
    text = number.group()
    return text.translate(_DIGIT_OF_LOOKALIKE) if _HAS_LOOKALIKE.search(text) else text
