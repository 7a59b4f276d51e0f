"""Cyrillic and Greek letters in Latin ones, to compare names across scripts."""

from __future__ import annotations

from graphmem.text.normalising import fold_accents, normalise

_LATIN = str.maketrans(
    dict(zip("абвгдезийклмнопрстуфцыэіїґўј", "abvgdeziiklmnoprstufcyeiigwj", strict=True))
    | {"ж": "zh", "х": "kh", "ч": "ch", "ш": "sh", "щ": "shch", "ъ": "", "ь": "", "ю": "yu", "я": "ya", "є": "ye"}
    | dict(zip("αβγδεζηικλμνξοπρσςτυω", "avgdeziiklmnxoprsstyo", strict=True))
    | {"θ": "th", "φ": "f", "χ": "ch", "ψ": "ps"}
)


def to_latin(text: str) -> str:
    """Return a text folded and in Latin letters as far as it is in Cyrillic or Greek."""
    return fold_accents(normalise(text)).translate(_LATIN)
