"""Additional words for full-text search: folded, and by pairs of letters in scripts without spaces. Pure."""

from __future__ import annotations

import re

from graphmem.text.normalising import ACCENTS, fold_accents, normalise

UNSPACED_SCRIPTS = (
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af\uf900-\ufaff\U00020000-\U0003ffff"
)
"""Thai, Lao, Burmese, Khmer, Kana, Han and Hangul, as ranges of a regular expression's character class.

Hangul is included although Korean has spaces, because particles are attached to its words.
"""

UNSPACED_LETTER = re.compile(f"[{UNSPACED_SCRIPTS}]")

SEARCHED_WORD = re.compile(rf"[{UNSPACED_SCRIPTS}]+|[^\W_{UNSPACED_SCRIPTS}]+")
"""A run of an unspaced script, or of other letters and digits."""

_WHOLE_RUNS = re.compile("[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u30a0-\u30ff\uac00-\ud7af]+")
"""Runs of the unspaced scripts that Lucene does not divide into characters."""

_ACCENTED = "\u02bc"
"""A letter used as an accent: a word written with one is not a folded word."""

FOLDED_TEXT = "folded_text"
"""The property of facts and messages that a full-text index reads in addition to their texts."""


def letter_pairs(text: str) -> list[str]:
    """Return all pairs of adjacent letters of `text`, the terms of a script without spaces."""
    return [text[start : start + 2] for start in range(len(text) - 1)]


def folded_words(text: str) -> list[str]:
    """Return the additional search words of `text`: those that differ once folded.

    They are folded like entity names: compatible forms, case, accents. A run of an unspaced script gives its letters
    and pairs of letters.
    """
    if text.isascii():
        return []
    folded = fold_accents(normalise(text))
    written = set(SEARCHED_WORD.findall(ACCENTS.sub(_ACCENTED, text.lower())))
    words = [word for word in SEARCHED_WORD.findall(folded) if word not in written]
    for run in _WHOLE_RUNS.findall(folded):
        words += [*run, *letter_pairs(run)]
    return list(dict.fromkeys(words))


def join_folded_words(*texts: str | None) -> str | None:
    """Return the folded words of texts as stored in `FOLDED_TEXT`; None if there are none."""
    return " ".join(folded_words("\n".join(text for text in texts if text))) or None
