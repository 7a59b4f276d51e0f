"""Words compared by their stems: BM25 over the few texts that are candidates.

The index finds candidates with the statistics of everybody's texts. What is common or rare *among the candidates* says
more: a name that is in each of them tells them apart as little as an article does.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Sequence
from functools import lru_cache

import Stemmer

K1, B = 1.2, 0.75

_FUNCTION_WORD_LIST = """
a an and are as at be been being but by for from if in into is it its no not of on or such that the their then there
these they this to was were will with what when where who whom whose which why how did does do has have had would could
should can may might her his him he she my me i am we you your our us s t
"""
STOP_WORDS = frozenset(_FUNCTION_WORD_LIST.split())
"""English words that ask or join and say nothing of what is asked for."""

_UNSPACED_RANGES = "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff"
_WORD = re.compile(rf"[{_UNSPACED_RANGES}]+|[^\W_{_UNSPACED_RANGES}]+")
_UNSPACED_LETTER = re.compile(f"[{_UNSPACED_RANGES}]")
_STEMMER = Stemmer.Stemmer("english")


@lru_cache(maxsize=8192)
def tokenize(text: str) -> tuple[str, ...]:
    """Return the stems of a text without stop words; scripts without spaces give letters and pairs of them."""
    words: list[str] = []
    for word in _WORD.findall(text.lower()):
        if not word.isascii() and _UNSPACED_LETTER.match(word):
            words.extend(word)
            words.extend(word[at : at + 2] for at in range(len(word) - 1))
        elif word not in STOP_WORDS:
            words.append(word)
    return tuple(_STEMMER.stemWords(words))


def bm25_scores(query: Sequence[str], documents: Sequence[Sequence[str]]) -> list[float]:
    """Return the BM25 score of each document for the query, with the statistics of these documents alone.

    Robertson and Zaragoza, The Probabilistic Relevance Framework (2009), with `k1 = 1.2` and `b = 0.75`.
    """
    wanted = set(query)
    counts = [{token: document.count(token) for token in wanted.intersection(document)} for document in documents]
    number = len(documents)
    seen = Counter(token for count in counts for token in count)
    weights = {token: math.log(1 + (number - n + 0.5) / (n + 0.5)) for token, n in seen.items()}
    average = sum(map(len, documents)) / max(1, number) or 1.0
    scores = []
    for count, document in zip(counts, documents, strict=True):
        length = K1 * (1 - B + B * len(document) / average)
        scores.append(sum(weights[token] * n * (K1 + 1) / (n + length) for token, n in count.items()))
    return scores
