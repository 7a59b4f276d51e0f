"""What a run of a case left behind: its memories, and what its batches cost. Pure."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass

USER = "user"
"""The name of the user's own entity in expectations."""


@dataclass(frozen=True, slots=True)
class ScoredMemory:
    """A memory at the end of a case, with the names of its entities and local dates.

    `replaced` marks a memory that another one superseded or the user took back, `taken_back` the latter alone.
    `stored` is the position, among the case's stored memories, of one that was there before the first message.
    """

    id: str
    content: str
    type: str
    subject: str
    subject_id: str = ""
    object: str | None = None
    entities: tuple[str, ...] = ()
    valid_at: str | None = None
    invalid_at: str | None = None
    current: bool = True
    replaced: bool = False
    taken_back: bool = False
    domain: str | None = None
    stored: int | None = None
    reinforced: bool = False

    @property
    def text(self) -> str:
        """Content and names."""
        return " · ".join([self.content, self.subject, self.object or "", *self.entities])


@dataclass(frozen=True, slots=True)
class BatchOutcome:
    """The cost of one batch; `overhead_ms` is the job's time outside model and embedder, where it was measured."""

    status: str
    calls: int
    overhead_ms: float | None = None
    error: str | None = None


@dataclass(frozen=True, slots=True)
class CaseResult:
    """The memories of a case at its end, its batches, and how many entities have a name of the user."""

    kept: Sequence[ScoredMemory]
    batches: Sequence[BatchOutcome] = ()
    user_entities: int = 1


@dataclass(frozen=True, slots=True)
class CostSummary:
    """Calls and overhead over all batches; times in milliseconds."""

    batches: int
    skipped: int
    failed: int
    most_calls: int
    most_calls_on_skip: int
    mean_calls: float
    overhead_p50_ms: float | None


def summarize_costs(batches: Sequence[BatchOutcome]) -> CostSummary:
    """Return the costs of all batches together."""
    overheads = [batch.overhead_ms for batch in batches if batch.overhead_ms is not None]
    skipped = [batch for batch in batches if batch.status == "skipped"]
    return CostSummary(
        batches=len(batches),
        skipped=len(skipped),
        failed=sum(batch.error is not None for batch in batches),
        most_calls=max((batch.calls for batch in batches), default=0),
        most_calls_on_skip=max((batch.calls for batch in skipped), default=0),
        mean_calls=statistics.fmean([batch.calls for batch in batches]) if batches else 0.0,
        overhead_p50_ms=statistics.median(overheads) if overheads else None,
    )
