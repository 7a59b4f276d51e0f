"""The figures of a run, and the table that shows them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Figure:
    """One measured value of a part, and what it must be; without a goal it is only reported."""

    part: str
    name: str
    value: str
    goal: str = ""
    is_met: bool = True

    @classmethod
    def count(cls, part: str, name: str, value: int, *, most: int | None = None, least: int | None = None) -> Figure:
        """Return a number with its bounds."""
        is_met = (most is None or value <= most) and (least is None or value >= least)
        goal = f"{most:,}" if most == 0 else f"≤ {most:,}" if most is not None else ""
        return cls(part, name, f"{value:,}", goal or (f"≥ {least:,}" if least is not None else ""), is_met)


def table(figures: Sequence[Figure]) -> str:
    """Return the figures as a Markdown table; those that miss their goal are bold."""
    lines = ["| part | figure | value | goal |", "|---|---|---|---|"]
    for figure in figures:
        value = figure.value if figure.is_met else f"**{figure.value}**"
        lines.append(f"| {figure.part} | {figure.name} | {value} | {figure.goal} |")
    return "\n".join(lines) + "\n"
