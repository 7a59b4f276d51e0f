"""The reader: answers one question from one context, without memory of any other. Pure."""

from __future__ import annotations

from pathlib import Path

from pydantic import BaseModel, Field

from graphmem.evaluation.benchmark import AskedQuestion
from graphmem.models.prompts import Prompt, load_prompts

PROMPTS = load_prompts(Path(__file__).with_name("prompts"))
"""The prompts of evaluations."""

NO_CONTEXT = "(There are no notes.)"
"""What a reader gets in place of an empty context."""


class ReaderAnswer(BaseModel):
    """The answer of a reader."""

    answer: str = Field(description="The answer, or: not known.")


def reader_prompt(question: AskedQuestion, context: str) -> Prompt:
    """Return what a reader gets: the context and the question, and nothing about where the context is from."""
    asked_at = {"asked_at": question.asked_at} if question.asked_at else {}
    return PROMPTS["answer"].render(notes=context or NO_CONTEXT, question=question.text, **asked_at)
