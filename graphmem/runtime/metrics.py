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
CACHE_READS = Counter("graphmem_cache_reads", "Reads of a cache, by result: hit or miss.", ["cache", "result"])
RESIDENT_GROUPS = Gauge("graphmem_resident_users", "Users whose memory this process holds in its own.")
RESIDENT_BYTES = Gauge("graphmem_resident_bytes", "Estimated size of the users that this process holds in memory.")
MEMORY_SIZE_BYTES = Gauge("graphmem_memory_size_bytes", "Estimated size of stored messages and memories.")
COMPRESSION_RATIO = Gauge(
    "graphmem_compression_ratio", "Characters of the last summary per character of the messages it summarizes."
)
MODEL_CALLS = Counter("graphmem_model_calls", "Answers of language models.", ["model"])
MODEL_TOKENS = Counter(
    "graphmem_model_tokens", "Tokens of language models, by kind: prompt or completion.", ["model", "kind"]
)
JOBS_UNFINISHED = Gauge(
    "graphmem_jobs_unfinished", "Jobs in the job store that are queued, waiting for a model, or running.", ["status"]
)
OLDEST_QUEUED_JOB_SECONDS = Gauge("graphmem_oldest_queued_job_seconds", "Age of the oldest job that is queued.")
JOBS_FINISHED = Counter("graphmem_jobs_finished", "Jobs that this process finished, by result.", ["kind", "status"])
STATEMENTS_CAUGHT = Counter(
    "graphmem_statements_caught",
    "Statements of texts that address the assistant, or speak for the user: quarantined or refused.",
    ["outcome"],
)
CHAT_FAILURES = Counter(
    "graphmem_chat_failures",
    "Forwarded model calls for which memory failed, by what failed.",
    ["kind"],
)


class HitRate:
    """The reads of one cache, and its hit rate since the process started."""

    def __init__(self, cache: str) -> None:
        self._gauge = CACHE_HIT_RATE.labels(cache)
        self._hits_counter, self._misses_counter = CACHE_READS.labels(cache, "hit"), CACHE_READS.labels(cache, "miss")
        self._reads = self._hits = 0

    def count(self, *, is_hit: bool) -> None:
        """Count a read as a hit or a miss."""
        self.count_many(hits=int(is_hit), misses=int(not is_hit))

    def count_many(self, *, hits: int, misses: int) -> None:
        """Count the reads of several entries at once."""
        if not hits + misses:
            return
        self._reads += hits + misses
        self._hits += hits
        self._hits_counter.inc(hits)
        self._misses_counter.inc(misses)
        self._gauge.set(self._hits / self._reads)
