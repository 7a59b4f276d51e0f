"""Judging all distinct answers to a question in one request, blind to their origin, by the benchmark's rule. Pure.

The module also has the figures of contexts, and finds the causes of wrong answers.

The rules are those published with the benchmarks, in other words:

- LoCoMo: an answer is right or wrong, judged generously, as by mem0, Zep and others. Like them, it counts questions of
  the category `adversarial`, about things nobody said, separately.
- LongMemEval: right or wrong, by a rule for each type of question; abstention is one of the types.
- BEAM: a list of criteria, each met (1), half met (0.5) or not (0); an answer's score is their mean. The order of
  events is judged only by the criteria, without BEAM's additional rank correlation.
- Other files: by their `rubric`, as for BEAM, or else right, partly right (0.5) or wrong.
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from statistics import fmean

import yaml
from pydantic import BaseModel, Field

from graphmem.evaluation.benchmark import SEED, AskedQuestion, Benchmark, BenchmarkMessage, single_line
from graphmem.evaluation.context_lines import describe_fact, describe_message
from graphmem.evaluation.run_folder import AnswerContext
from graphmem.memories.memory import Memory
from graphmem.models.language_model import Prompt, load_prompts
from graphmem.runtime.field_types import UnitInterval
from graphmem.text.tokenising import tokenize

PROMPTS = load_prompts(Path(__file__).with_name("prompts"))
"""The prompts of evaluations."""

NO_CONTEXT = "(There are no notes.)"
"""The text given to a reader in place of an empty context."""


class ReaderAnswer(BaseModel):
    """The answer of a reader."""

    answer: str = Field(description="The answer, or: not known.")


def reader_prompt(question: AskedQuestion, context: str) -> Prompt:
    """Return the prompt of a reader: the context and the question, without the origin of the context."""
    asked_at = {"asked_at": question.asked_at} if question.asked_at else {}
    return PROMPTS["answer"].render(notes=context or NO_CONTEXT, question=question.text, **asked_at)


class Rating(StrEnum):
    """How an answer compares with the expected one."""

    RIGHT = "right"
    PARTLY = "partly"
    WRONG = "wrong"


POINTS: Mapping[Rating, float] = {Rating.RIGHT: 1.0, Rating.PARTLY: 0.5, Rating.WRONG: 0.0}
"""The points of each rating."""

RIGHT_SCORE = 0.5
"""The score from which an answer counts as right."""


class RatedAnswer(BaseModel):
    """The verdict on the answer of a number."""

    number: int
    reason: str
    rating: Rating


class RatedAnswers(BaseModel):
    """The verdicts on all answers to a question."""

    verdicts: list[RatedAnswer]


class CriteriaVerdict(BaseModel):
    """The points of the answer of a number, one for each criterion."""

    number: int
    reason: str
    points: list[UnitInterval] = Field(description="0, 0.5 or 1 for each criterion, in their order.")


class CriteriaVerdicts(BaseModel):
    """The points of all answers to a question."""

    verdicts: list[CriteriaVerdict]


@dataclass(frozen=True, slots=True)
class ScoredAnswer:
    """The score of an answer, from 0 to 1, and the reason."""

    score: float
    reason: str


_RULES: Mapping[str, Mapping[str, str]] = yaml.safe_load(
    Path(__file__).with_name("judging_rules.yaml").read_text("utf-8")
)

UNANSWERABLE = "unanswerable"
"""The rule for questions about things nobody said."""


def find_rule(benchmark: Benchmark, question: AskedQuestion) -> str:
    """Return the rule by which the answers to a question without criteria are rated."""
    rules = _RULES.get(benchmark.value, _RULES["other"])
    name = UNANSWERABLE if question.is_unanswerable else question.category
    return rules.get(name, rules["default"])


def distinct_answers(question: AskedQuestion, answers: Iterable[str]) -> list[str]:
    """Return the distinct answers to a question, shuffled independently of their given order."""
    distinct = sorted({single_line(answer) for answer in answers})
    random.Random(f"{SEED} {question.id}").shuffle(distinct)
    return distinct


def judge_prompt(
    benchmark: Benchmark, question: AskedQuestion, answers: Sequence[str]
) -> tuple[Prompt, type[RatedAnswers] | type[CriteriaVerdicts]]:
    """Return the prompt of the judge, and the schema of its verdicts."""
    numbered = number_lines(answers)
    if question.criteria:
        criteria = number_lines(question.criteria)
        prompt = PROMPTS["criteria"].render(question=question.text, criteria=criteria, answers=numbered)
        return prompt, CriteriaVerdicts
    rule = find_rule(benchmark, question)
    prompt = PROMPTS["judge"].render(rule=rule, question=question.text, expected=question.expected, answers=numbered)
    return prompt, RatedAnswers


def score_answers(
    question: AskedQuestion, answers: Sequence[str], judged: RatedAnswers | CriteriaVerdicts
) -> dict[str, ScoredAnswer]:
    """Return the score of each answer, except those without a verdict or without points for every criterion."""
    scored: dict[int, ScoredAnswer] = {}
    for verdict in judged.verdicts:
        if isinstance(verdict, RatedAnswer):
            scored[verdict.number] = ScoredAnswer(POINTS[verdict.rating], verdict.reason)
        elif len(verdict.points) == len(question.criteria):
            scored[verdict.number] = ScoredAnswer(fmean(verdict.points), verdict.reason)
    return {answer: scored[number] for number, answer in enumerate(answers, start=1) if number in scored}


def number_lines(texts: Iterable[str]) -> str:
    """Return texts as a numbered list, one per line."""
    return "\n".join(f"{number}. {single_line(text)}" for number, text in enumerate(texts, start=1))


RESAMPLES = 5_000
"""Bootstrap samples of the questions for an interval."""

CONFIDENCE = 0.95
"""Share of the samples' means inside an interval."""

