"""Words, their stems, and the scripts that put no spaces between words."""

from __future__ import annotations

import re
from functools import cache, lru_cache

import Stemmer

from graphmem.text.word_lists import load_words

UNSPACED_SCRIPTS = (
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af\uf900-\ufaff\U00020000-\U0003ffff"
)
"""Thai, Lao, Burmese, Khmer, Kana, Han and Hangul, as ranges of a regular expression's character class.

Hangul is among them although Korean has spaces: its words carry their particles with them.
"""

UNSPACED_LETTER = re.compile(f"[{UNSPACED_SCRIPTS}]")

NUMBER_PATTERN = r"\d+(?:[.,:]\d+)*"
"""A number, a time of day or a version, with the separators inside it."""

WORD_PATTERN = r"[^\W\d_](?:[^\W_]|['’-](?=[^\W_]))*"
"""A word with the apostrophes and hyphens inside it, such as "isn't" or "dairy-free"."""

_LETTERS_AND_DIGITS = re.compile(r"[^\W_]+")
_SEARCHED_WORD = re.compile(rf"[{UNSPACED_SCRIPTS}]+|[^\W_{UNSPACED_SCRIPTS}]+")


def split_words(text: str) -> list[str]:
    """Return the runs of letters and digits in `text`, in order and as they are written."""
    return _LETTERS_AND_DIGITS.findall(text)


@cache
def _stemmer(language: str) -> Stemmer.Stemmer | None:
    try:
        return Stemmer.Stemmer(language)
    except KeyError:
        return None


def stem(word: str, language: str = "en") -> str:
    """Return the Snowball stem of a case-folded word; a word of a language without a stemmer is its own stem."""
    stemmer = _stemmer(language)
    return str(stemmer.stemWord(word)) if stemmer else word


def stem_prefix(word: str) -> str:
    """Return the letters that `word` and its stem begin with, for searches by prefix."""
    prefix = stem(word)
    while not word.startswith(prefix):
        prefix = prefix[:-1]
    return prefix


def letter_pairs(text: str) -> list[str]:
    """Return each two adjacent letters of `text`, the terms of a script without spaces."""
    return [text[start : start + 2] for start in range(len(text) - 1)]


@lru_cache(maxsize=8192)
def tokenize(text: str, languages: tuple[str, ...] = ("en",)) -> tuple[str, ...]:
    """Return the stems of `text` without stop words; an unspaced script gives its letters and pairs of letters.

    Stop words are those of all `languages`, stems those of the first one.
    """
    stop_words = load_words(*languages).stop_words
    tokens: list[str] = []
    for word in _SEARCHED_WORD.findall(text.lower()):
        if not word.isascii() and UNSPACED_LETTER.match(word):
            tokens += [*word, *letter_pairs(word)]
        elif word not in stop_words:
            tokens.append(word)
    stemmer = _stemmer(languages[0]) if languages else None
    return tuple(stemmer.stemWords(tokens)) if stemmer else tuple(tokens)
