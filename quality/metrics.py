"""The metrics of an evaluation, as shares that add up. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, fields, replace
from typing import Any, TypeVar

MetricsT = TypeVar("MetricsT", bound=Any)


@dataclass(frozen=True, slots=True)
class Ratio:
    """A share; the sum of two is the share of both together."""

    part: int = 0
    whole: int = 0

    def __add__(self, other: Ratio) -> Ratio:
        return Ratio(self.part + other.part, self.whole + other.whole)

    @property
    def value(self) -> float | None:
        """The quotient; None where `whole` is 0."""
        return self.part / self.whole if self.whole else None


def ratio(checks: Iterable[bool]) -> Ratio:
    """Return the share of the checks that are true."""
    results = list(checks)
    return Ratio(sum(results), len(results))


def add_fields(one: MetricsT, other: MetricsT) -> MetricsT:
    """Return the sum of two dataclasses of one type, field by field."""
    sums = {field.name: getattr(one, field.name) + getattr(other, field.name) for field in fields(one)}
    return replace(one, **sums)


@dataclass(frozen=True, slots=True)
class Metrics:
    """The metrics of one case, or of several together."""

    precision: Ratio = field(default_factory=Ratio)
    recall: Ratio = field(default_factory=Ratio)
    entities: Ratio = field(default_factory=Ratio)
    dates: Ratio = field(default_factory=Ratio)
    types: Ratio = field(default_factory=Ratio)
    wrong_supersessions: Ratio = field(default_factory=Ratio)
    missed_supersessions: Ratio = field(default_factory=Ratio)
    skips: Ratio = field(default_factory=Ratio)
    forbidden: Ratio = field(default_factory=Ratio)
    reinforcements: Ratio = field(default_factory=Ratio)
    languages: Ratio = field(default_factory=Ratio)
    domains: Ratio = field(default_factory=Ratio)

    def __add__(self, other: Metrics) -> Metrics:
        return add_fields(self, other)


METRIC_NAMES = tuple(Metrics.__dataclass_fields__)
"""Names of the metrics, in the order of a report."""
