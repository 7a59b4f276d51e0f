"""BM25 scores of a few candidate texts, with term statistics of these candidates alone.

The full-text index finds the candidates with the statistics of all users. A term that is in each candidate, such as the
user's name, tells them apart as little as an article does; only statistics of the candidates show that.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence

K1 = 1.2
"""Saturation of a term's count in one text; the usual value."""

B = 0.75
"""Share of the length normalisation, from 0 to 1; the usual value."""


def bm25_scores(query: Sequence[str], documents: Sequence[Sequence[str]]) -> list[float]:
    """Return the BM25 score of each tokenised document for the tokens of a query.

    Robertson and Zaragoza, The Probabilistic Relevance Framework (2009).
    """
    wanted = set(query)
    counts = [{token: document.count(token) for token in wanted.intersection(document)} for document in documents]
    number = len(documents)
    document_counts = Counter(token for count in counts for token in count)
    weights = {token: math.log(1 + (number - n + 0.5) / (n + 0.5)) for token, n in document_counts.items()}
    average = sum(map(len, documents)) / max(1, number) or 1.0
    scores = []
    for count, document in zip(counts, documents, strict=True):
        length = K1 * (1 - B + B * len(document) / average)
        scores.append(sum(weights[token] * n * (K1 + 1) / (n + length) for token, n in count.items()))
    return scores
