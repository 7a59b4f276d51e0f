"""The scores of an evaluation of consolidation as Markdown and JSON."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from quality.consolidation.cases import ConsolidationCase
from quality.consolidation.score import METRIC_NAMES, ConsolidationMetrics, NightScore, metrics_by, sum_metrics
from quality.metrics import Ratio


def render_markdown(scores: Sequence[NightScore], *, details: bool = True) -> str:
    """Return the tables; with `details` also the cases that differ from what is right."""
    failed = sum(score.outcome.error is not None for score in scores)
    memories = sum(len(score.case.memories) for score in scores)
    lines = [
        "# Consolidation",
        "",
        f"{len(scores)} users, {memories} memories, {failed} nights failed.",
        "",
        *_table("measure", {"all": sum_metrics(scores)}),
        "",
        "## By language",
        "",
        *_table("language", metrics_by(scores, lambda case: [case.language])),
        "",
        "## By theme",
        "",
        *_table("theme", metrics_by(scores, _themes)),
    ]
    if details:
        lines += ["", "## Cases that differ", "", *_differing_cases(scores)]
    return "\n".join(lines) + "\n"


def write_report(scores: Sequence[NightScore], folder: Path) -> list[Path]:
    """Write `consolidation.md` and `consolidation.json` into a folder and return their paths."""
    folder.mkdir(parents=True, exist_ok=True)
    paths = [folder / "consolidation.md", folder / "consolidation.json"]
    paths[0].write_text(render_markdown(scores), "utf-8")
    paths[1].write_text(json.dumps(to_json(scores), ensure_ascii=False, indent=1) + "\n", "utf-8")
    return paths


def to_json(scores: Sequence[NightScore]) -> dict[str, Any]:
    """Return a run as JSON: metrics of all cases, by language and by theme, and each case with what differs."""
    return {
        "figures": _metrics_json(sum_metrics(scores)),
        "languages": _by_label(metrics_by(scores, lambda case: [case.language])),
        "themes": _by_label(metrics_by(scores, _themes)),
        "cases": [
            {
                "id": score.case.id,
                "themes": score.case.themes,
                "metrics": _metrics_json(score.metrics),
                **asdict(score.findings),
                "refusals": list(score.outcome.refusals),
                "error": score.outcome.error,
            }
            for score in scores
        ],
    }


def _themes(case: ConsolidationCase) -> list[str]:
    return case.themes


def _by_label(metrics: dict[str, ConsolidationMetrics]) -> dict[str, Any]:
    return {label: _metrics_json(figures) for label, figures in metrics.items()}


def _metrics_json(metrics: ConsolidationMetrics) -> dict[str, Any]:
    values: dict[str, Ratio | int] = {name: getattr(metrics, name) for name in METRIC_NAMES}
    return {
        name: {**asdict(value), "value": value.value} if isinstance(value, Ratio) else value
        for name, value in values.items()
    }


def _table(label: str, rows: dict[str, ConsolidationMetrics]) -> list[str]:
    head = [
        f"| {label} | " + " | ".join(name.replace("_", " ") for name in METRIC_NAMES) + " |",
        "|---|" + "---:|" * len(METRIC_NAMES),
    ]
    return head + [
        f"| {name} | " + " | ".join(_cell(getattr(metrics, column)) for column in METRIC_NAMES) + " |"
        for name, metrics in rows.items()
    ]


def _differing_cases(scores: Sequence[NightScore]) -> list[str]:
    lines: list[str] = []
    for score in scores:
        errors = [f"failed: {score.outcome.error}"] if score.outcome.error else []
        notes = [*errors, *score.findings.all]
        if notes:
            refusals = [f"refused: {text}" for text in score.outcome.refusals]
            lines += [f"- {score.case.id}: {score.case.why}", *(f"  - {note}" for note in [*notes, *refusals])]
    return lines or ["none"]


def _cell(value: Ratio | int) -> str:
    if isinstance(value, int):
        return str(value)
    return f"{value.part}/{value.whole}" if value.whole else "–"
