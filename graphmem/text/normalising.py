"""Normal forms under which texts are compared."""

from __future__ import annotations

import re
import unicodedata

_SPACES = re.compile(r"\s+")

_ACCENTS = re.compile("[\u0300-\u036f\u0591-\u05bd\u05bf\u05c1\u05c2\u05c4\u05c5\u05c7\u064b-\u065f]")
"""Combining diacritics, Hebrew points and Arabic vowel signs: marks that writers leave out.

The marks of other scripts, such as Japanese voicing marks and Devanagari vowel signs, change the letter and stay.
"""


def normalise(text: str) -> str:
    """Return `text` in NFKC, case-folded, with each run of white space as one space."""
    return _SPACES.sub(" ", unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).casefold())).strip()


def fold_accents(text: str) -> str:
    """Return `text` without the marks that writers leave out, its other characters composed (NFC)."""
    return unicodedata.normalize("NFC", _ACCENTS.sub("", unicodedata.normalize("NFKD", text)))
