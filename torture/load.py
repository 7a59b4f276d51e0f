"""Load by Locust: fifty agents within capacity, then ten times as many beyond it."""

from __future__ import annotations

import asyncio
import csv
import re
from dataclasses import dataclass, field
from pathlib import Path

import httpx

from benches.locust_process import run_locust
from torture.deployment import Deployment
from torture.figures import Figure

AGENTS = 50
"""Agents within capacity."""

WARM_UP_SECONDS = 60
"""Longest time of the load that is not measured, in which the server compiles its queries."""

CROWD = 500
"""Agents beyond capacity, which send without a pause to think, and again after as long as `Retry-After` says."""

CROWD_SECONDS = 30
"""Longest time of the load beyond capacity."""

LEAST_SHARE = 0.5
"""Smallest ratio of the requests answered in a second beyond capacity to those within."""

MEMORY_GROWTH = 1.25
"""Greatest ratio of the memory of a process at the end to that after a third of the time."""

SAMPLE_SECONDS = 2.0
PART = "load"


@dataclass
class LoadResult:
    """What Locust and the processes showed."""

    requests: int = 0
    failures: int = 0
    percentiles_ms: dict[str, float] = field(default_factory=dict)
    rate: float = 0.0
    refused: dict[int, int] = field(default_factory=dict)
    memory_mb: list[dict[str, float]] = field(default_factory=list)
    failure_kinds: list[str] = field(default_factory=list)


async def run_load(deployment: Deployment, seconds: int) -> list[Figure]:
    """Load the API within and beyond its capacity; return the figures."""
    await _fill_users(deployment)
    await _run_locust(deployment, AGENTS, min(seconds, WARM_UP_SECONDS), "warm-up")
    steady = await _run_locust(deployment, AGENTS, seconds, "steady")
    crowded = await _run_locust(deployment, CROWD, min(seconds, CROWD_SECONDS), "crowd", pause="0")
    await deployment.wait_until_ready()
    after = await _run_locust(deployment, AGENTS, min(seconds, CROWD_SECONDS), "after")
    return [*_steady_figures(steady, seconds), *_crowd_figures(crowded, steady), *_after_figures(after, steady)]


async def _fill_users(deployment: Deployment) -> None:
    headers = {"Authorization": f"Bearer {deployment.key}"}
    async with httpx.AsyncClient(base_url=deployment.address, headers=headers, timeout=60) as client:
        for number in range(20):
            places = ("Lund", "Turin", "Porto", "Oslo", "Gdansk", "Leeds", "Graz", "Nantes", "Bergen", "Split")
            memories = [
                {"content": f"Friend {friend} visited {place}", "object": {"name": place}}
                for place in places
                for friend in range(20)
            ]
            response = await client.post(f"/v1/users/load{number}/memories", json={"memories": memories})
            response.raise_for_status()


async def _run_locust(
    deployment: Deployment, agents: int, seconds: int, name: str, pause: str | None = None
) -> LoadResult:
    """Run the agents, and sample the memory of the processes meanwhile."""
    prefix = deployment.folder / name
    environment = {
        "GRAPHMEM_TORTURE_KEY": deployment.key,
        "GRAPHMEM_TORTURE_ADDRESS": deployment.address,
        **({"GRAPHMEM_TORTURE_PAUSE": pause} if pause else {}),
    }
    memory: list[dict[str, float]] = []
    sampler = asyncio.create_task(_sample_memory(deployment, memory))
    try:
        file = Path(__file__).with_name("agents.py")
        text = await run_locust(
            file, agents, seconds, environment, "--csv", str(prefix), spawn_rate=max(1, agents // 5)
        )
    finally:
        sampler.cancel()
    result = LoadResult(memory_mb=memory)
    _read_csv(prefix, result)
    if found := re.search(r"^refused:(.*)$", text, re.MULTILINE):
        result.refused = {int(status): int(count) for status, count in re.findall(r"(\d+)=(\d+)", found[1])}
    return result


async def _sample_memory(deployment: Deployment, samples: list[dict[str, float]]) -> None:
    while True:
        samples.append(deployment.memory_mb())
        await asyncio.sleep(SAMPLE_SECONDS)


def _read_csv(prefix: Path, result: LoadResult) -> None:
    """Read the totals and the kinds of failures that Locust wrote."""
    with Path(f"{prefix}_stats.csv").open(newline="", encoding="utf-8") as stats:
        total = next(row for row in csv.DictReader(stats) if row["Name"] == "Aggregated")
    result.requests, result.failures = int(total["Request Count"]), int(total["Failure Count"])
    if not result.requests:
        raise RuntimeError("Locust has sent no request.")
    result.rate = float(total["Requests/s"])
    result.percentiles_ms = {name: float(total[name]) for name in ("50%", "95%", "99%")}
    with Path(f"{prefix}_failures.csv").open(newline="", encoding="utf-8") as failures:
        result.failure_kinds = [
            f"{row['Occurrences']} × {row['Method']} {row['Name']}: {row['Error']}" for row in csv.DictReader(failures)
        ]


def _steady_figures(steady: LoadResult, seconds: int) -> list[Figure]:
    errors = steady.failures + sum(steady.refused.values())
    return [
        Figure(PART, f"requests of {AGENTS} agents in {seconds} s", f"{steady.requests:,} ({steady.rate:.0f}/s)"),
        Figure(PART, "milliseconds p50 / p95 / p99", " / ".join(f"{ms:.0f}" for ms in steady.percentiles_ms.values())),
        Figure.count(PART, "errors " + "; ".join(steady.failure_kinds), errors, most=0),
        *_memory_figures(steady.memory_mb),
    ]


def _memory_figures(samples: list[dict[str, float]]) -> list[Figure]:
    figures = []
    for name in samples[0]:
        sizes = [sample[name] for sample in samples if name in sample]
        early, late = sizes[len(sizes) // 3], sizes[-1]
        ratio = late / early
        figures.append(
            Figure(
                PART,
                f"memory of {name}, MB after a third and at the end",
                f"{early:.0f}, {late:.0f} (× {ratio:.2f})",
                f"× ≤ {MEMORY_GROWTH}",
                ratio <= MEMORY_GROWTH,
            )
        )
    return figures


def _crowd_figures(crowded: LoadResult, steady: LoadResult) -> list[Figure]:
    answered = crowded.rate * (1 - sum(crowded.refused.values()) / crowded.requests)
    least = steady.rate * LEAST_SHARE
    refused = ", ".join(f"{status}: {count:,}" for status, count in crowded.refused.items()) or "none"
    return [
        Figure(PART, f"requests of {CROWD} agents without a pause", f"{crowded.requests:,} ({crowded.rate:.0f}/s)"),
        Figure(PART, "refused with Retry-After", refused),
        Figure(PART, "answered beyond capacity", f"{answered:,.0f}/s", f"≥ {least:,.0f}/s", answered >= least),
        Figure.count(
            PART, "other errors beyond capacity " + "; ".join(crowded.failure_kinds), crowded.failures, most=0
        ),
    ]


def _after_figures(after: LoadResult, steady: LoadResult) -> list[Figure]:
    errors = after.failures + sum(after.refused.values())
    return [
        Figure.count(PART, "errors after the crowd has left", errors, most=0),
        Figure(
            PART,
            "milliseconds p50 after, and before",
            f"{after.percentiles_ms['50%']:.0f}, {steady.percentiles_ms['50%']:.0f}",
        ),
    ]
