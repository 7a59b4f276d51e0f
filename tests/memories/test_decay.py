"""Decay of strength and importance, and reinforcement, without a database."""

from __future__ import annotations

import pytest

from graphmem.memories.fact import apply_reinforcement, decayed_importance, decayed_strength


@pytest.mark.req("UMB-09")
def test_strength_halves_every_69_days_at_the_rate_of_a_fact() -> None:
    assert decayed_strength(0.8, 0.01, 69.31) == pytest.approx(0.4, abs=1e-4)
    assert decayed_strength(0.8, 0.01, 2 * 69.31) == pytest.approx(0.2, abs=1e-4)


def test_strength_does_not_grow_when_a_clock_is_behind() -> None:
    assert decayed_strength(0.8, 0.03, -1) == 0.8


@pytest.mark.req("QUINN-11")
def test_importance_falls_by_a_tenth_each_period_down_to_its_minimum() -> None:
    assert decayed_importance(0.5, 1) == pytest.approx(0.45)
    assert decayed_importance(0.5, 2) == pytest.approx(0.405)
    assert decayed_importance(1.0, 1000) == 0.05
    assert decayed_importance(0.01, 3) == 0.01


@pytest.mark.req("UMB-08")
def test_reinforcement_raises_strength_and_confidence_up_to_their_maxima() -> None:
    assert apply_reinforcement(0.5, 0.9) == pytest.approx((0.55, 0.92))
    assert apply_reinforcement(0.5, 0.9, times=100) == (1.0, 0.99)
    assert apply_reinforcement(0.5, 1.0) == pytest.approx((0.55, 1.0))