_ISO_DAY = re.compile(r"\b(\d{4})-(\d{2})-(\d{2})\b")
_MONTHS = (
    *("January", "February", "March", "April", "May", "June"),
    *("July", "August", "September", "October", "November", "December"),
)


@dataclass(frozen=True, slots=True)
class Figure:
    """A figure for one context: its system, its budget, and its question."""

    question_id: str
    category: str
    system: str
    budget: int | None
    value: float


@dataclass(frozen=True, slots=True)
class Interval:
    """A mean with the bounds of its interval, over `count` questions."""

    mean: float
    low: float
    high: float
    count: int


def evidence_share(question: AskedQuestion, context: AnswerContext) -> float | None:
    """Return the share of the evidence whose message or fact is in a context; None without evidence."""
    evidence = set(question.evidence)
    return len(evidence & set(context.covered)) / len(evidence) if evidence else None


def all_held(question: AskedQuestion, context: AnswerContext) -> float | None:
    """Return 1 if a context has all of the evidence, else 0; None without evidence."""
    share = evidence_share(question, context)
    return None if share is None else float(share == 1)


def answer_share(question: AskedQuestion, context: AnswerContext) -> float | None:
    """Return the share of the expected answer's words in a context; None for an answer without words.

    Words of the question do not count; days match in any format.
    """
    expected = _words(question.expected) - _words(question.text)
    return len(expected & _words(context.text)) / len(expected) if expected else None


def values_of(figures: Iterable[Figure], system: str, budget: int | None) -> dict[str, float]:
    """Return the values of a system at a budget by question."""
    return {
        figure.question_id: figure.value for figure in figures if (figure.system, figure.budget) == (system, budget)
    }


def mean_of(values: Mapping[str, float]) -> Interval | None:
    """Return the mean of values by question, with its interval; None without values."""
    return bootstrap(list(values.values())) if values else None


def difference(first: Mapping[str, float], second: Mapping[str, float]) -> Interval | None:
    """Return the mean by which the first values exceed the second, over the questions of both.

    The interval is a paired bootstrap over the questions.
    """
    both = sorted(first.keys() & second.keys())
    return bootstrap([first[key] - second[key] for key in both]) if both else None


def bootstrap(values: Sequence[float], seed: int = SEED) -> Interval:
    """Return the mean of values, and the interval of the means of bootstrap samples."""
    drawing = random.Random(seed)
    means = sorted(fmean(drawing.choices(values, k=len(values))) for _ in range(RESAMPLES))
    tail = int(RESAMPLES * (1 - CONFIDENCE) / 2)
    return Interval(fmean(values), means[tail], means[-1 - tail], len(values))


def _words(text: str) -> set[str]:
    return set(tokenize(_ISO_DAY.sub(_spell_out, text)))


def _spell_out(match: re.Match[str]) -> str:
    year, month, day = (int(part) for part in match.groups())
    return f"{day} {_MONTHS[month - 1]} {year}" if 1 <= month <= 12 else match[0]


class Cause(StrEnum):
    """The step at which the expected answer was lost."""

    NOT_EXTRACTED = "not extracted"
    EXTRACTED_WRONGLY = "extracted wrongly"
    NOT_FOUND = "not found"
    OUTSIDE_BUDGET = "found, but not in the budget"
    READ_WRONGLY = "read wrongly"
    ANSWERED_UNSAID = "answered what nobody said"


class CauseAnswer(BaseModel):
    """What the model says was known: numbers of memories and of contexts."""

    memories_suffice: bool
    supporting: list[int]
    misleading: list[int]
    sufficient_contexts: list[int]


def cause_prompt(
    question: AskedQuestion,
    messages: Sequence[BenchmarkMessage],
    memories: Sequence[Memory],
    contexts: Sequence[str],
) -> Prompt:
    """Return the prompt about a wrong answer: the messages that answer, their memories, and the contexts."""
    told = [describe_fact(memory.content, memory.valid_at, memory.invalid_at)[2:] for memory in memories]
    shown = (f"Context {number}:\n{text or NO_CONTEXT}" for number, text in enumerate(contexts, start=1))
    return PROMPTS["cause"].render(
        question=question.text,
        expected="\n".join([question.expected, *question.criteria]).strip(),
        messages="\n".join(map(describe_message, messages)),
        memories=number_lines(told),
        contexts="\n\n".join(shown),
    )


def find_cause(known: CauseAnswer, memories: Sequence[Memory], context: int, found_ids: Set[str]) -> Cause:
    """Return the cause of a wrong answer from the context numbered `context`.

    `memories` are those of the prompt, `found_ids` those found by a wide search for the question.
    """
    if context in known.sufficient_contexts:
        return Cause.READ_WRONGLY
    if not known.memories_suffice:
        return Cause.EXTRACTED_WRONGLY if known.misleading else Cause.NOT_EXTRACTED
    supporting = {memory.id for number, memory in enumerate(memories, start=1) if number in known.supporting}
    return Cause.OUTSIDE_BUDGET if supporting <= found_ids else Cause.NOT_FOUND
