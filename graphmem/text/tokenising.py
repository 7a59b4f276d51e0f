"""Words of a text: their language, their stems, and the scripts that put no spaces between words."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache, lru_cache

import Stemmer

from graphmem.text.folding import SEARCHED_WORD, UNSPACED_LETTER, letter_pairs
from graphmem.text.normalising import fold_accents, normalise
from graphmem.text.word_lists import LANGUAGES, load_words

NUMBER_PATTERN = r"\d+(?:[.,:]\d+)*"
"""A number, a time of day or a version, with the separators inside it."""

WORD_PATTERN = r"[^\W\d_](?:[^\W_]|['’-](?=[^\W_]))*"
"""A word with the apostrophes and hyphens inside it, such as "isn't" or "dairy-free"."""

_LETTERS_AND_DIGITS = re.compile(r"[^\W_]+")


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


def stem_all(words: Sequence[str], language: str = "en") -> list[str]:
    """Return the stems of words as `stem` does, in one call, which is faster."""
    stemmer = _stemmer(language)
    return stemmer.stemWords(words) if stemmer else [*words]


def stem_prefix(word: str) -> str:
    """Return the letters that `word` and its stem begin with, for searches by prefix."""
    prefix = stem(word)
    while not word.startswith(prefix):
        prefix = prefix[:-1]
    return prefix


@lru_cache(maxsize=8192)
def tokenize(text: str, languages: tuple[str, ...] = ("en",)) -> tuple[str, ...]:
    """Return the folded stems of `text` without stop words; an unspaced script gives its letters and pairs of letters.

    Stop words are those of all `languages`, stems those of the first one.
    """
    stop_words = load_words(*languages).stop_words
    tokens: list[str] = []
    for word in SEARCHED_WORD.findall(text.lower() if text.isascii() else normalise(text).replace("i\u0307", "i")):
        if not word.isascii() and UNSPACED_LETTER.match(word):
            tokens += [*word, *letter_pairs(word)]
        elif word not in stop_words:
            tokens.append(word)
    stemmer = _stemmer(languages[0]) if languages else None
    stems = stemmer.stemWords(tokens) if stemmer else tokens
    return tuple(stem if stem.isascii() else fold_accents(stem) for stem in stems)


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
