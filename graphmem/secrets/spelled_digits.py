"""Digits that are spelled in words, as people dictate the number of a card."""

from __future__ import annotations

import re

from graphmem.secrets.vocabulary import load_vocabulary
from graphmem.text.folding import FoldedText

_DIGIT_OF_WORD = {
    word: str(digit)
    for words in load_vocabulary("digits").lists["words"].values()
    for digit, word in enumerate(words.split("|"))
} | {"oh": "0"}
_WORD = rf"(?:{'|'.join(sorted(_DIGIT_OF_WORD, key=len, reverse=True))})"
_RUN = re.compile(rf"(?<!\w){_WORD}(?:[ ,.\-\n]{{1,3}}{_WORD}){{3,}}+(?!\w)", re.IGNORECASE)
"""Four words or more: fewer are a count, and no secret is as short."""

_RUN_WORD = re.compile(r"[^\W\d_]+")


def fold_spelled_digits(folded: FoldedText) -> FoldedText:
    """Return a text with digits for runs of words of digits, such as `4 1 1 1` for "four one one one"."""
    return folded.replace(_RUN, _to_digits)


def _to_digits(run: re.Match[str]) -> str:
    return " ".join(_DIGIT_OF_WORD[word.lower()] for word in _RUN_WORD.findall(run.group()))
