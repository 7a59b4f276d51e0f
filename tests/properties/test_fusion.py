"""Reciprocal rank fusion for any rankings."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphmem.search.fit import max_rrf_score, reciprocal_rank_fusion

SIZE = 31
ROWS = st.integers(0, SIZE - 1)
RANKINGS = st.dictionaries(st.sampled_from("abcd"), st.lists(ROWS, unique=True, max_size=12), max_size=4)
WEIGHTS = st.fixed_dictionaries({name: st.floats(0.05, 4) for name in "abcd"})
K = st.integers(1, 100)

pytestmark = pytest.mark.req("UMB-07")


def fuse(rankings: dict[str, list[int]], weights: dict[str, float], k: int, size: int = SIZE) -> list[float]:
    """The fused score of each row."""
    rows = {name: np.array(ranking, np.int64) for name, ranking in rankings.items()}
    fused: list[float] = reciprocal_rank_fusion(rows, weights, size, k).tolist()
    return fused


@given(RANKINGS, WEIGHTS, K)
def test_order_of_rankings_does_not_matter(rankings: dict[str, list[int]], weights: dict[str, float], k: int) -> None:
    backwards = dict(reversed(rankings.items()))
    assert fuse(rankings, weights, k) == pytest.approx(fuse(backwards, weights, k))


@given(RANKINGS, WEIGHTS, K)
def test_exactly_the_ranked_rows_have_a_score(
    rankings: dict[str, list[int]], weights: dict[str, float], k: int
) -> None:
    scored = {row for row, score in enumerate(fuse(rankings, weights, k)) if score > 0}
    assert scored == {row for ranking in rankings.values() for row in ranking}


@given(RANKINGS, WEIGHTS, K, st.data())
def test_moving_up_raises_the_score_and_leaves_others_unchanged(
    rankings: dict[str, list[int]], weights: dict[str, float], k: int, data: st.DataObject
) -> None:
    long = [name for name, ranking in rankings.items() if len(ranking) > 1]
    if not long:
        return
    name = data.draw(st.sampled_from(long))
    position = data.draw(st.integers(1, len(rankings[name]) - 1))
    reordered = list(rankings[name])
    reordered[position - 1], reordered[position] = reordered[position], reordered[position - 1]
    before, after = fuse(rankings, weights, k), fuse({**rankings, name: reordered}, weights, k)
    moved = reordered[position - 1 : position + 1]
    assert after[moved[0]] > before[moved[0]]
    assert after[moved[1]] < before[moved[1]]
    assert all(math.isclose(before[row], after[row]) for row in range(SIZE) if row not in moved)


@given(RANKINGS, WEIGHTS, K)
def test_a_missing_or_empty_ranking_changes_nothing(
    rankings: dict[str, list[int]], weights: dict[str, float], k: int
) -> None:
    assert fuse({**rankings, "nothing": []}, weights, k) == fuse(rankings, weights, k)


@given(st.lists(ROWS, unique=True, max_size=12), WEIGHTS, K)
def test_one_ranking_alone_keeps_its_order(ranking: list[int], weights: dict[str, float], k: int) -> None:
    fused = fuse({"a": ranking}, weights, k)
    assert sorted(ranking, key=lambda row: -fused[row]) == ranking


@given(RANKINGS, WEIGHTS, K)
def test_max_score_is_reached_only_when_first_in_every_ranking(
    rankings: dict[str, list[int]], weights: dict[str, float], k: int
) -> None:
    max_score = max_rrf_score(rankings, weights, k)
    assert all(score <= max_score * (1 + 1e-9) for score in fuse(rankings, weights, k))
    winner = {name: [SIZE, *ranking] for name, ranking in rankings.items()}
    if winner:
        assert math.isclose(fuse(winner, weights, k, SIZE + 1)[SIZE], max_score)


def test_the_score_is_that_of_the_formula() -> None:
    fused = fuse({"a": [0, 1], "b": [1]}, {"a": 2.0, "b": 1.0}, 60, 2)
    assert fused == pytest.approx([2 / 61, 2 / 62 + 1 / 61])
