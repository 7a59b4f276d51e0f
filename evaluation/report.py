"""The scores of an evaluation as Markdown and JSON."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from evaluation.score import METRIC_NAMES, CaseScore, Metrics, Ratio, metrics_by_tag, sum_metrics, summarize_costs

TARGETS = {
    "precision": "≥ 95 %",
    "recall": "≥ 90 %",
    "dates": "≥ 95 %",
    "wrong_supersessions": "≤ 1 %",
    "missed_supersessions": "≤ 5 %",
}
"""The targets of the metrics that have one."""


def render_markdown(scores: Sequence[CaseScore], *, details: bool = True) -> str:
    """Return the tables; with `details` also the cases that differ from what is expected."""
    figures = sum_metrics(scores)
    cost = summarize_costs([batch for score in scores for batch in score.result.batches])
    overhead = f"{cost.overhead_p50_ms:.0f} ms" if cost.overhead_p50_ms is not None else "not measured"
    lines = [
        "# Extraction",
        "",
        f"{len(scores)} conversations, {cost.batches} batches, {cost.skipped} skipped, {cost.failed} failed.",
        "",
        "| measure | value | of | target |",
        "|---|---:|---:|---|",
        *(
            f"| {_label(name)} | {_ratio_cell(getattr(figures, name))} | {TARGETS.get(name, '')} |"
            for name in METRIC_NAMES
        ),
        f"| most calls a batch | {cost.most_calls} | {cost.batches} | ≤ 2 |",
        f"| most calls on skip | {cost.most_calls_on_skip} | {cost.skipped} | 1 |",
        f"| mean calls a batch | {cost.mean_calls:.2f} | {cost.batches} | |",
        f"| overhead outside model and embedding, p50 a batch | {overhead} | {cost.batches} | ≤ 60 ms |",
    ]
    if details:
        lines += ["", "## By tag", "", *_tag_table(scores), "", "## Cases that differ", "", *_differing_cases(scores)]
    return "\n".join(lines) + "\n"


def write_report(scores: Sequence[CaseScore], folder: Path) -> list[Path]:
    """Write `extraction.md` and `extraction.json` into a folder and return their paths."""
    folder.mkdir(parents=True, exist_ok=True)
    paths = [folder / "extraction.md", folder / "extraction.json"]
    paths[0].write_text(render_markdown(scores), "utf-8")
    paths[1].write_text(json.dumps(to_json(scores), ensure_ascii=False, indent=1) + "\n", "utf-8")
    return paths


def to_json(scores: Sequence[CaseScore]) -> dict[str, Any]:
    """Return a run as JSON: metrics of all cases and by tag, costs, and each case with its memories."""
    return {
        "figures": _metrics_json(sum_metrics(scores)),
        "costs": asdict(summarize_costs([batch for score in scores for batch in score.result.batches])),
        "tags": {tag: _metrics_json(figures) for tag, figures in metrics_by_tag(scores).items()},
        "cases": [
            {
                "id": score.case.id,
                "tags": score.case.tags,
                "kept": [asdict(memory) for memory in score.result.kept],
                "missed": score.missed,
                "wrong": score.wrong,
                "batches": [asdict(batch) for batch in score.result.batches],
            }
            for score in scores
        ],
    }


def _metrics_json(figures: Metrics) -> dict[str, Any]:
    ratios: dict[str, Ratio] = {name: getattr(figures, name) for name in METRIC_NAMES}
    return {name: {**asdict(ratio), "value": ratio.value} for name, ratio in ratios.items()}


def _tag_table(scores: Sequence[CaseScore]) -> list[str]:
    head = ["| tag | " + " | ".join(map(_label, METRIC_NAMES)) + " |", "|---|" + "---:|" * len(METRIC_NAMES)]
    rows = (
        [tag, *(_percent(getattr(metrics, name)) for name in METRIC_NAMES)]
        for tag, metrics in metrics_by_tag(scores).items()
    )
    return head + [f"| {' | '.join(row)} |" for row in rows]


def _differing_cases(scores: Sequence[CaseScore]) -> list[str]:
    lines: list[str] = []
    for score in scores:
        errors = [f"failed: {batch.error}" for batch in score.result.batches if batch.error]
        notes = [*errors, *score.missed, *score.wrong]
        if notes:
            lines += [f"- {score.case.id} ({', '.join(score.case.tags)})", *(f"  - {note}" for note in notes)]
    return lines or ["none"]


def _ratio_cell(ratio: Ratio) -> str:
    return f"{_percent(ratio)} | {ratio.part}/{ratio.whole}"


def _percent(ratio: Ratio) -> str:
    return "–" if ratio.value is None else f"{100 * ratio.value:.1f} %"


def _label(name: str) -> str:
    return name.replace("_", " ")
