"""Reciprocal rank fusion: one order out of several."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import TypeVar

Key = TypeVar("Key", bound=Hashable)


def reciprocal_rank_fusion(
    rankings: Mapping[str, Sequence[Key]], weights: Mapping[str, float], k: int = 60
) -> dict[Key, float]:
    """Return every key with `Σ weight / (k + rank)` over the rankings that hold it, ranks from 1, the best first.

    A ranking without a weight counts once; of a key that a ranking holds twice, its best place counts. Keys of equal
    score stay in the order in which the rankings bring them up (Cormack, Clarke and Büttcher, SIGIR 2009).
    """
    scores: dict[Key, float] = {}
    for name, ranking in rankings.items():
        weight = weights.get(name, 1.0)
        for rank, key in enumerate(dict.fromkeys(ranking), start=1):
            scores[key] = scores.get(key, 0.0) + weight / (k + rank)
    return dict(sorted(scores.items(), key=lambda item: -item[1]))


def max_rrf_score(names: Iterable[str], weights: Mapping[str, float], k: int = 60) -> float:
    """Return the score of a key that every ranking of `names` puts first: what scores are divided by."""
    return sum(weights.get(name, 1.0) for name in names) / (k + 1)
