"""Figures of contexts: evidence and words of the answer in them, right answers, and intervals of differences. Pure."""

from __future__ import annotations

import random
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean

from graphmem.evaluation.benchmark import SEED, AskedQuestion
from graphmem.evaluation.run_folder import AnswerContext
from graphmem.text.tokenising import tokenize

RESAMPLES = 5_000
"""Samples of the questions that an interval is taken from."""

CONFIDENCE = 0.95
"""Share of the samples whose mean is in the interval."""

_ISO_DAY = re.compile(r"\b(\d{4})-(\d{2})-(\d{2})\b")
_MONTHS = (
    *("January", "February", "March", "April", "May", "June"),
    *("July", "August", "September", "October", "November", "December"),
)


@dataclass(frozen=True, slots=True)
class Figure:
    """A figure of one context: who built it, its budget, and what it was asked."""

    question_id: str
    category: str
    system: str
    budget: int | None
    value: float


@dataclass(frozen=True, slots=True)
class Interval:
    """A mean with the bounds of its interval, over so many questions."""

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
    """Return the share of the words of the expected answer that a context has; None for an answer without words.

    Words of the question do not count, and days count in any form.
    """
    expected = _words(question.expected) - _words(question.text)
    return len(expected & _words(context.text)) / len(expected) if expected else None


def values_of(figures: Iterable[Figure], system: str, budget: int | None) -> dict[str, float]:
    """Return the values of a system at a budget by question."""
    return {
        figure.question_id: figure.value for figure in figures if (figure.system, figure.budget) == (system, budget)
    }


def mean_of(values: Mapping[str, float]) -> Interval | None:
    """Return the mean of the values of questions, with its interval; None without values."""
    return bootstrap(list(values.values())) if values else None


def difference(first: Mapping[str, float], second: Mapping[str, float]) -> Interval | None:
    """Return how much better the first values are than the second, over questions that both have.

    The interval is a bootstrap over the questions, in pairs.
    """
    both = sorted(first.keys() & second.keys())
    return bootstrap([first[key] - second[key] for key in both]) if both else None


def bootstrap(values: Sequence[float], seed: int = SEED) -> Interval:
    """Return the mean of values and the interval of means of samples with replacement."""
    drawing = random.Random(seed)
    means = sorted(fmean(drawing.choices(values, k=len(values))) for _ in range(RESAMPLES))
    tail = int(RESAMPLES * (1 - CONFIDENCE) / 2)
    return Interval(fmean(values), means[tail], means[-1 - tail], len(values))


def _words(text: str) -> set[str]:
    return set(tokenize(_ISO_DAY.sub(_spell_out, text)))


def _spell_out(match: re.Match[str]) -> str:
    year, month, day = (int(part) for part in match.groups())
    return f"{day} {_MONTHS[month - 1]} {year}" if 1 <= month <= 12 else match[0]
