"""The scores of an evaluation as Markdown and JSON."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Self

from quality.cases import EvaluationCase
from quality.metrics import METRIC_NAMES, Metrics, Ratio
from quality.results import summarize_costs
from quality.score import CaseScore, metrics_by_tag, sum_metrics

TARGETS = {
    "precision": "≥ 95 %",
    "recall": "≥ 90 %",
    "dates": "≥ 95 %",
    "wrong_supersessions": "≤ 1 %",
    "missed_supersessions": "≤ 5 %",
    "forbidden": "0 %",
}
"""The targets of the metrics that have one."""


@dataclass(frozen=True, slots=True)
class SuiteScore:
    """The scores of one file of cases, and the ids of those that could not be replayed."""

    name: str
    scores: Sequence[CaseScore]
    not_recorded: Sequence[str]

    @classmethod
    def of(cls, name: str, cases: Sequence[EvaluationCase], scores: Sequence[CaseScore]) -> Self:
        """Return the suite of some cases, of which the scores are looked up."""
        by_id = {score.case.id: score for score in scores}
        found = [by_id[case.id] for case in cases if case.id in by_id]
        return cls(name, found, [case.id for case in cases if case.id not in by_id])


def render_markdown(suites: Sequence[SuiteScore], *, details: bool = True) -> str:
    """Return the tables of each suite; with `details` also the cases that differ from what is expected."""
    return "\n".join(["# Extraction", *("\n".join(["", *_suite_lines(suite, details)]) for suite in suites)]) + "\n"


def _suite_lines(suite: SuiteScore, details: bool) -> list[str]:
    scores = suite.scores
    figures = sum_metrics(scores)
    cost = summarize_costs([batch for score in scores for batch in score.result.batches])
    overhead = f"{cost.overhead_p50_ms:.0f} ms" if cost.overhead_p50_ms is not None else "not measured"
    lines = [
        f"## {suite.name.capitalize()}",
        "",
        f"{len(scores)} cases, {cost.batches} batches, {cost.skipped} skipped, {cost.failed} failed; "
        f"not recorded: {len(suite.not_recorded)}.",
    ]
    if not scores:
        return lines
    lines += [
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
        lines += ["", "### By tag", "", *_tag_table(scores), "", "### Cases that differ", "", *_differing_cases(scores)]
        lines += ["", "### Not recorded", "", ", ".join(suite.not_recorded) or "none"]
    return lines


def write_report(suites: Sequence[SuiteScore], folder: Path) -> list[Path]:
    """Write `extraction.md` and `extraction.json` into a folder and return their paths."""
    folder.mkdir(parents=True, exist_ok=True)
    paths = [folder / "extraction.md", folder / "extraction.json"]
    paths[0].write_text(render_markdown(suites), "utf-8")
    paths[1].write_text(json.dumps(to_json(suites), ensure_ascii=False, indent=1) + "\n", "utf-8")
    return paths


def to_json(suites: Sequence[SuiteScore]) -> dict[str, Any]:
    """Return a run as JSON, by suite: metrics of all cases and by tag, costs, and each case with its memories."""
    return {suite.name: _suite_json(suite) for suite in suites}


def _suite_json(suite: SuiteScore) -> dict[str, Any]:
    scores = suite.scores
    return {
        "figures": _metrics_json(sum_metrics(scores)),
        "costs": asdict(summarize_costs([batch for score in scores for batch in score.result.batches])),
        "tags": {tag: _metrics_json(figures) for tag, figures in metrics_by_tag(scores).items()},
        "not_recorded": list(suite.not_recorded),
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
