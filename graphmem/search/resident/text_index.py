"""Full text in memory: postings by field and term, ranked by BM25 as Lucene ranks. Pure."""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections import Counter
from collections.abc import Sequence

import numpy as np

from graphmem.search.bm25 import rarity, saturation
from graphmem.search.columns import Scores
from graphmem.text.tokenising import lucene_terms

POSTING_BYTES = 8
"""Memory of one posting: a row and how often the term is in it."""


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
            scores[rows] += rarity(self._documents, len(rows)) * saturation(counts, lengths, mean_length)


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

    def scores(self, words: Sequence[str]) -> Scores:
        """Return the score of each row; one without any of the words has 0."""
        scores: Scores = np.zeros(len(self._fields[0].lengths))
        terms = [term for word in words for term in lucene_terms(word)]
        for field in self._fields:
            field.add_scores(terms, scores)
        return scores
