"""The report of `bench_size`: each figure compared with that of the previous release and its goal."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from benches.previous import PreviousFigures


@dataclass(frozen=True, slots=True)
class SizeFigure:
    """One figure that is measured; `most` is its goal."""

    key: str
    title: str
    unit: str
    most: float | None = None


FIGURES = (
    SizeFigure(
        "quickstart_s", "`make quickstart` with an empty environment and nothing downloaded by graphmem", "s", 60
    ),
    SizeFigure("install_s", "… of which installing it with its constraints", "s"),
    SizeFigure("venv_mb", "virtual environment", "MB", 500),
    SizeFigure("python_wall_ms", "Python that does nothing", "ms"),
    SizeFigure("python_cpu_ms", "… CPU", "ms"),
    SizeFigure("import_wall_ms", "`import graphmem`, with the start of Python", "ms", 150),
    SizeFigure("import_cpu_ms", "… CPU", "ms"),
    SizeFigure("import_graph_memory_wall_ms", "`from graphmem import GraphMemory`, with the start of Python", "ms"),
    SizeFigure("import_graph_memory_cpu_ms", "… CPU", "ms"),
    SizeFigure("help_wall_ms", "`graphmem --help`", "ms", 400),
    SizeFigure("help_cpu_ms", "… CPU", "ms"),
    SizeFigure("neo4j_first_start_s", "embedded Neo4j ready, first start of a data folder", "s"),
    SizeFigure("neo4j_second_start_s", "embedded Neo4j ready, second start", "s", 8),
    SizeFigure("serve_ready_s", "`graphmem serve` ready, Neo4j runs", "s", 3),
    SizeFigure("api_idle_mb", "resident memory of the API, idle", "MB", 250),
    SizeFigure("neo4j_idle_mb", "resident memory of Neo4j, idle", "MB"),
    SizeFigure("first_searches_ms", "median of the first 100 searches after a start", "ms"),
    SizeFigure("warm_search_ms", "median of searches once warm", "ms"),
    SizeFigure("first_over_warm", "first searches over warm ones", "×", 1.5),
    SizeFigure("torch_files", "files of torch that the API has loaded", "", 0),
)
"""What is measured, in the order of the report."""


def table(
    found: Mapping[str, float], previous: PreviousFigures, packages: Sequence[tuple[str, float]], head: Sequence[str]
) -> str:
    """Return the report in Markdown; `packages` are the largest ones with their MB, `head` the sentences above it."""
    lines = [
        "# Size and start",
        "",
        *head,
        "",
        f"“before” is release {previous.release}, measured on {previous.measured} on {previous.machine}; figures that "
        "miss their goal are bold.",
        "",
        "| figure | now | before | goal |",
        "|---|---:|---:|---:|",
    ]
    for figure in FIGURES:
        value, before = found.get(figure.key), previous.size.get(figure.key)
        now = _show(value, figure.unit)
        if value is not None and figure.most is not None and value > figure.most:
            now = f"**{now}**"
        goal = "" if figure.most is None else f"≤ {_show(figure.most, figure.unit)}" if figure.most else "none"
        lines.append(f"| {figure.title} | {now} | {_show(before, figure.unit)} | {goal} |")
    lines += ["", "| largest packages | MB |", "|---|---:|"]
    lines += [f"| {name} | {megabytes:.1f} |" for name, megabytes in packages]
    return "\n".join(lines) + "\n"


def _show(value: float | None, unit: str) -> str:
    if value is None:
        return ""
    digits = 0 if value >= 100 or value == int(value) else 1 if value >= 10 else 2
    return f"{value:,.{digits}f} {unit}".strip()
