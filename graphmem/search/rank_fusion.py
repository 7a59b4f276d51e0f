"""Reciprocal rank fusion: combines several rankings into one. Pure."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import TypeVar

Key = TypeVar("Key", bound=Hashable)

CHANNEL_WEIGHTS: Mapping[str, float] = {"semantic": 0.5, "keyword": 1.0, "graph": 0.1}
"""Default weights of the channels of a search; a channel that is not listed has weight 1."""


def reciprocal_rank_fusion(
    rankings: Mapping[str, Sequence[Key]], weights: Mapping[str, float], k: int = 60
) -> dict[Key, float]:
    """Return the score of every ranked key, best first: the sum of `weight / (k + rank)` over all rankings.

    Ranks start at 1. A ranking without a weight has weight 1. A key that occurs twice in a ranking counts with its
    better rank. Keys of equal score keep the order of their first occurrence. See Cormack, Clarke and Büttcher, SIGIR
    2009.
    """
    scores: dict[Key, float] = {}
    for name, ranking in rankings.items():
        weight = weights.get(name, 1.0)
        for rank, key in enumerate(dict.fromkeys(ranking), start=1):
            scores[key] = scores.get(key, 0.0) + weight / (k + rank)
    return dict(sorted(scores.items(), key=lambda item: -item[1]))


def max_rrf_score(names: Iterable[str], weights: Mapping[str, float], k: int = 60) -> float:
    """Return the score of a key that is first in every named ranking."""
    return sum(weights.get(name, 1.0) for name in names) / (k + 1)
