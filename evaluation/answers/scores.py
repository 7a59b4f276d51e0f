"""Figures of contexts: evidence and words of the answer in them, right answers, and intervals of differences. Pure."""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from statistics import fmean

from evaluation.answers.contexts import AnswerContext
from evaluation.answers.questions import SEED
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
    """A figure of one context: who built it, its size, and what it was asked."""

    question_id: str
    group: str
    system: str
    budget: int
    value: float


@dataclass(frozen=True, slots=True)
class Interval:
    """A mean with the bounds of its interval, over so many questions."""

    mean: float
    low: float
    high: float
    count: int


def evidence_share(context: AnswerContext) -> float | None:
    """Return the share of the evidence whose message or fact is in a context; None without evidence."""
    evidence = context.question.evidence
    return len(evidence & context.covered) / len(evidence) if evidence else None


def answer_share(context: AnswerContext) -> float | None:
    """Return the share of the words of the expected answer that a context has; None for an answer without words.

    Words of the question do not count, and days count in any form.
    """
    expected = _words(context.question.expected) - _words(context.question.text)
    return len(expected & _words(context.text)) / len(expected) if expected else None


def measure(contexts: Iterable[AnswerContext], measured: Callable[[AnswerContext], float | None]) -> list[Figure]:
    """Return the figure of each context that has one."""
    return [
        Figure(context.question.id, f"{context.question.source}: {context.question.category}", context.system,
               context.budget, value)
        for context in contexts
        if (value := measured(context)) is not None
    ]  # fmt: skip


def mean_of(figures: Iterable[Figure], system: str, budget: int) -> float | None:
    """Return the mean of a system at a budget; None without figures."""
    values = [figure.value for figure in figures if (figure.system, figure.budget) == (system, budget)]
    return fmean(values) if values else None


def difference(figures: Iterable[Figure], first: str, second: str, budget: int) -> Interval | None:
    """Return how much better the first system is than the second at a budget, over questions that both have.

    The interval is a bootstrap over the questions, in pairs.
    """
    by_system: dict[str, dict[str, float]] = {first: {}, second: {}}
    for figure in figures:
        if figure.budget == budget and figure.system in by_system:
            by_system[figure.system][figure.question_id] = figure.value
    both = sorted(by_system[first].keys() & by_system[second].keys())
    if not both:
        return None
    return bootstrap([by_system[first][key] - by_system[second][key] for key in both])


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
