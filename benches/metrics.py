"""Figures of merit: recall and reciprocal rank of message orders, quantiles of durations."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

RECALL_CUTOFFS = (5, 10, 20)
"""Numbers of first messages among which evidence is counted."""


def recall(order: Sequence[str], evidence: frozenset[str], cutoff: int) -> float:
    """Return the share of the evidence among the first `cutoff` messages."""
    return len(evidence.intersection(order[:cutoff])) / len(evidence)


def reciprocal_rank(order: Sequence[str], evidence: frozenset[str]) -> float:
    """Return one over the rank of the first message that is evidence, 0 if there is none."""
    return next((1 / rank for rank, message_id in enumerate(order, start=1) if message_id in evidence), 0.0)


@dataclass(slots=True)
class Measurements:
    """The measurements of one way to search: figures of merit by category, and durations in milliseconds."""

    rows: list[tuple[int, list[float]]] = field(default_factory=list)
    durations_ms: list[float] = field(default_factory=list)

    @property
    def categories(self) -> set[int]:
        """The categories of the questions measured."""
        return {category for category, _ in self.rows}

    def add(self, category: int, order: Sequence[str], evidence: frozenset[str]) -> None:
        """Count the answer to one question."""
        recalls = [recall(order, evidence, cutoff) for cutoff in RECALL_CUTOFFS]
        self.rows.append((category, [*recalls, reciprocal_rank(order, evidence)]))

    def mean(self, category: int | None = None) -> list[float]:
        """Return recall at each cutoff and the mean reciprocal rank, over one category or all."""
        rows = [figures for row_category, figures in self.rows if category in (None, row_category)]
        if not rows:
            return [0.0] * (len(RECALL_CUTOFFS) + 1)
        return [sum(column) / len(rows) for column in zip(*rows, strict=True)]


def quantile(values: Sequence[float], share: float) -> float:
    """Return the value below which a share of the values lies, by nearest rank."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]
