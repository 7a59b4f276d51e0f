"""Full text in memory: postings by field and term, ranked by BM25 as Lucene ranks. Pure."""

from __future__ import annotations

import math
from array import array
from bisect import bisect_left
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
    """The postings of one field, by term in the order of the rows."""

    def __init__(self) -> None:
        self._rows: dict[str, array[int]] = {}
        self._counts: dict[str, array[int]] = {}
        self.lengths = array("i")
        self._documents = 0
        self._total_length = 0

    def put(self, row: int, text: str) -> int:
        """Add the text of a row that has none and return how many postings it has."""
        terms = Counter(lucene_terms(text))
        if row == len(self.lengths):
            self.lengths.append(0)
        self._count(row, terms.total())
        for term, count in terms.items():
            if term not in self._rows:
                self._rows[term], self._counts[term] = array("i"), array("i")
            place = bisect_left(self._rows[term], row)
            self._rows[term].insert(place, row)
            self._counts[term].insert(place, count)
        return len(terms)

    def remove(self, row: int, text: str) -> int:
        """Remove the text of a row, as it was added, and return how many postings it had."""
        terms = set(lucene_terms(text))
        self._count(row, 0)
        for term in terms:
            place = bisect_left(self._rows[term], row)
            self._rows[term].pop(place)
            self._counts[term].pop(place)
            if not self._rows[term]:
                del self._rows[term], self._counts[term]
        return len(terms)

    def _count(self, row: int, length: int) -> None:
        before, self.lengths[row] = self.lengths[row], length
        self._documents += (length > 0) - (before > 0)
        self._total_length += length - before

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
    """Texts of several fields by row.

    Its statistics are those of the texts that it holds, whatever it held before, so that scores do not depend on how a
    copy came about.
    """

    def __init__(self, fields: int) -> None:
        self._fields = [_Field() for _ in range(fields)]
        self.postings = 0

    def append(self, *texts: str) -> None:
        """Add the texts of the next row, one of each field."""
        for field, text in zip(self._fields, texts, strict=True):
            self.postings += field.put(len(field.lengths), text)

    def replace(self, row: int, before: Sequence[str], texts: Sequence[str]) -> None:
        """Replace the texts of a row, which were `before`."""
        for field, old, text in zip(self._fields, before, texts, strict=True):
            if old != text:
                self.postings -= field.remove(row, old)
                self.postings += field.put(row, text)

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
