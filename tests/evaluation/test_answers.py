"""Evaluations of answers: what is read from files, drawn, fits a budget, and who sees what; what figures mean."""

from __future__ import annotations

import json
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from graphmem.evaluation.benchmark import (
    AskedQuestion,
    Benchmark,
    BenchmarkConversation,
    draw_questions,
    read_benchmark,
)
from graphmem.evaluation.context_lines import FoundLine, fill_budget, find_quoted
from graphmem.evaluation.judging import (
    Cause,
    CauseAnswer,
    CriteriaVerdict,
    CriteriaVerdicts,
    RatedAnswer,
    RatedAnswers,
    Rating,
    answer_share,
    bootstrap,
    difference,
    distinct_answers,
    evidence_share,
    find_cause,
    find_rule,
    judge_prompt,
    reader_prompt,
    score_answers,
)
from graphmem.evaluation.run_folder import AnswerContext, RecordFile
from graphmem.runtime.errors import InvalidInput
from graphmem.text.token_counts import count_tokens


def question(number: int = 0, category: str = "when", conversation: str = "c1", **fields: Any) -> AskedQuestion:
    given: dict[str, Any] = {
        "text": f"Question {number}?",
        "expected": "7 May 2023",
        "evidence": ["m1", "m2"],
        **fields,
    }
    return AskedQuestion(
        id=f"{conversation}/{category}{number:03}", conversation=conversation, category=category, **given
    )


def context(asked: AskedQuestion, text: str = "", **fields: Any) -> AnswerContext:
    given: dict[str, Any] = {"system": "context", "budget": 250, "seconds": 0.01, "covered": ["m1"], **fields}
    return AnswerContext(question_id=asked.id, text=text, tokens=count_tokens(text), **given)


def write(path: Path, data: object) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(data), "utf-8")
    return path


def test_files_of_ones_own_name_categories_or_abilities(tmp_path: Path) -> None:
    messages = [{"id": "m1", "session": 1, "role": "user", "content": "Hello", "timestamp": "2023-05-08T13:56:00Z"}]
    asked = {"question": "When?", "answer": 2022, "evidence": ["m1"]}
    numbered = {"id": "a", "messages": messages, "qa": [asked | {"category": 2}, asked | {"category": 5}]}
    able = {"id": "b", "messages": [], "qa": [{"question": "Why?", "ability": "multi_session", "rubric": ["says so"]}]}
    categories = {"2": "temporal", "5": "adversarial"}
    path = write(tmp_path / "first.json", {"categories": categories, "conversations": [numbered, able]})
    read = read_benchmark(Benchmark.LOCOMO, path)
    assert [(one.id, one.category, one.expected, one.is_unanswerable) for one in read.questions] == [
        ("a/0", "temporal", "2022", False),
        ("a/1", "adversarial", "2022", True),
        ("b/0", "multi session", "", False),
    ]
    assert read.questions[2].criteria == ["says so"]
    assert read.conversations[0].messages[0].session == "session-1"


def test_longmemeval_is_read_as_published(tmp_path: Path) -> None:
    turns = [
        {"role": "user", "content": "My dog is Rex.", "has_answer": True},
        {"role": "assistant", "content": "Nice."},
    ]
    entry = {
        "question_id": "q1",
        "question_type": "single-session-user",
        "question": "What is my dog called?",
        "answer": "Rex",
        "question_date": "2023/05/30 (Tue) 23:40",
        "haystack_session_ids": ["s2", "s1"],
        "haystack_dates": ["2023/05/21 (Sun) 10:00", "2023/05/20 (Sat) 02:21"],
        "haystack_sessions": [turns, [{"role": "user", "content": "Hi."}]],
    }
    other = entry | {"question_id": "q2_abs"}
    read = read_benchmark(Benchmark.LONGMEMEVAL, write(tmp_path / "s.json", [entry, other]))
    first, second = read.questions
    assert (first.category, first.evidence, first.asked_at) == (
        "single-session-user",
        ["s2:0:0"],
        "2023/05/30 (Tue) 23:40",
    )
    assert (second.category, second.is_unanswerable) == ("abstention", True)
    sessions = read.conversations[0].sessions()
    assert [session for session, _ in sessions] == ["1-s1", "0-s2"], "the earlier session comes first"
    assert f"{sessions[1][1][1].timestamp:%Y-%m-%d %H:%M:%S}" == "2023-05-21 10:00:20"


