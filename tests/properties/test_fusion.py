"""Reciprocal rank fusion for any rankings."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphmem.search.fit import max_rrf_score, reciprocal_rank_fusion

KEYS = st.integers(0, 30)
RANKINGS = st.dictionaries(st.sampled_from("abcd"), st.lists(KEYS, unique=True, max_size=12), max_size=4)
WEIGHTS = st.fixed_dictionaries({name: st.floats(0.05, 4) for name in "abcd"})
K = st.integers(1, 100)

pytestmark = pytest.mark.req("UMB-07")


@given(RANKINGS, WEIGHTS, K)
def test_order_of_rankings_does_not_matter(rankings: dict[str, list[int]], weights: dict[str, float], k: int) -> None:
    backwards = dict(reversed(rankings.items()))
    fused, reordered = reciprocal_rank_fusion(rankings, weights, k), reciprocal_rank_fusion(backwards, weights, k)
    assert fused.keys() == reordered.keys()
    assert all(math.isclose(score, reordered[key]) for key, score in fused.items())


@given(RANKINGS, WEIGHTS, K)
def test_result_contains_exactly_the_ranked_keys_best_first(
    rankings: dict[str, list[int]], weights: dict[str, float], k: int
) -> None:
    fused = reciprocal_rank_fusion(rankings, weights, k)
    assert set(fused) == {key for ranking in rankings.values() for key in ranking}
    assert list(fused.values()) == sorted(fused.values(), reverse=True)


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
    before, after = (
        reciprocal_rank_fusion(rankings, weights, k),
        reciprocal_rank_fusion({**rankings, name: reordered}, weights, k),
    )
    assert after[reordered[position - 1]] > before[reordered[position - 1]]
    assert after[reordered[position]] < before[reordered[position]]
    others = before.keys() - set(reordered[position - 1 : position + 1])
    assert all(math.isclose(before[key], after[key]) for key in others)


@given(RANKINGS, WEIGHTS, K)
def test_a_missing_or_empty_ranking_changes_nothing(
    rankings: dict[str, list[int]], weights: dict[str, float], k: int
) -> None:
    assert reciprocal_rank_fusion({**rankings, "nothing": []}, weights, k) == reciprocal_rank_fusion(
        rankings, weights, k
    )


@given(st.lists(KEYS, unique=True, max_size=12), WEIGHTS, K)
def test_one_ranking_alone_keeps_its_order(ranking: list[int], weights: dict[str, float], k: int) -> None:
    assert list(reciprocal_rank_fusion({"a": ranking}, weights, k)) == ranking


@given(RANKINGS, WEIGHTS, K)
def test_max_score_is_reached_only_when_first_in_every_ranking(
    rankings: dict[str, list[int]], weights: dict[str, float], k: int
) -> None:
    max_score = max_rrf_score(rankings, weights, k)
    assert all(score <= max_score * (1 + 1e-9) for score in reciprocal_rank_fusion(rankings, weights, k).values())
    winner = {name: [-1, *ranking] for name, ranking in rankings.items()}
    if winner:
        assert math.isclose(reciprocal_rank_fusion(winner, weights, k)[-1], max_score)


def test_the_score_is_that_of_the_formula() -> None:
    fused = reciprocal_rank_fusion({"a": ["x", "y"], "b": ["y"]}, {"a": 2.0, "b": 1.0}, 60)
    assert fused == {"y": 2 / 62 + 1 / 61, "x": 2 / 61}
