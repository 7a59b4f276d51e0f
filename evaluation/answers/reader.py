"""The reader: answers one question from one context, without memory of any other. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from pathlib import Path

from pydantic import BaseModel, Field

from evaluation.answers.contexts import AnswerContext
from graphmem.models.prompts import Prompt, load_prompts

PROMPTS = load_prompts(Path(__file__).with_name("prompts"))
"""The prompts of this evaluation."""

NO_CONTEXT = "(There are no notes.)"
"""What a reader gets in place of an empty context."""


class ReaderAnswer(BaseModel):
    """The answer of a reader."""

    answer: str = Field(description="The answer, or: not known.")


def reader_prompt(context: AnswerContext) -> Prompt:
    """Return what a reader gets: the context and the question, and nothing about where the context is from."""
    return PROMPTS["answer"].render(notes=context.text or NO_CONTEXT, question=context.question.text)


def in_rounds(contexts: Sequence[AnswerContext]) -> list[AnswerContext]:
    """Return contexts in rounds of which each has every question at most once and all kinds of contexts alike.

    Readers that answer a stretch of requests no longer than a round therefore see no question twice.
    """
    ordered = sorted(contexts, key=lambda context: context.question.id)
    by_question = [list(group) for _, group in groupby(ordered, key=lambda context: context.question.id)]
    rounds = max(map(len, by_question), default=0)
    return [
        asked[(number + turn) % rounds]
        for turn in range(rounds)
        for number, asked in enumerate(by_question)
        if (number + turn) % rounds < len(asked)
    ]
