"""Pictures of a report: right answers by size, by category, and times; needs the extra `evaluate`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from graphmem.evaluation.report import EvaluationReport, SystemFigures

if TYPE_CHECKING:
    from collections.abc import Callable

SIZE_INCHES = (7.0, 4.2)
"""Width and height of a picture."""


def draw_plots(report: EvaluationReport, folder: Path) -> list[str]:
    """Draw the pictures for which there are figures into a folder; return their names."""
    import matplotlib as mpl

    mpl.use("agg")
    has_scores = any(row.score is not None for row in report.systems)
    plots: dict[str, Callable[[EvaluationReport, Any], None]] = {"time.png": _draw_times}
    if has_scores:
        plots = {"score_and_tokens.png": _draw_scores, "categories.png": _draw_categories, **plots}
    for name, draw in plots.items():
        _draw(report, folder / name, draw)
    return list(plots)


def _draw(report: EvaluationReport, path: Path, draw: Callable[[EvaluationReport, Any], None]) -> None:
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(figsize=SIZE_INCHES, layout="constrained")
    draw(report, axes)
    axes.grid(alpha=0.3)
    figure.savefig(path, dpi=150)
    pyplot.close(figure)


def _draw_scores(report: EvaluationReport, axes: Any) -> None:
    by_system: dict[str, list[SystemFigures]] = {}
    for row in report.systems:
        if row.score is not None:
            by_system.setdefault(row.system, []).append(row)
    for system, rows in by_system.items():
        rows.sort(key=lambda row: row.tokens)
        axes.plot([row.tokens for row in rows], [row.score for row in rows], marker="o", label=system)
    axes.set(xscale="log", xlabel="tokens of the context", ylabel="right answers", title=_title(report))
    axes.legend()


def _draw_categories(report: EvaluationReport, axes: Any) -> None:
    labels = [row.label for row in report.systems if row.score is not None]
    width = 0.8 / max(len(labels), 1)
    for number, label in enumerate(labels):
        places = [place + number * width for place in range(len(report.categories))]
        axes.bar(places, [row.scores.get(label, 0.0) for row in report.categories], width, label=label)
    middles = [place + 0.4 - width / 2 for place in range(len(report.categories))]
    axes.set_xticks(middles, [row.category for row in report.categories], rotation=20)
    axes.set(ylabel="right answers", title=_title(report))
    axes.legend(fontsize="small")


def _draw_times(report: EvaluationReport, axes: Any) -> None:
    rows = [row for row in report.systems if row.p95_ms > 0]
    places = range(len(rows))
    axes.barh(places, [row.p95_ms for row in rows], color="0.8", label="95 % of the questions")
    axes.barh(places, [row.median_ms for row in rows], label="median")
    axes.set_yticks(list(places), [row.label for row in rows])
    axes.set(xlabel="milliseconds for a context", title=_title(report))
    axes.legend()


def _title(report: EvaluationReport) -> str:
    return f"{report.options.benchmark}: {report.options.name}, {len(report.options.questions)} questions"
