"""Answers per token: which questions are drawn, what fits a budget, who sees what, and what the figures mean."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from evaluation.answers.__main__ import load_contexts, main, save_contexts
from evaluation.answers.completions import RecordedModel
from evaluation.answers.contexts import CONTEXT, GRAPHITI, SEARCH, AnswerContext, FoundLine, fill_budget
from evaluation.answers.judge import (
    JudgeAnswer,
    NumberedVerdict,
    Rating,
    distinct_answers,
    find_score,
    judge_prompt,
    scores_by_answer,
)
from evaluation.answers.questions import AskedQuestion, draw, read_file
from evaluation.answers.reader import ReaderAnswer, in_rounds, reader_prompt
from evaluation.answers.report import render_report
from evaluation.answers.scores import Figure, answer_share, bootstrap, difference, evidence_share
from graphmem.models.language_model import Completion
from graphmem.models.prompts import Prompt
from graphmem.models.receipt import Receipt
from graphmem.text.token_counts import count_tokens


def question(number: int = 0, category: str = "when", conversation: str = "c1", **fields: Any) -> AskedQuestion:
    given = {"text": f"Question {number}?", "expected": "7 May 2023", "evidence": frozenset({"m1", "m2"}), **fields}
    return AskedQuestion(
        id=f"file/{conversation}/{category}{number:03}",
        source="file",
        conversation=conversation,
        category=category,
        **given,
    )


def context(asked: AskedQuestion, system: str = CONTEXT, budget: int = 250, text: str = "") -> AnswerContext:
    return AnswerContext(asked, system, budget, text or f"{system} {budget}", frozenset({"m1"}))


class CountingModel:
    """A model that answers every reader alike and counts what it is asked."""

    def __init__(self, answer: str = "7 May 2023") -> None:
        self.answer = answer
        self.prompts: list[Prompt] = []

    async def complete_structured(self, prompt: Any, schema: Any, *, use: str = "main") -> Completion[Any]:
        self.prompts.append(prompt)
        return Completion(schema(answer=self.answer), Receipt())

    async def call_tools(self, *_: Any, **__: Any) -> Any:
        raise AssertionError("readers and judges call no tools")


def test_questions_are_read_from_both_kinds_of_files(tmp_path: Path) -> None:
    asked = {"question": "When?", "answer": 2022, "evidence": ["m1"]}
    numbered = {"id": "a", "messages": [], "facts": [{"id": "f"}], "qa": [
        asked | {"category": 2}, asked | {"category": 5}, asked | {"category": 2, "evidence": []},
    ]}  # fmt: skip
    no_facts = {"id": "b", "messages": [], "qa": [asked | {"category": 2}]}
    path = tmp_path / "first.json"
    path.write_text(json.dumps({"categories": {"2": "temporal"}, "conversations": [numbered, no_facts]}), "utf-8")
    assert [(read.id, read.category, read.expected) for read in read_file(path).questions] == [
        ("first/a/0", "temporal", "2022")
    ]
    able = {"question": "Why?", "answer": "", "ability": "multi_session", "evidence": [], "rubric": ["says so"]}
    path.write_text(json.dumps({"conversations": [{"id": "b", "messages": [], "qa": [able]}]}), "utf-8")
    assert [(read.category, read.expected) for read in read_file(path).questions] == [("multi session", "- says so")]


def test_questions_are_drawn_evenly_over_categories_and_conversations() -> None:
    many = [
        question(number, category, conversation)
        for category, count in (("when", 50), ("who", 30), ("what", 3))
        for conversation in ("c1", "c2")
        for number in range(count)
    ]
    drawn = draw(many, 26)
    assert Counter(asked.category for asked in drawn) == {"when": 10, "who": 10, "what": 6}
    assert Counter(asked.conversation for asked in drawn if asked.category == "who") == {"c1": 5, "c2": 5}
    assert draw(reversed(many), 26) == drawn
    assert draw(many, 26, seed=1) != drawn
    assert len(draw(many, 1000)) == len(many)


def test_a_budget_is_filled_with_what_fits_best_first() -> None:
    lines = [FoundLine("word " * 40, ["a"]), FoundLine("word " * 400, ["b"]), FoundLine("short", ["c"])]
    text, covered = fill_budget(lines, 60)
    assert count_tokens(text) <= 60
    assert text.splitlines()[1] == "short"
    assert covered == {"a", "c"}
    text, covered = fill_budget(lines, 300)
    assert count_tokens(text) <= 300
    assert covered == {"a", "b", "c"}, "what is left is filled with the beginning of the first line that is too long"


def test_no_round_asks_a_question_twice_and_every_round_has_all_kinds_of_contexts() -> None:
    asked = [question(number) for number in range(8)]
    contexts = [context(one, system, budget) for one in asked for system in (CONTEXT, GRAPHITI) for budget in (1, 2)]
    ordered = in_rounds(contexts)
    assert Counter(map(id, ordered)) == Counter(map(id, contexts))
    for start in range(0, len(ordered), len(asked)):
        batch = ordered[start : start + len(asked)]
        assert len({one.question.id for one in batch}) == len(asked)
        assert set(Counter((one.system, one.budget) for one in batch).values()) == {2}


def test_neither_reader_nor_judge_learns_where_a_context_is_from() -> None:
    asked = question(text="When did Caroline go?")
    prompts = [reader_prompt(context(asked, system, text="- She went on 7 May 2023")) for system in (CONTEXT, GRAPHITI)]
    assert prompts[0] == prompts[1]
    answers = distinct_answers(asked, ["7 May", " 7  May ", "in June", "not known"])
    assert sorted(answers) == ["7 May", "in June", "not known"]
    assert answers == distinct_answers(asked, ["not known", "in June", "7 May"]), "the order tells nothing"
    prompt = judge_prompt(asked, answers)
    assert all(f"{number}. {answer}" in prompt.user for number, answer in enumerate(answers, start=1))
    assert asked.expected in prompt.user


def test_verdicts_are_matched_to_answers_by_number() -> None:
    ratings = [NumberedVerdict(number=2, rating=Rating.RIGHT), NumberedVerdict(number=1, rating=Rating.PARTLY)]
    scores = scores_by_answer(["in May", "7 May", "in June"], JudgeAnswer(verdicts=ratings))
    assert [find_score(scores, answer) for answer in ("in May", " 7 May", "in June")] == [0.5, 1.0, None]


async def test_an_answer_is_kept_and_not_asked_for_again(tmp_path: Path) -> None:
    path, model = tmp_path / "kept" / "completions.jsonl", CountingModel()
    prompts = [reader_prompt(context(question(number))) for number in range(3)]
    recorded = RecordedModel(path, model, in_flight=2)
    assert recorded.find_pending([*prompts, prompts[0]], ReaderAnswer) == prompts
    assert await recorded.ask_all([*prompts, prompts[0]], ReaderAnswer) == [ReaderAnswer(answer="7 May 2023")] * 4
    assert len(model.prompts) == 3
    replayed = RecordedModel(path, None, in_flight=2)
    another = reader_prompt(context(question(9)))
    assert await replayed.ask_all([prompts[1], another], ReaderAnswer) == [ReaderAnswer(answer="7 May 2023"), None]
    assert replayed.find_pending([prompts[1], another], ReaderAnswer) == [another]


def test_a_run_continues_with_the_contexts_of_an_earlier_one(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL"):
        monkeypatch.delenv(name, raising=False)
    contexts = [context(question(), system, budget) for system in (CONTEXT, GRAPHITI) for budget in (250, 500)]
    kept, pending = tmp_path / "contexts.jsonl", tmp_path / "pending.jsonl"
    save_contexts(contexts, kept)
    assert load_contexts(kept) == contexts
    files = ["--contexts", str(kept), "--completions", str(tmp_path / "none.jsonl"), "--out", str(tmp_path)]
    assert main([*files, "--pending", str(pending)]) == 0
    requests = [json.loads(line) for line in pending.read_text("utf-8").splitlines()]
    assert [request["name"] for request in requests] == ["answer"] * 4
    assert "4 requests are not answered" in capsys.readouterr().out


def test_evidence_and_words_of_the_answer_are_found_in_a_context() -> None:
    asked = question(text="When did Caroline go to the group?", expected="The group met on 7 May 2023")
    held = context(asked, text="- Caroline met them (2023-05-07)")
    assert evidence_share(held) == 0.5
    assert answer_share(held) == 1.0, "words of the question do not count, and a day counts in any form"
    assert answer_share(context(asked, text="- Caroline met them (2023-06-09)")) == pytest.approx(2 / 3)
    assert evidence_share(context(question(evidence=frozenset()))) is None


def test_the_interval_of_a_difference_is_that_of_the_questions_both_answered() -> None:
    gains = [1.0, 0.0, 0.5, 0.0, 1.0, 0.0, 0.0, 0.5, 1.0, 0.0]
    figures = [Figure(f"q{n}", "when", CONTEXT, 250, gain) for n, gain in enumerate(gains)]
    figures += [Figure(f"q{n}", "when", GRAPHITI, 250, 0.0) for n in range(len(gains))]
    figures += [Figure("only one", "when", CONTEXT, 250, 0.0), Figure("q1", "when", GRAPHITI, 500, 1.0)]
    found = difference(figures, CONTEXT, GRAPHITI, 250)
    assert found
    assert found.mean == pytest.approx(0.4)
    assert found.count == 10
    assert 0.1 <= found.low < 0.25 < 0.55 < found.high <= 0.7
    assert difference(figures, CONTEXT, SEARCH, 250) is None
    same = bootstrap([0.5] * 5)
    assert (same.mean, same.low, same.high) == (0.5, 0.5, 0.5)


def test_the_report_has_all_systems_sizes_and_categories() -> None:
    figures = [
        Figure(f"q{number}", category, system, budget, float(system == CONTEXT))
        for number, category in enumerate(("when", "who"))
        for system in (CONTEXT, SEARCH, GRAPHITI)
        for budget in (250, 500, 1000, 2000)
    ]
    report = render_report("Right answers", figures)
    assert "## Right answers, 2 questions" in report
    assert "| all | 2 | graphmem context | 1.000 | 1.000 | 1.000 | 1.000 |" in report
    assert "| who | 1 | graphmem context − Graphiti search | +1.000 (+1.000 to +1.000) |" in report
