"""The outcome of an evaluation as Markdown and JSON."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from evaluation.score import NAMES, Figures, Share, Verdict, by_tag, costs, total

TARGETS = {
    "precision": "≥ 95 %",
    "recall": "≥ 90 %",
    "dates": "≥ 95 %",
    "wrong_supersessions": "≤ 1 %",
    "missed_supersessions": "≤ 5 %",
}


def markdown(verdicts: Sequence[Verdict], *, details: bool = True) -> str:
    """Return the tables; with `details` also each case that differs from what is expected."""
    figures = total(verdicts)
    cost = costs([batch for verdict in verdicts for batch in verdict.result.batches])
    overhead = f"{cost.overhead_p50_ms:.0f} ms" if cost.overhead_p50_ms is not None else "not measured"
    lines = [
        "# Extraction",
        "",
        f"{len(verdicts)} conversations, {cost.batches} batches, {cost.skipped} skipped, {cost.failed} failed.",
        "",
        "| measure | value | of | target |",
        "|---|---:|---:|---|",
        *(f"| {_words(name)} | {_cell(getattr(figures, name))} | {TARGETS.get(name, '')} |" for name in NAMES),
        f"| most calls a batch | {cost.most_calls} | {cost.batches} | ≤ 2 |",
        f"| most calls on skip | {cost.most_calls_on_skip} | {cost.skipped} | 1 |",
        f"| mean calls a batch | {cost.mean_calls:.2f} | {cost.batches} | |",
        f"| overhead outside model and embedding, p50 a batch | {overhead} | {cost.batches} | ≤ 60 ms |",
    ]
    if details:
        lines += ["", "## By tag", "", *_tags(verdicts), "", "## Cases that differ", "", *_cases(verdicts)]
    return "\n".join(lines) + "\n"


def write(verdicts: Sequence[Verdict], folder: Path) -> list[Path]:
    """Write `extraction.md` and `extraction.json` into a folder and return their paths."""
    folder.mkdir(parents=True, exist_ok=True)
    paths = [folder / "extraction.md", folder / "extraction.json"]
    paths[0].write_text(markdown(verdicts), "utf-8")
    paths[1].write_text(json.dumps(as_json(verdicts), ensure_ascii=False, indent=1) + "\n", "utf-8")
    return paths


def as_json(verdicts: Sequence[Verdict]) -> dict[str, Any]:
    """Return everything about a run: figures in all and by tag, costs, and each case with what was kept."""
    return {
        "figures": _figures(total(verdicts)),
        "costs": asdict(costs([batch for verdict in verdicts for batch in verdict.result.batches])),
        "tags": {tag: _figures(figures) for tag, figures in by_tag(verdicts).items()},
        "cases": [
            {
                "id": verdict.case.id,
                "tags": verdict.case.tags,
                "kept": [asdict(memory) for memory in verdict.result.kept],
                "missed": verdict.missed,
                "wrong": verdict.wrong,
                "batches": [asdict(batch) for batch in verdict.result.batches],
            }
            for verdict in verdicts
        ],
    }


def _figures(figures: Figures) -> dict[str, Any]:
    return {name: {**asdict(one), "value": one.value} for name in NAMES for one in [getattr(figures, name)]}


def _tags(verdicts: Sequence[Verdict]) -> list[str]:
    head = ["| tag | " + " | ".join(map(_words, NAMES)) + " |", "|---|" + "---:|" * len(NAMES)]
    rows = ([tag, *(_value(getattr(each, name)) for name in NAMES)] for tag, each in by_tag(verdicts).items())
    return head + [f"| {' | '.join(row)} |" for row in rows]


def _cases(verdicts: Sequence[Verdict]) -> list[str]:
    lines: list[str] = []
    for verdict in verdicts:
        errors = [f"failed: {batch.error}" for batch in verdict.result.batches if batch.error]
        notes = [*errors, *verdict.missed, *verdict.wrong]
        if notes:
            lines += [f"- {verdict.case.id} ({', '.join(verdict.case.tags)})", *(f"  - {note}" for note in notes)]
    return lines or ["none"]


def _cell(one: Share) -> str:
    return f"{_value(one)} | {one.part}/{one.whole}"


def _value(one: Share) -> str:
    return "–" if one.value is None else f"{100 * one.value:.1f} %"


def _words(name: str) -> str:
    return name.replace("_", " ")
