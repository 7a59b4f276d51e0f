"""The figures of the previous release, with which `bench_http` and `bench_size` compare theirs."""

from __future__ import annotations

from pathlib import Path

from pydantic import BaseModel, ConfigDict

PREVIOUS_FILE = Path(__file__).with_name("previous.json")


class PreviousHttp(BaseModel):
    """The figures of one kind of request; None where they were not measured. `agents` is at least two for a crowd."""

    model_config = ConfigDict(extra="forbid")

    verb: str
    agents: int
    p50_ms: float | None = None
    p95_ms: float | None = None
    p99_ms: float | None = None
    requests_per_s: float | None = None
    units_per_s: float | None = None
    note: str = ""


class PreviousFigures(BaseModel):
    """What was measured, on which day and machine; `size` is by the keys of `bench_size`."""

    model_config = ConfigDict(extra="forbid")

    release: str
    measured: str
    machine: str
    http: list[PreviousHttp]
    size: dict[str, float | None]

    def find_http(self, verb: str, agents: int) -> PreviousHttp | None:
        """Return the figures of a kind of request by one agent, or by any number of several agents."""
        fitting = (found for found in self.http if found.verb == verb)
        return next((found for found in fitting if found.agents == agents or min(found.agents, agents) > 1), None)


def read_previous(path: Path = PREVIOUS_FILE) -> PreviousFigures:
    """Return the figures of a file."""
    return PreviousFigures.model_validate_json(path.read_text("utf-8"))
