"""`graphmem evaluate`: a whole run over a small benchmark, resumed, repeated from recordings, and refused."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from graphmem.evaluation.graphiti_system import graphiti_group
from graphmem.neo4j.driver import Graph
from tests.cli.conftest import Cli
from tests.evaluation.benchmark_model import BenchmarkModel

SPEAKERS = ("Gina", "Jon")


def write_locomo(path: Path) -> Path:
    """Write a conversation as LoCoMo publishes them, with questions of three categories."""
    said = {
        1: [("Gina", "Hey Jon! My sister Vera lives in Lund."), ("Jon", "Nice. Otto lives in Bern, by the way.")],
        2: [("Jon", "Ida lives in Porto now."), ("Gina", "And Carl lives in Graz, still. It rains a lot there.")],
    }
    conversation: dict[str, Any] = {"speaker_a": "Gina", "speaker_b": "Jon"}
    for number, turns in said.items():
        conversation[f"session_{number}_date_time"] = f"1:56 pm on {number} May, 2023"
        conversation[f"session_{number}"] = [
            {"speaker": name, "dia_id": f"D{number}:{place}", "text": text}
            for place, (name, text) in enumerate(turns, 1)
        ]
    asked = [
        ("Where does Vera live?", "Lund", 4, ["D1:1"]),
        ("Where does Otto live?", "Bern", 4, ["D1:2"]),
        ("Where does Ida live?", "Porto", 1, ["D2:1"]),
        ("Where does Carl live?", "Graz", 1, ["D2:2"]),
    ]
    qa: list[dict[str, Any]] = [
        {"question": question, "answer": answer, "category": category, "evidence": evidence}
        for question, answer, category, evidence in asked
    ]
    qa.append({"question": "Where does Xaver live?", "adversarial_answer": "Graz", "category": 5, "evidence": ["D2:2"]})
    path.write_text(json.dumps([{"sample_id": "conv-1", "conversation": conversation, "qa": qa}]), "utf-8")
    return path


@pytest.fixture
def model() -> Iterator[BenchmarkModel]:
    with BenchmarkModel() as running:
        yield running


@pytest.fixture
def locomo(tmp_path: Path) -> Path:
    return write_locomo(tmp_path / "locomo10.json")


def arguments(locomo: Path, out: Path, *more: str) -> list[str]:
    systems = [part for name in ("full-context", "search", "graphiti-search", "ask") for part in ("--against", name)]
    sizes = ["--budget", "1", "--budget", "200"]
    return ["evaluate", "locomo", "--data", str(locomo), "--out", str(out), *systems, *sizes, *more]


async def test_a_run_goes_on_after_failures_is_judged_and_reported_and_can_be_repeated_without_a_model(
    cli: Cli, model: BenchmarkModel, locomo: Path, tmp_path: Path
) -> None:
    """One run shows all that is reported, since each takes seconds."""
    model.unread = {"Carl"}
    model.failing["RatedAnswers"] = 2
    environment = {"OPENAI_BASE_URL": model.base_url, "GRAPHMEM_LLM_MODEL": "small"}
    run = arguments(locomo, tmp_path / "run", "--reader", "big", "--price-in", "1", "--price-out", "2", "--json")
    broken = await cli(*run, **environment)
    assert broken.code == 1
    assert "5 questions about 1 conversations of 4 messages in 2 sessions" in broken.err
    assert "2 questions are not answered or judged" in broken.err
    assert "Run the same command again to continue." in broken.err
    done = {name: count for name, count in model.calls.items() if name not in ("RatedAnswers", "CauseAnswer")}
    assert done
    mended = await cli(*run, **environment)
    assert mended.code == 0, mended.err
    assert {name: model.calls[name] for name in done} == done, "what is done is not asked again"
    other = await cli.here(*run, "--limit", "2", **environment)
    assert other.code == 1
    assert "contains a run with other options (questions)" in other.err

    report = mended.json
    assert (report["options"]["reader"], report["options"]["judge"]) == ("big", "small")
    by_label = {(row["system"], row["budget"]): row for row in report["systems"]}
    assert by_label.keys() == {
        ("full-context", None),
        *((name, size) for name in ("context", "search", "graphiti-search", "ask") for size in (1, 200)),
    }
    assert by_label["full-context", None]["questions"] == 4, "what nobody said is counted apart"
    assert by_label["full-context", None]["score"] == 1.0
    assert by_label["context", 1]["tokens"] <= 1
    assert by_label["search", 200]["score"] == 0.75, "where nothing was extracted, a search of facts finds nothing"
    assert by_label["ask", 200]["score"] >= 0.75
    assert by_label["ask", 200]["evidence"] >= 0.75, "what it cites is its evidence"
    assert [row["counted"] for row in report["categories"] if row["category"] == "adversarial"] == [False]
    assert report["thousand_messages"]["calls"] == 750, "two sessions, of which the second is compared with the first"
    assert {cause: counts["context, 1"] for cause, counts in report["causes"].items() if "context, 1" in counts} == {
        "not extracted": 1,
        "found, but not in the budget": 3,
    }, "a wrong answer is said to be lost where it was lost"
    assert report["costs"][0]["cost"] > 0
    assert (tmp_path / "run" / "categories.png").exists()
    answers = (tmp_path / "run" / "answers.md").read_text("utf-8")
    assert "> Jon: Ida lives in Porto now." in answers
    assert "| full-context | 1.000 | Porto | compared |" in answers

    calls = dict(model.calls)
    replayed = await cli(
        *arguments(locomo, tmp_path / "second", "--reader", "big", "--judge", "small", "--json"),
        "--replay",
        str(tmp_path / "run" / "recordings.jsonl"),
        GRAPHMEM_LLM_MODEL="small",
    )
    assert replayed.code == 0, replayed.err
    assert model.calls == calls
    scores = [[row["score"] for row in shown["systems"]] for shown in (report, replayed.json)]
    assert scores[0] == scores[1]


async def test_graphiti_extracts_by_itself_and_is_compared(
    cli: Cli, model: BenchmarkModel, locomo: Path, tmp_path: Path, graph: Graph
) -> None:
    environment = {"OPENAI_BASE_URL": model.base_url}
    run = ["evaluate", "locomo", "--data", str(locomo), "--against", "graphiti", "--budget", "100", "--json"]
    model.unread = {"Otto", "Carl"}
    model.failing["EdgeTimestamps"] = 1
    broken = await cli(*run, "--out", str(tmp_path / "run"), **environment)
    assert broken.code != 0
    assert "refused the request (400, broken)" in broken.err
    assert model.calls["ExtractedEntities"] == 1, "what follows waits for the message before it"
    done = await cli(*run, "--out", str(tmp_path / "run"), **environment)
    assert done.code == 0, done.err
    assert model.calls["ExtractedEntities"] == 4, "a completion that is recorded is not asked for again"
    report = done.json
    rows = {row["system"]: row for row in report["systems"]}
    assert rows["graphiti"]["score"] == 0.5, "it has nothing but what it has extracted"
    assert rows["graphiti"]["evidence"] == 0.4, "of five messages that questions are about"
    contexts = [json.loads(line) for line in (tmp_path / "run" / "contexts.jsonl").read_text("utf-8").splitlines()]
    found = next(one for one in contexts if one["system"] == "graphiti" and "Ida" in one["text"])
    assert "- Ida lives in Porto (2023-05-02 - present)" in found["text"]
    ours, theirs = report["extractions"]
    assert (ours["system"], theirs["system"]) == ("graphmem", "graphiti")
    assert theirs["messages"] == 4
    assert theirs["calls"] > ours["calls"] > 0
    assert theirs["facts"] == 500, "two of four messages"
    assert theirs["size"] > 500 * 4 * 384
    assert [step["step"] for step in report["costs"]][:2] == ["extraction", "extraction, graphiti"]
    text = (tmp_path / "run" / "report.md").read_text("utf-8")
    assert "## What does not compare" in text
    assert "| context" not in text.partition("## Extraction and storage")[2].partition("##")[0]
    group = graphiti_group(report["options"]["tenant"], "conv-1")
    assert await graph.fetch("graphiti.list_episodes", group_id=group) == [], (
        "its group is removed when all contexts are built"
    )


async def test_facts_that_the_file_states_are_measured_without_a_model(cli: Cli, tmp_path: Path) -> None:
    messages = [
        {"id": "1", "session": 1, "role": "user", "content": "Vera lives in Lund.", "timestamp": "2024-03-03T09:00:00Z"}
    ]
    fact = {"fact": "Vera lives in Lund", "subject": {"name": "Vera", "type": "Person"}, "evidence": ["1"]}
    asked = {"question": "Where does Vera live?", "answer": "Lund", "ability": "recall", "evidence": ["1"]}
    entry = {"id": "mine", "messages": messages, "facts": [fact], "qa": [asked]}
    path = tmp_path / "mine.json"
    path.write_text(json.dumps({"conversations": [entry]}), "utf-8")
    run = ["evaluate", str(path), "--given-facts", "--contexts-only", "--out", str(tmp_path / "run"), "--budget", "100"]
    done = await cli(*run, "--against", "search", "--json")
    assert done.code == 0, done.err
    held = [(row["system"], row["needed"], row["questions"], row["share"]) for row in done.json["held"]]
    assert held == [("context", 1, 1, 1.0), ("search", 1, 1, 1.0)]
    assert [(row["system"], row["evidence"], row["words"]) for row in done.json["systems"]] == [
        ("context", 1.0, 1.0),
        ("search", 1.0, 1.0),
    ]
    assert "no model" not in done.err


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (["locomo"], "download https://github.com/snap-research/locomo"),
        (["locomo", "--data", "missing.json"], "missing.json cannot be read"),
        (["longmemeval", "--data", "FILE"], "is not a longmemeval file"),
        (
            ["locomo", "--data", "FILE", "--against", "zep"],
            "choose from context, search, full-context, graphiti-search, graphiti, mem0, ask",
        ),
        (
            ["locomo", "--data", "FILE", "--against", "graphiti", "--given-facts"],
            "--against graphiti extracts, which --given-facts does not",
        ),
        (
            ["locomo", "--data", "FILE", "--against", "graphiti", "--contexts-only"],
            "--against graphiti needs a model to extract",
        ),
        (["locomo", "--data", "FILE", "--conversation", "conv-9"], "it has conv-1"),
        (["locomo", "--data", "FILE", "--price-in", "1"], "--price-in and --price-out together"),
        (["locomo", "--data", "FILE"], "A model is needed"),
    ],
)
async def test_what_cannot_run_is_refused_with_what_to_do(
    cli_without_settings: Cli, locomo: Path, given: list[str], said: str
) -> None:
    refused = await cli_without_settings.here("evaluate", *(str(locomo) if part == "FILE" else part for part in given))
    assert refused.code != 0
    assert said in refused.err
    assert not (cli_without_settings.folder / "reports").exists()


async def test_a_plan_says_what_a_run_will_ask_of_models(cli_without_settings: Cli, locomo: Path) -> None:
    planned = await cli_without_settings.here(
        *("evaluate", "locomo", "--data", str(locomo), "--plan", "--json", "--budget", "500", "--against"),
        *("full-context", "--price-in", "1", "--price-out", "2", "--limit", "3"),
    )
    assert planned.code == 0, planned.err
    steps = {step["step"]: step for step in planned.json["steps"]}
    assert (steps["extraction"]["calls"], steps["reading"]["calls"], steps["judging"]["calls"]) == (4, 6, 3)
    assert planned.json["cost"] == pytest.approx(sum(step["cost"] for step in steps.values()))


async def test_a_plan_counts_the_extraction_of_each_system(cli_without_settings: Cli, locomo: Path) -> None:
    against = ["--against", "graphiti", "--against", "mem0"]
    planned = await cli_without_settings.here("evaluate", "locomo", "--data", str(locomo), "--plan", "--json", *against)
    assert planned.code == 0, planned.err
    steps = {step["step"]: step for step in planned.json["steps"]}
    graphiti, mem0 = steps["extraction, graphiti"], steps["extraction, mem0"]
    assert graphiti["calls"] >= 3 * 4, "at least the entities of each message, which of them are known, and its facts"
    assert mem0["calls"] == 2, "one for two messages"
    assert mem0["prompt_tokens"] > 2 * 7_700
    assert graphiti["completion_tokens"] > 0
