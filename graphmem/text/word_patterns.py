"""Word lists by language as regular expressions."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

WordsByLanguage = Mapping[str, tuple[str, ...]]
"""Words as regular expressions, by the language they belong to (ISO 639-1)."""


def all_words(words: WordsByLanguage) -> list[str]:
    """Return the words of all languages."""
    return [word for language_words in words.values() for word in language_words]


def compile_words(words: Iterable[str]) -> re.Pattern[str]:
    """Return a pattern that finds any of the words, in any case; without words it finds nothing."""
    alternatives = "|".join(words)
    return re.compile(rf"\b(?:{alternatives})\b" if alternatives else r"(?!)", re.IGNORECASE)
