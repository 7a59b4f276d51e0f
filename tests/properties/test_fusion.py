"""Reciprocal rank fusion for any rankings."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphmem.retrieval.fuse import ceiling, fuse

KEYS = st.integers(0, 30)
RANKINGS = st.dictionaries(st.sampled_from("abcd"), st.lists(KEYS, unique=True, max_size=12), max_size=4)
WEIGHTS = st.fixed_dictionaries({name: st.floats(0.05, 4) for name in "abcd"})
K = st.integers(1, 100)

pytestmark = pytest.mark.req("UMB-07")


@given(RANKINGS, WEIGHTS, K)
def test_the_order_in_which_rankings_are_named_does_not_matter(
    rankings: dict[str, list[int]], weights: dict[str, float], k: int
) -> None:
    backwards = dict(reversed(rankings.items()))
    one, other = fuse(rankings, weights, k), fuse(backwards, weights, k)
    assert one.keys() == other.keys()
    assert all(math.isclose(score, other[key]) for key, score in one.items())


@given(RANKINGS, WEIGHTS, K)
def test_exactly_what_was_ranked_is_returned_the_best_first(
    rankings: dict[str, list[int]], weights: dict[str, float], k: int
) -> None:
    fused = fuse(rankings, weights, k)
    assert set(fused) == {key for ranking in rankings.values() for key in ranking}
    assert list(fused.values()) == sorted(fused.values(), reverse=True)


@given(RANKINGS, WEIGHTS, K, st.data())
def test_moving_up_never_lowers_a_score_and_passes_nobody_else_on(
    rankings: dict[str, list[int]], weights: dict[str, float], k: int, data: st.DataObject
) -> None:
    long = [name for name, ranking in rankings.items() if len(ranking) > 1]
    if not long:
        return
    name = data.draw(st.sampled_from(long))
    place = data.draw(st.integers(1, len(rankings[name]) - 1))
    risen = list(rankings[name])
    risen[place - 1], risen[place] = risen[place], risen[place - 1]
    before, after = fuse(rankings, weights, k), fuse({**rankings, name: risen}, weights, k)
    assert after[risen[place - 1]] > before[risen[place - 1]]
    assert after[risen[place]] < before[risen[place]]
    others = before.keys() - set(risen[place - 1 : place + 1])
    assert all(math.isclose(before[key], after[key]) for key in others)


@given(RANKINGS, WEIGHTS, K)
def test_a_missing_or_empty_ranking_changes_nothing(
    rankings: dict[str, list[int]], weights: dict[str, float], k: int
) -> None:
    assert fuse({**rankings, "nothing": []}, weights, k) == fuse(rankings, weights, k)


@given(st.lists(KEYS, unique=True, max_size=12), WEIGHTS, K)
def test_one_ranking_alone_keeps_its_order(ranking: list[int], weights: dict[str, float], k: int) -> None:
    assert list(fuse({"a": ranking}, weights, k)) == ranking


@given(RANKINGS, WEIGHTS, K)
def test_no_score_is_above_the_ceiling_and_who_is_first_everywhere_reaches_it(
    rankings: dict[str, list[int]], weights: dict[str, float], k: int
) -> None:
    most = ceiling(rankings, weights, k)
    assert all(score <= most * (1 + 1e-9) for score in fuse(rankings, weights, k).values())
    winner = {name: [-1, *ranking] for name, ranking in rankings.items()}
    if winner:
        assert math.isclose(fuse(winner, weights, k)[-1], most)


def test_the_score_is_that_of_the_formula() -> None:
    fused = fuse({"a": ["x", "y"], "b": ["y"]}, {"a": 2.0, "b": 1.0}, 60)
    assert fused == {"y": 2 / 62 + 1 / 61, "x": 2 / 61}
