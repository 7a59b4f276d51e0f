"""No habit, importance or persona changes which memory comes first if its fit leads by 0.1."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from graphmem.memories.fact import apply_reinforcement
from graphmem.search.candidates import Candidates, FactNumbers, FactRow, Ranking
from graphmem.search.fit import CHANNEL_WEIGHTS, FitFeatures, fit
from graphmem.search.ranking import rank_facts
from graphmem.tenants.trust import DEFAULT_ORDER

NOW = datetime(2026, 6, 10, 12, tzinfo=UTC)
NOW_MS = int(NOW.timestamp() * 1000)
TAGS = ("tea", "office", "garden")

share = st.floats(0, 1)


@dataclass(frozen=True)
class Found:
    """A fact that was found, with its numbers and the features of its fit."""

    fact: FactRow
    numbers: Sequence[float]
    features: Sequence[float]


@st.composite
def facts(draw: st.DrawFn) -> Found:
    reads = draw(st.integers(0, 10_000))
    strength, _ = apply_reinforcement(draw(share), 0.9, reads)
    fact = FactRow(
        uuid=str(draw(st.uuids())),
        memory_id="m",
        content="",
        context="",
        type=draw(st.sampled_from(["fact", "preference", "feeling"])),
        tags=draw(st.lists(st.sampled_from(TAGS), unique=True)),
        message_ids=[],
        entity_ids=[],
    )
    accessed = NOW_MS - draw(st.integers(0, 4_000)) * 86_400_000
    numbers = (draw(share), strength, 0.03, accessed, 0, NOW_MS * 2)
    return Found(fact, numbers, (draw(share), draw(share), draw(share), draw(st.floats(0, 2))))


@pytest.mark.req("UMB-07", "UMB-08")
@given(
    st.lists(facts(), min_size=2, max_size=8, unique_by=lambda found: found.fact.uuid),
    st.dictionaries(st.sampled_from([*TAGS, "fact", "preference"]), st.floats(0, 100)),
)
def test_nothing_but_fit_overturns_a_clear_lead(found: list[Found], persona: dict[str, float]) -> None:
    rows, none = np.arange(len(found)), np.full(len(found), np.nan)
    no = np.zeros(len(found), np.bool_)
    similarity, words, named, bm25 = np.array([one.features for one in found]).T
    features = FitFeatures(similarity, words, named, bm25, no, no)
    fits = fit(features)
    best, second, *_ = np.argsort(-fits).tolist()
    assume(fits[best] - fits[second] >= 0.1)
    candidates = Candidates(
        facts=[one.fact for one in found],
        numbers=FactNumbers(*np.array([one.numbers for one in found]).T),
        similarities=none,
        focus_similarities=none,
        channels={"semantic": Ranking(rows, none), "keyword": Ranking(rows[::-1], none)},
    )
    ranked = rank_facts(candidates, persona, [], NOW, 60, CHANNEL_WEIGHTS, features, DEFAULT_ORDER)
    assert ranked.order[0] == best
    scores = ranked.score[ranked.order].tolist()
    assert scores == sorted(scores, reverse=True)
    assert all(0 <= score <= 1 for score in scores)
