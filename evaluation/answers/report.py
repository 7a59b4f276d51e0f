"""The report: shares by system and size, by category, and differences with their intervals. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from evaluation.answers.contexts import BUDGETS, CONTEXT, GRAPHITI, SYSTEMS
from evaluation.answers.scores import Figure, Interval, difference, mean_of

ALL = "all"
"""Name of the group of all questions."""


def render_report(title: str, figures: Sequence[Figure]) -> str:
    """Return the figures in Markdown: a table of all questions, then one by category."""
    groups: dict[str, list[Figure]] = {}
    for figure in figures:
        groups.setdefault(figure.group, []).append(figure)
    lines = [f"## {title}, {_count(figures)} questions", "", *_table({ALL: list(figures)}), ""]
    return "\n".join([*lines, "### By category", "", *_table(dict(sorted(groups.items()))), ""])


def _table(groups: dict[str, list[Figure]]) -> list[str]:
    head = ["| | questions | | " + " | ".join(f"{budget:,} tokens" for budget in BUDGETS) + " |"]
    lines = [*head, "|---|---:|---|" + "---:|" * len(BUDGETS)]
    for name, figures in groups.items():
        for system in SYSTEMS:
            values = [_number(mean_of(figures, system, budget)) for budget in BUDGETS]
            lines.append(f"| {name} | {_count(figures)} | {system} | {' | '.join(values)} |")
        gains = [_gain(difference(figures, CONTEXT, GRAPHITI, budget)) for budget in BUDGETS]
        lines.append(f"| {name} | {_count(figures)} | {CONTEXT} − {GRAPHITI} | {' | '.join(gains)} |")
    return lines


def _count(figures: Sequence[Figure]) -> int:
    return len({figure.question_id for figure in figures})


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:.3f}"


def _gain(interval: Interval | None) -> str:
    return "" if interval is None else f"{interval.mean:+.3f} ({interval.low:+.3f} to {interval.high:+.3f})"
