"""The report of `bench_http`: what was measured per kind of request, compared with Graphiti and the last release."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from benches.http_verbs import Verb
from benches.metrics import quantile
from benches.previous import PreviousFigures, PreviousHttp

QUANTILES = {"p50_ms": 0.5, "p95_ms": 0.95, "p99_ms": 0.99}

COLUMNS = (
    "request",
    "agents",
    "p50 / p95 / p99 ms",
    "requests/s",
    "written/s",
    "CPU ms a request, API + Neo4j",
    "Graphiti p50 / p95 / p99 ms",
    "times as fast",
    "before",
    "goal",
)


@dataclass(slots=True)
class HttpResult:
    """What agents measured with one kind of request; `peer_ms` are durations of Graphiti with as many callers."""

    verb: Verb
    agents: int
    durations_ms: list[float]
    seconds: float
    cpu_seconds: Mapping[str, float]
    failures: list[str] = field(default_factory=list)
    peer_ms: Sequence[float] = ()

    @property
    def figures(self) -> dict[str, float]:
        """The figures by name, empty without a request that succeeded."""
        if not self.durations_ms or not self.seconds:
            return {}
        count = len(self.durations_ms)
        return {
            **{name: quantile(self.durations_ms, share) for name, share in QUANTILES.items()},
            "requests": count,
            "requests_per_s": count / self.seconds,
            **({"units_per_s": self.verb.units * count / self.seconds} if self.verb.unit else {}),
            **{f"cpu_ms_{name}": seconds / count * 1000 for name, seconds in self.cpu_seconds.items()},
            **{f"graphiti_{name}": quantile(self.peer_ms, share) for name, share in QUANTILES.items() if self.peer_ms},
        }

    def missed(self) -> set[str]:
        """Return the names of the figures that miss their goal; latencies have one for a single agent only."""
        figures = self.figures
        slow = {name for name, most in self.verb.most.items() if self.agents == 1 and figures.get(name, most) > most}
        return slow | {name for name, least in self.verb.least.items() if figures.get(name, least) < least}

    def as_json(self, before: PreviousHttp | None) -> dict[str, Any]:
        """Return the figures with what they are of."""
        return {
            "verb": self.verb.key,
            "agents": self.agents,
            **self.figures,
            "missed": sorted(self.missed()),
            "failures": self.failures,
            "before": before.model_dump() if before else None,
        }


def table(results: Sequence[HttpResult], previous: PreviousFigures, head: Sequence[str]) -> str:
    """Return the report in Markdown; `head` are sentences above the table."""
    lines = [
        "# Requests over HTTP",
        "",
        *head,
        "",
        f"“before” is release {previous.release}, measured on {previous.measured} on {previous.machine}; figures that "
        "miss their goal are bold.",
        "",
        f"| {' | '.join(COLUMNS)} |",
        "|---" * 2 + "|---:" * (len(COLUMNS) - 2) + "|",
    ]
    lines += [f"| {' | '.join(_cells(result, previous))} |" for result in results]
    failures = [f"- {result.verb.title}: {failure}" for result in results for failure in result.failures]
    notes = [
        f"- {result.verb.title}, before: {before.note}."
        for result in results
        if (before := previous.find_http(result.verb.key, result.agents)) and before.note
    ]
    if notes:
        lines += ["", "Notes:", "", *notes]
    if failures:
        lines += ["", "Requests that failed, which no figure counts:", "", *failures]
    return "\n".join(lines) + "\n"


def _cells(result: HttpResult, previous: PreviousFigures) -> list[str]:
    figures, missed = result.figures, result.missed()

    def show(name: str, digits: int = 1) -> str:
        if name not in figures:
            return ""
        text = f"{figures[name]:,.{digits}f}"
        return f"**{text}**" if name in missed else text

    peer = [f"{figures[name]:.1f}" for name in (f"graphiti_{quantile}" for quantile in QUANTILES) if name in figures]
    faster = f"{figures['graphiti_p50_ms'] / figures['p50_ms']:.1f}" if peer else ""
    written = f"{show('units_per_s', 0)} {result.verb.unit}" if "units_per_s" in figures else ""
    return [
        result.verb.title,
        str(result.agents),
        " / ".join(show(name) for name in QUANTILES) if figures else _why_none(result),
        show("requests_per_s"),
        written,
        " + ".join(show(f"cpu_ms_{name}") for name in result.cpu_seconds) if figures else "",
        " / ".join(peer),
        faster,
        _show_before(previous.find_http(result.verb.key, result.agents), result),
        _show_goal(result),
    ]


def _why_none(result: HttpResult) -> str:
    return "no request succeeded" if result.failures else "no request ended in time"


def _show_before(before: PreviousHttp | None, result: HttpResult) -> str:
    if before is None:
        return ""
    latencies = [before.p50_ms, before.p95_ms, before.p99_ms]
    known = (
        [" / ".join("–" if value is None else f"{value:g}" for value in latencies) + " ms"] if any(latencies) else []
    )
    known += [f"{before.requests_per_s:g} requests/s"] if before.requests_per_s is not None else []
    known += [f"{before.units_per_s:g} {result.verb.unit}/s"] if before.units_per_s is not None else []
    agents = f" ({before.agents} agents)" if known and before.agents != result.agents else ""
    return ", ".join(known) + agents


def _show_goal(result: HttpResult) -> str:
    latencies = result.verb.most.items() if result.agents == 1 else ()
    return ", ".join(
        [
            *(f"{name.removesuffix('_ms')} ≤ {most:g}" for name, most in latencies),
            *(f"≥ {least:,g} {result.verb.unit}/s" for least in result.verb.least.values()),
        ]
    )
