"""BM25 on arrays: how well texts match words, by the words' rarity and the texts' length. Pure.

`StemTable` holds some texts; `TextIndex` holds a user's texts in memory and ranks them as Lucene does.

Robertson and Zaragoza, The Probabilistic Relevance Framework (2009).
"""

from __future__ import annotations

import math
from array import array
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from graphmem.text.tokenising import lucene_terms

K1 = 1.2
"""Saturation of a term's count in one text; the usual value."""

B = 0.75
"""Share of the length normalisation, from 0 to 1; the usual value."""

Scores: TypeAlias = NDArray[np.float64]
Counts: TypeAlias = NDArray[np.intp]
Stems: TypeAlias = NDArray[np.int64]
"""The stems of a text in order, each as its hash in this process."""


def rarity(texts: int, containing: int) -> float:
    """Return the weight of a term contained in `containing` of `texts` texts."""
    return math.log(1 + (texts - containing + 0.5) / (containing + 0.5))


def saturation(counts: NDArray[np.integer], lengths: NDArray[np.integer], mean_length: float) -> Scores:
    """Return the weight, from 0 to 1, of a term in texts by its count in each."""
    saturated: Scores = counts / (counts + K1 * (1 - B + B * lengths / mean_length))
    return saturated


def hash_stems(stems: Iterable[str]) -> Stems:
    """Return the stems of a text as hashes."""
    return np.fromiter(map(hash, stems), np.int64)


class StemTable:
    """The stems of some texts, one text per row."""

    def __init__(self, texts: Sequence[Stems]) -> None:
        self.lengths: Counts = np.fromiter(map(len, texts), np.intp, len(texts))
        self._stems = np.concatenate(texts) if texts else hash_stems(())
        self._rows = np.repeat(np.arange(len(texts)), self.lengths)

    def __len__(self) -> int:
        return len(self.lengths)

    def counts(self, stem: str) -> Counts:
        """Return the count of a stem in each text."""
        return np.bincount(self._rows[self._stems == hash(stem)], minlength=len(self))


class WordScores(NamedTuple):
    """The BM25 scores of texts, and the sum of the word weights.

    That sum is the score of a text of average length that contains every word once; a text that is short or repeats
    them scores up to `1 + K1` times as much.
    """

    scores: Scores
    total: float

    @classmethod
    def of(cls, words: Iterable[str], texts: StemTable) -> WordScores:
        """Return the scores of texts for the stems of a question, using the statistics of these texts."""
        mean_length = float(texts.lengths.mean()) if len(texts) else 0.0
        scores, total = np.zeros(len(texts)), 0.0
        for word in dict.fromkeys(words):
            counts = texts.counts(word)
            weight = rarity(len(texts), int(np.count_nonzero(counts)))
            scores += weight * (K1 + 1) * saturation(counts, texts.lengths, mean_length or 1.0)
            total += weight
        return cls(scores, total)

    @property
    def shares(self) -> Scores:
        """The scores as shares of the sum of the weights."""
        return self.scores / self.total if self.total else self.scores

    @property
    def shares_of_best(self) -> Scores:
        """The scores as shares of the highest one."""
        highest = self.scores.max(initial=0.0)
        return self.scores / highest if highest > 0 else self.scores


def bm25_scores(words: Iterable[str], texts: Sequence[Sequence[str]]) -> Scores:
    """Return the BM25 score of each tokenised text for the tokens of a question."""
    return WordScores.of(words, StemTable([*map(hash_stems, texts)])).scores


POSTING_BYTES = 8
"""Memory of one posting in bytes: a row and the term's count in it."""


class _Field:
    """The postings of one field, by term, in row order."""

    def __init__(self) -> None:
        self._rows: dict[str, array[int]] = {}
        self._counts: dict[str, array[int]] = {}
        self.lengths = array("i")
        self._documents = 0
        self._total_length = 0

    def put(self, row: int, text: str) -> int:
        """Add the text of a row that has none, and return the number of its postings."""
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
        """Remove the text of a row, as it was added, and return the number of its postings."""
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
        """Add the score of the terms to each row, once per occurrence in `terms`."""
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

    Its statistics cover only the texts it currently holds, so that scores do not depend on the history of a copy.
    """

    def __init__(self, fields: int) -> None:
        self._fields = [_Field() for _ in range(fields)]
        self.postings = 0

    def append(self, *texts: str) -> None:
        """Add the texts of the next row, one per field."""
        for field, text in zip(self._fields, texts, strict=True):
            self.postings += field.put(len(field.lengths), text)

    def replace(self, row: int, before: Sequence[str], texts: Sequence[str]) -> None:
        """Replace the texts of a row, which were `before`."""
        for field, old, text in zip(self._fields, before, texts, strict=True):
            if old != text:
                self.postings -= field.remove(row, old)
                self.postings += field.put(row, text)

    def scores(self, words: Sequence[str]) -> Scores:
        """Return the score of each row; a row without any of the words scores 0."""
        scores: Scores = np.zeros(len(self._fields[0].lengths))
        terms = [term for word in words for term in lucene_terms(word)]
        for field in self._fields:
            field.add_scores(terms, scores)
        return scores
