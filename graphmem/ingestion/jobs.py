"""The jobs of ingestion: their kinds and payloads. Payloads hold ids and positions, no text."""

from __future__ import annotations

from graphmem.ingestion.transcript import MessagePart
from graphmem.jobs.kinds import JobKind, UserJobPayload


class ExtractionPayload(UserJobPayload):
    """Messages to extract memories from, cut into windows when the job is queued.

    `embedded_texts` is how many of them were embedded when they arrived, which the receipt of the job counts.
    """

    session_id: str
    message_ids: list[str]
    windows: list[list[MessagePart]]
    embedded_texts: int = 0


class SummaryPayload(UserJobPayload):
    """A session to summarize up to the message at position `through`."""

    session_id: str
    through: int


class ClosingPayload(SummaryPayload):
    """A session that was closed; `summarize` says whether to summarize it, `reason` why not."""

    summarize: bool
    reason: str | None = None


class EmbeddingPayload(UserJobPayload):
    """Messages that were stored without a vector."""

    message_ids: list[str]


EXTRACTION_JOB = JobKind("extraction", ExtractionPayload)
"""Extracts memories from a batch of messages."""

TOOL_EXTRACTION_JOB = JobKind("tool_extraction", ExtractionPayload)
"""Extracts memories by letting the model call the tool `upsert_memories`."""

EMBEDDING_JOB = JobKind("message_embedding", EmbeddingPayload)
"""Computes the vectors of messages that were stored while the embedder was unavailable or slow."""

SUMMARY_JOB = JobKind("summary", SummaryPayload)
"""Summarizes a session."""

CLOSING_JOB = JobKind("session_closing", ClosingPayload)
"""Promotes the important memories of a closed session and summarizes it."""
