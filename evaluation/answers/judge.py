"""The judge: compares the different answers to a question with the expected one, blind to their origin. Pure."""

from __future__ import annotations

import random
from collections.abc import Iterable, Sequence
from enum import StrEnum

from pydantic import BaseModel

from evaluation.answers.questions import SEED, AskedQuestion
from evaluation.answers.reader import PROMPTS
from graphmem.models.prompts import Prompt


class Rating(StrEnum):
    """How an answer compares with the expected one."""

    RIGHT = "right"
    PARTLY = "partly"
    WRONG = "wrong"


SCORES = {Rating.RIGHT: 1.0, Rating.PARTLY: 0.5, Rating.WRONG: 0.0}
"""What an answer counts."""


class NumberedVerdict(BaseModel):
    """The verdict on the answer of a number."""

    number: int
    rating: Rating


class JudgeAnswer(BaseModel):
    """The verdicts on all answers to a question."""

    verdicts: list[NumberedVerdict]


def distinct_answers(question: AskedQuestion, answers: Iterable[str]) -> list[str]:
    """Return the different answers to a question in a random order that depends on nothing else."""
    distinct = sorted({_single_line(answer) for answer in answers})
    random.Random(f"{SEED} {question.id}").shuffle(distinct)
    return distinct


def judge_prompt(question: AskedQuestion, answers: Sequence[str]) -> Prompt:
    """Return what the judge gets: the question, the expected answer, and numbered answers."""
    numbered = "\n".join(f"{number}. {answer}" for number, answer in enumerate(answers, start=1))
    return PROMPTS["judge"].render(question=question.text, expected=question.expected, answers=numbered)


def scores_by_answer(answers: Sequence[str], judged: JudgeAnswer) -> dict[str, float]:
    """Return what each answer counts; one without a verdict is missing."""
    ratings = {verdict.number: verdict.rating for verdict in judged.verdicts}
    return {answer: SCORES[ratings[number]] for number, answer in enumerate(answers, start=1) if number in ratings}


def find_score(scores: dict[str, float], answer: str) -> float | None:
    """Return what an answer counts, None if it was not judged."""
    return scores.get(_single_line(answer))


def _single_line(text: str) -> str:
    return " ".join(text.split())
