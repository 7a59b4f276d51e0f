"""The eight measures of the memory system."""

from __future__ import annotations

import pytest
from prometheus_client import REGISTRY, generate_latest

from graphmem.domain.session import MessageIn
from tests.context.conftest import Ground

NAMES = [
    "message_storage_time_seconds_count",
    "context_extraction_time_seconds_count",
    "semantic_search_latency_seconds_count",
    "pattern_detection_count_total",
    "preference_updates_total",
    "cache_hit_rate",
    "memory_size_bytes",
    "compression_ratio",
]


def measured(name: str, **labels: str) -> float:
    return REGISTRY.get_sample_value(f"graphmem_{name}", labels) or 0.0


@pytest.mark.req("TRUE-26")
async def test_all_eight_are_scraped_once_something_happened(ground: Ground) -> None:
    await ground.spread(7)
    text = generate_latest(REGISTRY).decode()
    assert [name for name in NAMES if f"\ngraphmem_{name}" not in text] == []


@pytest.mark.req("TRUE-26")
async def test_patterns_preferences_and_extractions_are_counted(ground: Ground) -> None:
    before = (
        measured("pattern_detection_count_total", pattern_type="query_frequency"),
        measured("preference_updates_total"),
        measured("context_extraction_time_seconds_count"),
    )
    await ground.spread(7)
    await ground.say("s", MessageIn(role="user", content="Please keep it short"), learn=True)
    after = (
        measured("pattern_detection_count_total", pattern_type="query_frequency"),
        measured("preference_updates_total"),
        measured("context_extraction_time_seconds_count"),
    )
    assert (after[0] - before[0], after[1] - before[1], after[2] - before[2]) == (2, 1, 2)


@pytest.mark.req("TRUE-26")
async def test_the_size_of_what_is_stored_is_estimated(ground: Ground) -> None:
    await ground.say("s", "Hello")
    assert measured("memory_size_bytes") != 0 or await ground.contexts.measure() > 0
    size = await ground.contexts.measure()
    assert measured("memory_size_bytes") == size > 384 * 8
