"""The metrics of learning and storage."""

from __future__ import annotations

import pytest
from prometheus_client import REGISTRY, generate_latest

from graphmem.app.health import StorageMeter
from graphmem.conversations.session import MessageIn
from tests.context.conftest import ContextHarness

METRICS = [
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
    assert [name for name in METRICS if f"\ngraphmem_{name}" not in text] == []


@pytest.mark.req("TRUE-26")
async def test_patterns_preferences_and_extractions_are_counted(harness: ContextHarness) -> None:
    def counters() -> list[float]:
        return [
            metric_value("pattern_detection_count_total", pattern_type="query_frequency"),
            metric_value("preference_updates_total"),
            metric_value("context_extraction_time_seconds_count"),
        ]

    before = counters()
    await harness.add_daily_messages(7)
    await harness.add_messages("s", MessageIn(role="user", content="Please keep it short"), learn=True)
    assert [after - count for after, count in zip(counters(), before, strict=True)] == [2, 1, 2]


@pytest.mark.req("TRUE-26")
async def test_the_measured_size_includes_messages_memories_and_vectors(harness: ContextHarness) -> None:
    await harness.add_messages("s", *["Hello"] * 20)
    await harness.save_memories(*(f"Mara has been to city number {number}" for number in range(20)))
    size = await StorageMeter(harness.graph, lambda measure: measure()).measure()
    assert size > 40 * 8 * harness.embedder.dimension
    assert metric_value("memory_size_bytes") == size


@pytest.mark.req("TRUE-26")
async def test_the_search_inside_a_context_is_measured(harness: ContextHarness) -> None:
    before = metric_value("semantic_search_latency_seconds_count")
    await harness.build_context("Where is the boiler?")
    assert metric_value("semantic_search_latency_seconds_count") == before + 1
