"""The reports of an evaluation: suites apart, and cases that are not recorded apart."""

from __future__ import annotations

from quality.cases import EvaluationCase
from quality.extraction import exit_status
from quality.report import SuiteScore, render_markdown, to_json
from quality.results import BatchOutcome, CaseResult, ScoredMemory
from quality.score import CaseScore, score_case


def case(id: str) -> EvaluationCase:
    sessions = [{"session_id": "s1", "messages": [{"role": "user", "content": "I have a cat."}]}]
    expected = {"keep": [{"any": ["cat"]}]}
    return EvaluationCase.model_validate({"id": id, "tags": ["pet"], "sessions": sessions, "expected": expected})


def score(id: str, error: str | None = None) -> CaseScore:
    memory = ScoredMemory(id="1", content="Ida has a cat", type="fact", subject="user")
    return score_case(case(id), CaseResult([memory], [BatchOutcome("succeeded", 1, error=error)]))


def test_a_case_without_a_recording_is_named_and_not_counted_as_wrong() -> None:
    suite = SuiteScore.of("hard conversations", [case("a"), case("b")], [score("a")])
    text = render_markdown([suite])
    assert "## Hard conversations" in text
    assert "1 cases, 1 batches, 0 skipped, 0 failed; not recorded: 1." in text
    assert "| recall | 100.0 % | 1/1 |" in text
    assert to_json([suite])["hard conversations"]["not_recorded"] == ["b"]


def test_each_suite_has_its_own_figures() -> None:
    scores = [score("a"), score("b")]
    suites = [SuiteScore.of("first", [case("a")], scores), SuiteScore.of("second", [case("b"), case("c")], scores)]
    figures = to_json(suites)
    assert [len(figures[name]["cases"]) for name in ("first", "second")] == [1, 1]
    assert render_markdown(suites).index("## First") < render_markdown(suites).index("## Second")


def test_a_suite_without_any_recording_has_no_figures() -> None:
    text = render_markdown([SuiteScore.of("hard", [case("a")], [])])
    assert "not recorded: 1." in text
    assert "recall" not in text


def test_a_run_fails_when_a_batch_failed_or_nothing_is_recorded() -> None:
    partly = SuiteScore.of("hard", [case("a"), case("b")], [score("a")])
    assert exit_status([partly]) == 0
    assert exit_status([SuiteScore.of("hard", [case("a")], [])]) == 1
    assert exit_status([SuiteScore.of("hard", [case("a")], [score("a", "timed out")])]) == 1