def test_beam_is_read_as_published(tmp_path: Path) -> None:
    turns = [
        [
            {"role": "user", "id": 0, "time_anchor": "March-15-2024", "content": "I use Flask. ->-> 1,1"},
            {"role": "assistant", "id": 1, "content": "Good."},
        ]
    ]
    write(tmp_path / "100K" / "1" / "chat.json", [{"batch_number": 1, "turns": turns}])
    asked = {
        "knowledge_update": [
            {"question": "How many?", "answer": "165", "source_chat_ids": {"old": [0], "new": [1]}, "rubric": ["165"]}
        ],
        "abstention": [{"question": "Who?", "ideal_response": "no information", "rubric": ["no information"]}],
    }
    write(tmp_path / "100K" / "1" / "probing_questions" / "probing_questions.json", asked)
    read = read_benchmark(Benchmark.BEAM, tmp_path / "100K")
    assert [(one.category, one.expected, one.evidence) for one in read.questions] == [
        ("knowledge update", "165", ["0", "1"]),
        ("abstention", "no information", []),
    ]
    first, second = read.conversations[0].messages
    assert first.content == "I use Flask."
    assert f"{second.timestamp:%Y-%m-%d %H:%M:%S}" == "2024-03-15 00:00:20"


def test_plain_dates_of_ones_own_file_are_days_in_utc(tmp_path: Path) -> None:
    said = {"id": "m", "session": 1, "role": "user", "content": "I moved to Lund.", "timestamp": "2023-05-08"}
    fact = {"fact": "Mara lives in Lund", "valid_at": "2023-05-01", "evidence": ["m"]}
    held = {"id": "a", "messages": [said], "facts": [fact], "qa": []}
    [read] = read_benchmark(Benchmark.OTHER, write(tmp_path / "own.json", {"conversations": [held]})).conversations
    assert read.messages[0].timestamp == datetime(2023, 5, 8, tzinfo=UTC)
    assert read.facts[0].memory["valid_at"] == "2023-05-01T00:00:00Z"


def test_a_file_of_another_form_is_refused_with_what_is_wrong(tmp_path: Path) -> None:
    path = write(tmp_path / "other.json", {"conversations": [{"id": "a", "messages": [{"id": "m"}], "qa": []}]})
    with pytest.raises(InvalidInput, match=r"other\.json is not a other file \(KeyError: 'session'\)"):
        read_benchmark(Benchmark.OTHER, path)
    with pytest.raises(InvalidInput, match=r"get it from https://github\.com/snap-research/locomo"):
        read_benchmark(Benchmark.LOCOMO, tmp_path / "none.json")


def test_questions_are_drawn_evenly_over_categories_and_conversations() -> None:
    many = [
        question(number, category, conversation)
        for category, count in (("when", 50), ("who", 30), ("what", 3))
        for conversation in ("c1", "c2")
        for number in range(count)
    ]
    drawn = draw_questions(many, 26)
    assert Counter(asked.category for asked in drawn) == {"when": 10, "who": 10, "what": 6}
    assert Counter(asked.conversation for asked in drawn if asked.category == "who") == {"c1": 5, "c2": 5}
    assert draw_questions(reversed(many), 26) == drawn
    assert draw_questions(many, 26, seed=1) != drawn
    assert len(draw_questions(many, 1000)) == len(many)


def test_a_budget_is_filled_with_what_fits_best_first() -> None:
    lines = [FoundLine("word " * 40, ["a"]), FoundLine("word " * 400, ["b"]), FoundLine("short", ["c"])]
    filled = fill_budget(lines, 60)
    assert count_tokens(filled.text) <= 60
    assert [line.message_ids for line in filled.lines] == [["a"], ["c"]]
    filled = fill_budget(lines, 300)
    assert count_tokens(filled.text) <= 300
    assert [line.message_ids for line in filled.lines] == [["a"], ["c"], ["b"]], (
        "what is left is filled with the beginning of the first line that is too long"
    )


def test_messages_that_a_context_quotes_are_covered() -> None:
    said = {"m1": "Vera lives in Lund, where her sister was born and where she studies.", "m2": "It rains."}
    conversation = BenchmarkConversation.model_validate(
        {
            "id": "c",
            "messages": [{"id": key, "session": "1", "role": "user", "content": text} for key, text in said.items()],
        }
    )
    assert find_quoted(conversation, "- Vera: Vera lives in Lund, where her sister  was born …") == ["m1"]


def test_neither_reader_nor_judge_learns_where_a_context_is_from() -> None:
    asked = question(text="When did Caroline go?")
    assert "asked on this day" not in reader_prompt(asked, "- She went on 7 May 2023").user
    assert "2023/05/30" in reader_prompt(question(asked_at="2023/05/30"), "").user
    answers = distinct_answers(asked, ["7 May", " 7  May ", "in June", "not known"])
    assert sorted(answers) == ["7 May", "in June", "not known"]
    assert answers == distinct_answers(asked, ["not known", "in June", "7 May"]), "the order tells nothing"
    prompt, schema = judge_prompt(Benchmark.OTHER, asked, answers)
    assert schema is RatedAnswers
    assert all(f"{number}. {answer}" in prompt.user for number, answer in enumerate(answers, start=1))
    assert asked.expected in prompt.user


