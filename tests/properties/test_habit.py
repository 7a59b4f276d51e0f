"""No habit, importance or persona changes which memory comes first if its fit leads by 0.1."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from graphmem.memories.decay import apply_reinforcement
from graphmem.search.fact_candidate import FactCandidate, FactText
from graphmem.search.fit import CHANNEL_WEIGHTS, FitFeatures, fit
from graphmem.search.ranking import rank_facts
from graphmem.tenants.trust import DEFAULT_ORDER

NOW = datetime(2026, 6, 10, 12, tzinfo=UTC)
NOW_MS = int(NOW.timestamp() * 1000)
TAGS = ("tea", "office", "garden")

share = st.floats(0, 1)


@st.composite
def facts(draw: st.DrawFn) -> tuple[FactCandidate, FitFeatures]:
    reads = draw(st.integers(0, 10_000))
    strength, _ = apply_reinforcement(draw(share), 0.9, reads)
    fact = FactCandidate(
        uuid=str(draw(st.uuids())),
        memory_id="m",
        score=draw(share),
        text=FactText("", ""),
        type=draw(st.sampled_from(["fact", "preference", "feeling"])),
        tags=draw(st.lists(st.sampled_from(TAGS), unique=True)),
        importance=draw(share),
        strength=strength,
        decay_rate=0.03,
        last_accessed_ms=NOW_MS - draw(st.integers(0, 4_000)) * 86_400_000,
        valid_from=0,
        valid_to=NOW_MS * 2,
        message_ids=[],
        entity_ids=[],
        similarity=None,
    )
    return fact, FitFeatures(draw(share), draw(share), draw(share), draw(st.floats(0, 2)))


@pytest.mark.req("UMB-07", "UMB-08")
@given(
    st.lists(facts(), min_size=2, max_size=8, unique_by=lambda pair: pair[0].uuid),
    st.dictionaries(st.sampled_from([*TAGS, "fact", "preference"]), st.floats(0, 100)),
)
def test_nothing_but_fit_overturns_a_clear_lead(
    found: list[tuple[FactCandidate, FitFeatures]], persona: dict[str, float]
) -> None:
    features = {fact.uuid: given_features for fact, given_features in found}
    best, second, *_ = sorted(features, key=lambda uuid: fit(features[uuid]), reverse=True)
    assume(fit(features[best]) - fit(features[second]) >= 0.1)
    channels = {"semantic": [fact for fact, _ in found], "keyword": [fact for fact, _ in reversed(found)]}
    ranked = rank_facts(channels, persona, [], NOW, 60, CHANNEL_WEIGHTS, features, DEFAULT_ORDER)
    assert ranked[0].fact.uuid == best
    scores = [scored.score for scored in ranked]
    assert scores == sorted(scores, reverse=True)
    assert all(0 <= score <= 1 for score in scores)
