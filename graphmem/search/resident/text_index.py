"""Full text in memory: postings by field and term, ranked by BM25 as Lucene ranks. Pure."""

from __future__ import annotations

import math
from array import array
from collections import Counter
from collections.abc import Sequence
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from graphmem.text.lucene_english import lucene_terms

K1, B = 1.2, 0.75
"""The parameters of Lucene's BM25."""

POSTING_BYTES = 8
"""Memory of one posting: a row and how often the term is in it."""

Rows: TypeAlias = NDArray[np.int64]
Mask: TypeAlias = NDArray[np.bool_]
Scores: TypeAlias = NDArray[np.float64]


class _Field:
    """The postings of one field; a row keeps its number until the whole index is made anew."""

    def __init__(self) -> None:
        self._rows: dict[str, array[int]] = {}
        self._counts: dict[str, array[int]] = {}
        self.lengths = array("i")
        self._documents = 0
        self._total_length = 0

    def append(self, text: str) -> int:
        """Add a row and return how many postings it has."""
        terms = Counter(lucene_terms(text))
        row, length = len(self.lengths), terms.total()
        self.lengths.append(length)
        self._documents += length > 0
        self._total_length += length
        for term, count in terms.items():
            if term not in self._rows:
                self._rows[term], self._counts[term] = array("i"), array("i")
            self._rows[term].append(row)
            self._counts[term].append(count)
        return len(terms)

    def add_scores(self, terms: Sequence[str], scores: Scores) -> None:
        """Add to the score of each row that of the terms, as often as they are listed."""
        mean_length = self._total_length / self._documents if self._documents else 1.0
        for term in terms:
            if (found := self._rows.get(term)) is None:
                continue
            rows = np.frombuffer(found, dtype=np.int32)
            counts = np.frombuffer(self._counts[term], dtype=np.int32)
            lengths = np.frombuffer(self.lengths, dtype=np.int32)[rows]
            frequency = counts / (counts + K1 * (1 - B + B * lengths / mean_length))
            rarity = math.log(1 + (self._documents - len(rows) + 0.5) / (len(rows) + 0.5))
            scores[rows] += rarity * frequency


class TextIndex:
    """Texts of several fields by row."""

    def __init__(self, fields: int) -> None:
        self._fields = [_Field() for _ in range(fields)]
        self.postings = 0

    def append(self, *texts: str) -> None:
        """Add the texts of the next row, one of each field."""
        for field, text in zip(self._fields, texts, strict=True):
            self.postings += field.append(text)

    def find(self, words: Sequence[str], mask: Mask, limit: int) -> list[tuple[int, float]]:
        """Return the rows of the mask with any of the words and their scores, best first; earlier rows come first."""
        scores: Scores = np.zeros(len(mask))
        terms = [term for word in words for term in lucene_terms(word)]
        for field in self._fields:
            field.add_scores(terms, scores)
        (found,) = np.nonzero((scores > 0) & mask)
        best = best_rows(found, scores[found], limit)
        return [(int(row), float(scores[row])) for row in best]


def best_rows(rows: Rows, scores: Scores | NDArray[np.float32], limit: int) -> Rows:
    """Return up to `limit` of the rows by their scores, best first; of equal ones the earlier row comes first."""
    if len(rows) > limit:
        # A row with the score of the last place may have an earlier one beside it, so that all of that score are kept.
        least = np.partition(scores, len(rows) - limit)[len(rows) - limit]
        rows, scores = rows[scores >= least], scores[scores >= least]
    order = np.argsort(-scores, kind="stable")[:limit]
    return rows[order]