@pytest.mark.parametrize(
    ("benchmark", "asked", "said"),
    [
        (Benchmark.LOCOMO, {}, "Be generous"),
        (Benchmark.LOCOMO, {"is_unanswerable": True}, "Nobody said"),
        (Benchmark.LONGMEMEVAL, {"category": "temporal-reasoning"}, "off by one"),
        (Benchmark.LONGMEMEVAL, {"category": "knowledge-update"}, "present state"),
        (Benchmark.LONGMEMEVAL, {"category": "multi-session"}, "holds all the steps"),
        (Benchmark.LONGMEMEVAL, {"category": "abstention", "is_unanswerable": True}, "cannot be answered"),
        (Benchmark.OTHER, {"is_unanswerable": True}, "no such information"),
        (Benchmark.BEAM, {}, "`partly`: it says a part"),
    ],
)
def test_each_benchmark_judges_by_its_rule(benchmark: Benchmark, asked: dict[str, Any], said: str) -> None:
    assert said in find_rule(benchmark, question(**asked))


def test_verdicts_are_matched_to_answers_by_number() -> None:
    asked, answers = question(), ["in May", "7 May", "in June"]
    rated = [
        RatedAnswer(number=2, reason="the day", rating=Rating.RIGHT),
        RatedAnswer(number=1, reason="the month", rating=Rating.PARTLY),
    ]
    scored = score_answers(asked, answers, RatedAnswers(verdicts=rated))
    assert {answer: (found.score, found.reason) for answer, found in scored.items()} == {
        "in May": (0.5, "the month"),
        "7 May": (1.0, "the day"),
    }


def test_an_answer_counts_the_mean_of_its_criteria() -> None:
    asked = question(criteria=["says A", "says B"])
    prompt, schema = judge_prompt(Benchmark.BEAM, asked, ["A", "B"])
    assert schema is CriteriaVerdicts
    assert "2. says B" in prompt.user
    verdicts = [
        CriteriaVerdict(number=1, reason="half of it", points=[1, 0.5]),
        CriteriaVerdict(number=2, reason="one is missing", points=[1]),
    ]
    scored = score_answers(asked, ["A", "B"], CriteriaVerdicts(verdicts=verdicts))
    assert {answer: found.score for answer, found in scored.items()} == {"A": 0.75}


def test_a_cut_record_is_forgotten_and_the_last_one_of_a_key_counts(tmp_path: Path) -> None:
    path, asked = tmp_path / "contexts.jsonl", question()

    def open_file() -> RecordFile[AnswerContext]:
        return RecordFile(path, AnswerContext)

    open_file().add(context(asked, "first"), context(asked, "second"), context(asked, "other", budget=500))
    path.write_text(path.read_text("utf-8") + '{"question_id": "cut', "utf-8")
    read = open_file()
    assert [record.text for record in read] == ["second", "other"]
    read.add(context(asked, "third", budget=1))
    assert len(open_file()) == 3


def test_evidence_and_words_of_the_answer_are_found_in_a_context() -> None:
    asked = question(text="When did Caroline go to the group?", expected="The group met on 7 May 2023")
    held = context(asked, "- Caroline met them (2023-05-07)")
    assert evidence_share(asked, held) == 0.5
    assert answer_share(asked, held) == 1.0, "words of the question do not count, and a day counts in any form"
    assert answer_share(asked, context(asked, "- Caroline met them (2023-06-09)")) == pytest.approx(2 / 3)
    assert evidence_share(question(evidence=[]), held) is None


def test_the_interval_of_a_difference_is_that_of_the_questions_both_answered() -> None:
    gains = [1.0, 0.0, 0.5, 0.0, 1.0, 0.0, 0.0, 0.5, 1.0, 0.0]
    first = {f"q{number}": gain for number, gain in enumerate(gains)} | {"only one": 0.0}
    found = difference(first, {f"q{number}": 0.0 for number in range(len(gains))})
    assert found
    assert found.mean == pytest.approx(0.4)
    assert found.count == 10
    assert 0.1 <= found.low < 0.25 < 0.55 < found.high <= 0.7
    assert difference(first, {}) is None
    same = bootstrap([0.5] * 5)
    assert (same.mean, same.low, same.high) == (0.5, 0.5, 0.5)


@pytest.mark.parametrize(
    ("known", "cause"),
    [
        ({"sufficient_contexts": [1]}, Cause.READ_WRONGLY),
        ({"memories_suffice": False}, Cause.NOT_EXTRACTED),
        ({"memories_suffice": False, "misleading": [1]}, Cause.EXTRACTED_WRONGLY),
    ],
)
def test_the_cause_is_the_first_step_at_which_the_answer_was_lost(known: dict[str, Any], cause: Cause) -> None:
    none: dict[str, Any] = {"memories_suffice": True, "supporting": [], "misleading": [], "sufficient_contexts": []}
    assert find_cause(CauseAnswer(**none | known), [], 1, set()) is cause
