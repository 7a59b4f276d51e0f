"""The eight measures of the memory system."""

from __future__ import annotations

import pytest
from prometheus_client import REGISTRY, generate_latest

from graphmem.domain.session import MessageIn
from tests.context.conftest import ContextHarness

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


def metric_value(name: str, **labels: str) -> float:
    return REGISTRY.get_sample_value(f"graphmem_{name}", labels) or 0.0


@pytest.mark.req("TRUE-26")
async def test_all_eight_metrics_are_exported(harness: ContextHarness) -> None:
    await harness.add_daily_messages(7)
    text = generate_latest(REGISTRY).decode()
    assert [name for name in NAMES if f"\ngraphmem_{name}" not in text] == []


@pytest.mark.req("TRUE-26")
async def test_patterns_preferences_and_extractions_are_counted(harness: ContextHarness) -> None:
    before = (
        metric_value("pattern_detection_count_total", pattern_type="query_frequency"),
        metric_value("preference_updates_total"),
        metric_value("context_extraction_time_seconds_count"),
    )
    await harness.add_daily_messages(7)
    await harness.add_messages("s", MessageIn(role="user", content="Please keep it short"), learn=True)
    after = (
        metric_value("pattern_detection_count_total", pattern_type="query_frequency"),
        metric_value("preference_updates_total"),
        metric_value("context_extraction_time_seconds_count"),
    )
    assert (after[0] - before[0], after[1] - before[1], after[2] - before[2]) == (2, 1, 2)


@pytest.mark.req("TRUE-26")
async def test_the_memory_size_is_estimated(harness: ContextHarness) -> None:
    await harness.add_messages("s", "Hello")
    assert metric_value("memory_size_bytes") != 0 or await harness.contexts.measure_storage() > 0
    size = await harness.contexts.measure_storage()
    assert metric_value("memory_size_bytes") == size > 384 * 8
