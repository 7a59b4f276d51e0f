"""Words of a text: their stems, languages, positions of quotes, and terms and queries for Lucene. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import cache, lru_cache

import Stemmer

from graphmem.text.folding import SEARCHED_WORD, UNSPACED_LETTER, folded_words, letter_pairs
from graphmem.text.normalising import fold, fold_accents, normalise
from graphmem.text.word_lists import LANGUAGES, load_words

NUMBER_PATTERN = r"\d+(?:[.,:]\d+)*"
"""A number, a time of day or a version, with the separators inside it."""

WORD_PATTERN = r"[^\W\d_](?:[^\W_]|['’-](?=[^\W_]))*"
"""A word with the apostrophes and hyphens inside it, such as "isn't" or "dairy-free"."""

_LETTERS_AND_DIGITS = re.compile(r"[^\W_]+")


def split_words(text: str) -> list[str]:
    """Return the runs of letters and digits in `text`, in order and as written."""
    return _LETTERS_AND_DIGITS.findall(text)


@cache
def _stemmer(language: str) -> Stemmer.Stemmer | None:
    try:
        return Stemmer.Stemmer(language)
    except KeyError:
        return None


def stem(word: str, language: str = "en") -> str:
    """Return the Snowball stem of a case-folded word, or the word itself for a language without a stemmer."""
    stemmer = _stemmer(language)
    return str(stemmer.stemWord(word)) if stemmer else word


def stem_all(words: Sequence[str], language: str = "en") -> list[str]:
    """Return the stems of words as `stem` does, in one faster call."""
    stemmer = _stemmer(language)
    return stemmer.stemWords(words) if stemmer else [*words]


def stem_prefix(word: str) -> str:
    """Return the common beginning of `word` and its stem, for prefix searches."""
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
"""Scripts that identify a language, in search order: Japanese uses Chinese characters too."""

_LATIN_LANGUAGES = tuple(language for language in LANGUAGES if language != "ru")
_OTHER_SCRIPT = re.compile("[\u0370-\u03ff\u0530-\u1fff]")
_WORD = re.compile(WORD_PATTERN)
_APOSTROPHE = re.compile("['’]")


def script_language(text: str) -> str | None:
    """Return the ISO 639-1 code of the language identified by a text's script, or None for Latin letters."""
    return next((language for language, letters in _SCRIPTS if letters.search(text)), None)


@lru_cache(maxsize=4096)
def detect_languages(text: str) -> tuple[str, ...]:
    """Return the ISO 639-1 codes of the languages that fit a text best; empty if unknown."""
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


_QUOTED_WORD = re.compile(r"\w+")


def find_words(quote: str, text: str) -> tuple[int, int] | None:
    """Return the start and end of the first place in a text that repeats the words of a quote, or None.

    Case, width and characters between words are ignored. A quote without words is never found.
    """
    words = _QUOTED_WORD.findall(fold(quote).text)
    if not words:
        return None
    before = "" if UNSPACED_LETTER.match(words[0]) else r"(?<!\w)"
    after = "" if UNSPACED_LETTER.match(words[-1][-1]) else r"(?!\w)"
    pattern = before + r"[\W_]+".join(map(re.escape, words)) + after
    folded = fold(text)
    match = re.search(pattern, folded.text, re.IGNORECASE)
    return None if match is None else folded.original_span(*match.span())


MAX_QUERY_TERMS = 150
"""Maximum terms of a query; Lucene refuses more than 1,024 clauses, and each term is one clause per field."""

MAX_WORD_LENGTH = 64
"""Maximum characters of a word that are searched for."""

_SYNTAX_CHARACTER = re.compile(r'([+\-&|!(){}\[\]^"~*?:\\/<>=])')
_PUNCTUATION = "".join(map(chr, range(33, 48))) + ":;<=>?@[\\]^`{|}~…“”‘’„«»‹›、。，！？；：（）「」『』·¿¡"


