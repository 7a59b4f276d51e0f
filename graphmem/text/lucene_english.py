"""The terms that Lucene's English analyzer makes of a text: its words in lower case, with the stems of Porter. Pure.

A search in memory finds by them what the full-text indexes of the database find.
"""

from __future__ import annotations

import re
from functools import lru_cache

import Stemmer

MAX_TOKEN_LENGTH = 255
"""Characters of a token; a longer run of letters is cut into several."""

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
"""Those of Lucene."""

_stemmer = Stemmer.Stemmer("porter")


@lru_cache(maxsize=4096)
def lucene_terms(text: str) -> tuple[str, ...]:
    """Return the terms of a text in order, with repetitions; stop words make none."""
    terms = []
    for run in _TOKEN.findall(text):
        if not _ALPHANUMERIC.search(run):
            continue
        for start in range(0, len(run), MAX_TOKEN_LENGTH):
            token = _POSSESSIVE.sub("", run[start : start + MAX_TOKEN_LENGTH]).lower()
            if token not in _STOP_WORDS:
                terms.append(token)
    return tuple(_stemmer.stemWords(terms))
