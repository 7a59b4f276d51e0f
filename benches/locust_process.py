"""Runs Locust in a process of its own, since it replaces the standard library's sockets, and reads what it wrote."""

from __future__ import annotations

import asyncio
import csv
import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

STOP_SECONDS = 60
"""Seconds that requests in progress have to end after the time of a run."""

PERCENTILES = ("50%", "95%", "99%")
"""Percentiles that are read from the columns of Locust."""


@dataclass
class LocustTotals:
    """The totals of one run over all kinds of requests; Locust rounds its milliseconds."""

    requests: int = 0
    failures: int = 0
    percentiles_ms: dict[str, float] = field(default_factory=dict)
    rate: float = 0.0
    failure_kinds: list[str] = field(default_factory=list)


async def run_locust(
    file: Path, agents: int, seconds: float, prefix: Path, environment: Mapping[str, str], *, spawn_rate: int
) -> str:
    """Run the agents of a file for some seconds and return what Locust printed; the CSV files begin with `prefix`."""
    command = [
        *(sys.executable, "-m", "locust", "-f", str(file), "--headless"),
        *("--users", str(agents), "--spawn-rate", str(spawn_rate)),
        *("--run-time", f"{max(1, round(seconds))}s", "--stop-timeout", str(STOP_SECONDS)),
        *("--csv", str(prefix), "--only-summary", "--exit-code-on-error", "0"),
    ]
    process = await asyncio.create_subprocess_exec(
        *command, env=os.environ | environment, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT
    )
    output, _ = await process.communicate()
    text = output.decode(errors="replace")
    if process.returncode:
        raise RuntimeError(f"Locust ended with {process.returncode}: {text[-2000:]}")
    return text


def read_totals(prefix: Path) -> LocustTotals:
    """Return the totals of a run and its kinds of failures; raise RuntimeError when no request was sent."""
    with Path(f"{prefix}_stats.csv").open(newline="", encoding="utf-8") as stats:
        total = next(row for row in csv.DictReader(stats) if row["Name"] == "Aggregated")
    if not int(total["Request Count"]):
        raise RuntimeError("Locust has sent no request.")
    with Path(f"{prefix}_failures.csv").open(newline="", encoding="utf-8") as failures:
        kinds = [
            f"{row['Occurrences']} × {row['Method']} {row['Name']}: {row['Error']}" for row in csv.DictReader(failures)
        ]
    return LocustTotals(
        requests=int(total["Request Count"]),
        failures=int(total["Failure Count"]),
        percentiles_ms={name: float(total[name]) for name in PERCENTILES},
        rate=float(total["Requests/s"]),
        failure_kinds=kinds,
    )
