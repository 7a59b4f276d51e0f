"""The language that a text is written in, as far as its script and its frequent words show it."""

from __future__ import annotations

import re
from functools import lru_cache

from graphmem.text.tokenising import WORD_PATTERN
from graphmem.text.word_lists import LANGUAGES, load_words

_SCRIPTS = (
    ("ja", re.compile("[\u3040-\u30ff]")),
    ("ko", re.compile("[\uac00-\ud7af]")),
    ("zh", re.compile("[\u3400-\u9fff]")),
    ("ru", re.compile("[\u0400-\u04ff]")),
)
"""Scripts that identify a language, in the order of the search: Japanese uses Chinese characters too."""

_LATIN_LANGUAGES = tuple(language for language in LANGUAGES if language != "ru")
_OTHER_SCRIPT = re.compile("[\u0370-\u03ff\u0530-\u1fff]")
_WORD = re.compile(WORD_PATTERN)
_APOSTROPHE = re.compile("['’]")


def script_language(text: str) -> str | None:
    """Return the ISO 639-1 code of the language that the script of a text identifies; None for Latin letters."""
    return next((language for language, letters in _SCRIPTS if letters.search(text)), None)


@lru_cache(maxsize=4096)
def detect_languages(text: str) -> tuple[str, ...]:
    """Return the ISO 639-1 codes of the languages that fit a text best; none if it is unknown."""
    if (by_script := script_language(text)) is not None:
        return (by_script,)
    if _OTHER_SCRIPT.search(text):
        return ()
    words = [part for word in _WORD.findall(text.casefold()) for part in _APOSTROPHE.split(word)]
    counts = {
        language: sum(word in load_words(language).function_words for word in words) for language in _LATIN_LANGUAGES
    }
    best = max(counts.values())
    return tuple(language for language, count in counts.items() if count == best) if best else ()
