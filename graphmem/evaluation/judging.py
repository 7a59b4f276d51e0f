"""Judging: the different answers to a question in one request, blind to their origin, by its benchmark's rule. Pure.

The rules are those that the benchmarks publish, in other words:

- LoCoMo: an answer is right or wrong, generously, as mem0, Zep and others judge it. Questions of the category
  `adversarial` ask about what nobody said and are counted apart, as these do.
- LongMemEval: right or wrong, by a rule for each type of question; abstention is one of the types.
- BEAM: a list of criteria, each met (1), half met (0.5) or not (0); an answer counts the mean of them. The order of
  events is judged by the criteria alone, without the rank correlation that BEAM adds.
- Other files: by their `rubric` as BEAM, or else right, partly right (0.5) or wrong.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from statistics import fmean

import yaml
from pydantic import BaseModel, Field

from graphmem.evaluation.benchmark import SEED, AskedQuestion, Benchmark, single_line
from graphmem.evaluation.reading import PROMPTS
from graphmem.models.prompts import Prompt
from graphmem.runtime.field_types import UnitInterval


class Rating(StrEnum):
    """How an answer compares with the expected one."""

    RIGHT = "right"
    PARTLY = "partly"
    WRONG = "wrong"


POINTS: Mapping[Rating, float] = {Rating.RIGHT: 1.0, Rating.PARTLY: 0.5, Rating.WRONG: 0.0}
"""What an answer counts."""

RIGHT_SCORE = 0.5
"""Score from which an answer is not looked at as a wrong one."""


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
    """What an answer counts, from 0 to 1, and why."""

    score: float
    reason: str


_RULES: Mapping[str, Mapping[str, str]] = yaml.safe_load(
    Path(__file__).with_name("judging_rules.yaml").read_text("utf-8")
)

UNANSWERABLE = "unanswerable"
"""The rule for questions about what nobody said."""


def find_rule(benchmark: Benchmark, question: AskedQuestion) -> str:
    """Return the rule by which the answers to a question without criteria are rated."""
    rules = _RULES.get(benchmark.value, _RULES["other"])
    name = UNANSWERABLE if question.is_unanswerable else question.category
    return rules.get(name, rules["default"])


def distinct_answers(question: AskedQuestion, answers: Iterable[str]) -> list[str]:
    """Return the different answers to a question in a random order that depends on nothing else."""
    distinct = sorted({single_line(answer) for answer in answers})
    random.Random(f"{SEED} {question.id}").shuffle(distinct)
    return distinct


def judge_prompt(
    benchmark: Benchmark, question: AskedQuestion, answers: Sequence[str]
) -> tuple[Prompt, type[RatedAnswers] | type[CriteriaVerdicts]]:
    """Return what the judge gets, and the shape of its verdicts."""
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
    """Return what each answer counts; one without a verdict, or without points for every criterion, is missing."""
    scored: dict[int, ScoredAnswer] = {}
    for verdict in judged.verdicts:
        if isinstance(verdict, RatedAnswer):
            scored[verdict.number] = ScoredAnswer(POINTS[verdict.rating], verdict.reason)
        elif len(verdict.points) == len(question.criteria):
            scored[verdict.number] = ScoredAnswer(fmean(verdict.points), verdict.reason)
    return {answer: scored[number] for number, answer in enumerate(answers, start=1) if number in scored}


def number_lines(texts: Iterable[str]) -> str:
    """Return texts as a numbered list, one a line."""
    return "\n".join(f"{number}. {single_line(text)}" for number, text in enumerate(texts, start=1))
