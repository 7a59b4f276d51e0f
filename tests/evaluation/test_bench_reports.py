"""What the benchmarks of requests and of size read and report."""

from __future__ import annotations

import itertools
import json
from pathlib import Path

from benches.http_report import HttpResult
from benches.http_report import table as http_table
from benches.http_verbs import LoadPlan, PlannedUser, Verb, make_verbs
from benches.previous import PreviousFigures, PreviousHttp, read_previous
from benches.size_report import FIGURES
from benches.size_report import table as size_table

PREVIOUS = PreviousFigures(
    release="0",
    measured="2026-11-22",
    machine="two cores",
    http=[
        PreviousHttp(verb="search_big", agents=1, p50_ms=54, p95_ms=101),
        PreviousHttp(verb="save_one", agents=4, units_per_s=153),
        PreviousHttp(verb="context_big", agents=1),
    ],
    size={"venv_mb": 6300, "help_wall_ms": None},
)


def verb(key: str) -> Verb:
    return next(verb for verb in make_verbs({"big": 10_000, "small": 500}) if verb.key == key)


def result(key: str, agents: int, milliseconds: float, *, count: int = 10, peer: float | None = None) -> HttpResult:
    cpu = {"API": 0.05, "Neo4j": 0.1}
    peers = [peer] * 3 if peer else []
    return HttpResult(verb(key), agents, [milliseconds] * count, 2.0, cpu, peer_ms=peers)


def row(text: str, start: str) -> list[str]:
    line = next(line for line in text.splitlines() if line.startswith(f"| {start}"))
    return [cell.strip() for cell in line.strip("|").split("|")]


def test_a_row_shows_figures_beside_graphiti_and_before() -> None:
    cells = row(http_table([result("search_big", 1, 25, peer=250)], PREVIOUS, []), "search, user of 10,000")
    assert cells[1:5] == ["1", "**25.0** / 25.0 / 25.0", "5.0", ""]
    assert cells[5:8] == ["5.0 + 10.0", "250.0 / 250.0 / 250.0", "10.0"]
    assert cells[8:] == ["54 / 101 / – ms", "p50 ≤ 20, p95 ≤ 40"]


def test_many_agents_have_no_goal_of_latency_but_one_of_throughput() -> None:
    assert result("search_big", 8, 90).missed() == set()
    assert result("save_many", 8, 90, count=5).missed() == {"units_per_s"}
    assert result("save_many", 8, 90, count=6).missed() == set()


def test_a_figure_of_several_agents_before_names_their_number() -> None:
    text = http_table([result("save_one", 1, 5), result("save_one", 8, 5), result("context_big", 1, 5)], PREVIOUS, [])
    assert row(text, "save of one | 1 ")[-2] == ""
    assert row(text, "save of one | 8 ")[-2] == "153 facts/s (4 agents)"
    assert row(text, "context, 10,000")[-2] == ""


def test_a_kind_of_request_that_always_fails_is_reported() -> None:
    failed = HttpResult(verb("search_big"), 1, [], 0.0, {"API": 0.1}, failures=["3 × POST search_big: 503"])
    text = http_table([failed], PREVIOUS, [])
    assert row(text, "search, user")[2] == "no request succeeded"
    assert "503" in text


def test_every_kind_of_request_can_be_made(tmp_path: Path) -> None:
    export = tmp_path / "export.json"
    export.write_bytes(b"{}")
    user = PlannedUser(user_id="user0", questions=["who?"], names=["Ada Lovelace"])
    words = [f"word{number}" for number in range(100)]
    plan = LoadPlan(address="", key="", pids={}, run="run", users={"big": [user]}, words=words, exports={"big": export})
    for measured in make_verbs({"big": 10_000}):
        first, second = itertools.islice(measured.make_requests(plan, 0), 2)
        assert first.path.startswith("/v1/users/")
        if measured.unit:
            assert first != second, f"{measured.key} repeats a write"
        if measured.key == "long_messages":
            assert isinstance(first.body, dict)
            assert {len(message["content"]) for message in first.body["messages"]} == {2_000}


def test_the_report_of_sizes_marks_what_misses_its_goal() -> None:
    text = size_table({"venv_mb": 612.4, "torch_files": 0, "help_wall_ms": 99.26}, PREVIOUS, [("numpy", 40)], ["Head."])
    assert row(text, "virtual environment")[1:] == ["**612 MB**", "6,300 MB", "≤ 500 MB"]
    assert row(text, "`graphmem --help`")[1:] == ["99.3 ms", "", "≤ 400 ms"]
    assert row(text, "files of torch")[1:] == ["0", "", "none"]
    assert row(text, "numpy")[1:] == ["40.0"]


def test_the_figures_before_are_of_what_is_measured() -> None:
    previous = read_previous()
    assert {entry.verb for entry in previous.http} <= {verb.key for verb in make_verbs({"big": 10_000, "small": 500})}
    assert set(previous.size) == {figure.key for figure in FIGURES}
    assert json.dumps(previous.model_dump())


def test_a_kind_of_request_that_outlasts_its_measurement_is_reported_as_such() -> None:
    outlasting = HttpResult(verb("import_big"), 1, [], 0.0, {"API": 0.1}, failures=[])
    text = http_table([outlasting], PREVIOUS, [])
    assert row(text, "import with vectors, 10,000")[2] == "no request ended in time"
    assert not verb("import_big").warms_up