def query_terms(text: str) -> list[str]:
    """Return the first distinct words of `text` in lower case, without surrounding punctuation, and their folded forms.

    Text that is not blank has at least one. A word of an unspaced script counts as one term per letter.
    """
    terms: dict[str, None] = {}
    free = MAX_QUERY_TERMS
    for raw in text.split():
        word = (raw.strip(_PUNCTUATION).lower() or raw.lower())[:MAX_WORD_LENGTH]
        if word in terms:
            continue
        folded = [form for form in folded_words(word) if len(form) > 1 or len(word) == 1]
        cost = max(1, len(UNSPACED_LETTER.findall(word))) + len(folded)
        if cost > free:
            break
        free -= cost
        terms |= dict.fromkeys([word, *folded])
    return list(terms)


def escape_syntax(word: str) -> str:
    """Return `word` with a backslash before each character that is an operator in Lucene's query syntax."""
    return _SYNTAX_CHARACTER.sub(r"\\\1", word)


def build_lucene_query(terms: Sequence[str], group_keys: Iterable[str], fields: Iterable[str]) -> str:
    """Return the query for documents with one of `group_keys` and any of `terms` in any of `fields`.

    The group keys add nothing to a document's score.
    """
    groups = " ".join(f"group_key:{key}" for key in group_keys)
    words = " ".join(map(escape_syntax, terms))
    return f"+({groups})^0 +({' '.join(f'{field}:({words})' for field in fields)})"


MAX_TOKEN_LENGTH = 255
"""Maximum characters of a token; a longer run of letters is cut into several."""

_MARKS = (
    "\u0300-\u036f\u0483-\u0489\u0591-\u05bd\u05bf\u05c1\u05c2\u05c4\u05c5\u05c7\u0610-\u061a\u064b-\u065f\u0670"
    "\u0900-\u0903\u093a-\u094f\u0962\u0963\u0981-\u0983\u09bc-\u09cd\u0a01-\u0a03\u0a3c-\u0a4d\u0b82\u0bbe-\u0bcd"
    "\u0c00-\u0c04\u0c3e-\u0c4d\u0d00-\u0d03\u0d3e-\u0d4d\u200d\ufe00-\ufe0f"
)
"""Combining marks, which belong to the letter before them."""

_IDEOGRAPHS = (
    "\u3040-\u309f\u2e80-\u2fdf\u3005\u3007\u3021-\u3029\u3038-\u303b\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
    "\U00020000-\U0003ffff"
)
"""Hiragana and Han, each character of which is a token."""

_KATAKANA = "\u30a0-\u30fa\u30fc-\u30ff\u31f0-\u31ff\uff66-\uff9f"

_LETTER = rf"[^\W\d_{_IDEOGRAPHS}{_KATAKANA}]"
_PART = rf"[^\W{_IDEOGRAPHS}{_KATAKANA}][{_MARKS}]*+"
_TOKEN = re.compile(
    rf"[{_IDEOGRAPHS}][{_MARKS}]*+|[{_KATAKANA}][{_KATAKANA}{_MARKS}_]*+"
    rf"|(?:{_PART}|(?<={_LETTER})['’‘.:·․‧﹒＇．：](?={_LETTER})|(?<=\d)['’‘.․﹒＇．,;٬،؛︐︔﹐﹔，；](?=\d))++"
)
_ALPHANUMERIC = re.compile(r"[^\W_]")
_POSSESSIVE = re.compile(r"['’＇][sS]\Z")

_STOP_WORDS = frozenset(
    {"a", "an", "and", "are", "as", "at", "be", "but", "by", "for", "if", "in", "into", "is", "it", "no", "not", "of"}
    | {"on", "or", "such", "that", "the", "their", "then", "there", "these", "they", "this", "to"}
    | {"was", "will", "with"}
)
"""Lucene's stop words."""

_porter_stemmer = Stemmer.Stemmer("porter")


@lru_cache(maxsize=4096)
def lucene_terms(text: str) -> tuple[str, ...]:
    """Return the terms of a text in order, with repetitions, excluding stop words."""
    terms = []
    for run in _TOKEN.findall(text):
        if not _ALPHANUMERIC.search(run):
            continue
        for start in range(0, len(run), MAX_TOKEN_LENGTH):
            token = _POSSESSIVE.sub("", run[start : start + MAX_TOKEN_LENGTH]).lower()
            if token not in _STOP_WORDS:
                terms.append(token)
    return tuple(_porter_stemmer.stemWords(terms))
