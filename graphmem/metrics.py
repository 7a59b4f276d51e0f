"""Prometheus metrics of the service."""

from __future__ import annotations

from prometheus_client import Counter, Gauge, Histogram

_SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.15, 0.25, 0.5, 1, 2.5, 5, 10)

MESSAGE_STORAGE_TIME = Histogram(
    "graphmem_message_storage_time_seconds", "Seconds to store a batch of messages.", buckets=_SECONDS
)
CONTEXT_EXTRACTION_TIME = Histogram(
    "graphmem_context_extraction_time_seconds", "Seconds to extract the mentions of a message.", buckets=_SECONDS
)
SEMANTIC_SEARCH_LATENCY = Histogram(
    "graphmem_semantic_search_latency_seconds", "Seconds of a semantic search.", buckets=_SECONDS
)
PATTERN_DETECTION_COUNT = Counter("graphmem_pattern_detection_count", "Behaviour patterns detected.", ["pattern_type"])
PREFERENCE_UPDATES = Counter("graphmem_preference_updates", "Learned preferences written.")
CACHE_HIT_RATE = Gauge("graphmem_cache_hit_rate", "Share of reads of a cache that it answered.", ["cache"])
MEMORY_SIZE_BYTES = Gauge("graphmem_memory_size_bytes", "Estimated size of stored messages and memories.")
COMPRESSION_RATIO = Gauge(
    "graphmem_compression_ratio", "Characters of the last summary per character of the messages it summarizes."
)


class HitRate:
    """The hit rate of one cache since the start of the process."""

    def __init__(self, cache: str) -> None:
        self._gauge = CACHE_HIT_RATE.labels(cache)
        self._reads = self._hits = 0

    def count(self, *, is_hit: bool) -> None:
        """Count a read, and whether the cache answered it."""
        self._reads += 1
        self._hits += is_hit
        self._gauge.set(self._hits / self._reads)
