"""BM25 on arrays: how well texts match words, by how rare the words are and how long the texts. Pure.

Robertson and Zaragoza, The Probabilistic Relevance Framework (2009).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

K1 = 1.2
"""Saturation of a term's count in one text; the usual value."""

B = 0.75
"""Share of the length normalisation, from 0 to 1; the usual value."""

Scores: TypeAlias = NDArray[np.float64]
Counts: TypeAlias = NDArray[np.intp]
Stems: TypeAlias = NDArray[np.int64]
"""The stems of a text in their order, each as the hash that it has in this process."""


def rarity(texts: int, containing: int) -> float:
    """Return the weight of a term that so many of the texts contain."""
    return math.log(1 + (texts - containing + 0.5) / (containing + 0.5))


def saturation(counts: NDArray[np.integer], lengths: NDArray[np.integer], mean_length: float) -> Scores:
    """Return how much a term counts in texts that contain it so often, from 0 to 1."""
    saturated: Scores = counts / (counts + K1 * (1 - B + B * lengths / mean_length))
    return saturated


def hash_stems(stems: Iterable[str]) -> Stems:
    """Return the stems of a text as hashes."""
    return np.fromiter(map(hash, stems), np.int64)


class StemTable:
    """The stems of some texts, a text a row."""

    def __init__(self, texts: Sequence[Stems]) -> None:
        self.lengths: Counts = np.fromiter(map(len, texts), np.intp, len(texts))
        self._stems = np.concatenate(texts) if texts else hash_stems(())
        self._rows = np.repeat(np.arange(len(texts)), self.lengths)

    def __len__(self) -> int:
        return len(self.lengths)

    def counts(self, stem: str) -> Counts:
        """Return how often each text contains a stem."""
        return np.bincount(self._rows[self._stems == hash(stem)], minlength=len(self))


class WordScores(NamedTuple):
    """The BM25 scores of texts, and the sum of the weights of the words.

    A text of average length that contains every word once has that sum as its score; one that is short or repeats them
    has more, up to `1 + K1` times as much.
    """

    scores: Scores
    total: float

    @classmethod
    def of(cls, words: Iterable[str], texts: StemTable) -> WordScores:
        """Return the scores of texts for the stems of a question, with the statistics of these texts."""
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
