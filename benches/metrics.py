"""What is measured of an order of messages, and of times."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

RECALL_CUTOFFS = (5, 10, 20)


def recall(order: Sequence[str], wanted: frozenset[str], cut: int) -> float:
    """Return the share of the wanted messages among the first `cut`."""
    return len(wanted.intersection(order[:cut])) / len(wanted)


def reciprocal_rank(order: Sequence[str], wanted: frozenset[str]) -> float:
    """Return one over the place of the first wanted message, 0 when there is none."""
    return next((1 / place for place, each in enumerate(order, start=1) if each in wanted), 0.0)


@dataclass(slots=True)
class Measurements:
    """The answers of one way of searching: by category, and how long each took in milliseconds."""

    rows: list[tuple[int, list[float]]] = field(default_factory=list)
    durations_ms: list[float] = field(default_factory=list)

    def add(self, category: int, order: Sequence[str], wanted: frozenset[str]) -> None:
        """Count one answer."""
        self.rows.append(
            (category, [*(recall(order, wanted, cut) for cut in RECALL_CUTOFFS), reciprocal_rank(order, wanted)])
        )

    def mean(self, category: int | None = None) -> list[float]:
        """Return recall at each cut and the mean reciprocal rank, over one category or all."""
        chosen = [values for each, values in self.rows if category in (None, each)]
        return (
            [sum(column) / len(chosen) for column in zip(*chosen, strict=True)]
            if chosen
            else [0.0] * (len(RECALL_CUTOFFS) + 1)
        )


def quantile(values: Sequence[float], share: float) -> float:
    """Return the value below which a share of the values lies, by nearest rank."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]
