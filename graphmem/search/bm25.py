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
    weights = {token: _weight(number, n) for token, n in document_counts.items()}
    average = sum(map(len, documents)) / max(1, number) or 1.0
    scores = []
    for count, document in zip(counts, documents, strict=True):
        length = K1 * (1 - B + B * len(document) / average)
        scores.append(sum(weights[token] * n * (K1 + 1) / (n + length) for token, n in count.items()))
    return scores


def bm25_shares(query: Sequence[str], documents: Sequence[Sequence[str]]) -> list[float]:
    """Return the BM25 score of each document as a share of the sum of the weights of the query's tokens.

    A document of average length that contains every token once has a share of 1; one that is short or repeats them has
    more, up to `1 + K1`. Tokens that no document contains weigh most, so that the share does not depend on the best
    document.
    """
    number = len(documents)
    counts = Counter(token for document in documents for token in set(query).intersection(document))
    total = sum(_weight(number, counts[token]) for token in set(query))
    return [score / total if total else 0.0 for score in bm25_scores(query, documents)]


def _weight(documents: int, containing: int) -> float:
    """Return the weight of a token that so many of the documents contain."""
    return math.log(1 + (documents - containing + 0.5) / (containing + 0.5))
