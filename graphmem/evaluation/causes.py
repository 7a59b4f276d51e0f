"""Where a wrong answer went wrong: in extraction, in search, in the budget, or in reading. Pure."""

from __future__ import annotations

from collections.abc import Sequence, Set
from enum import StrEnum

from pydantic import BaseModel

from graphmem.evaluation.benchmark import AskedQuestion, BenchmarkMessage
from graphmem.evaluation.context_lines import describe_fact, describe_message
from graphmem.evaluation.judging import number_lines
from graphmem.evaluation.reading import NO_CONTEXT, PROMPTS
from graphmem.memories.memory import Memory
from graphmem.models.prompts import Prompt


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
    """Return what the model gets: the messages that answer, the memories taken from them, and the contexts."""
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
    """Return the cause of a wrong answer from the context of a number.

    `memories` are those of the prompt, and `found_ids` are what a wide search for the question finds.
    """
    if context in known.sufficient_contexts:
        return Cause.READ_WRONGLY
    if not known.memories_suffice:
        return Cause.EXTRACTED_WRONGLY if known.misleading else Cause.NOT_EXTRACTED
    supporting = {memory.id for number, memory in enumerate(memories, start=1) if number in known.supporting}
    return Cause.OUTSIDE_BUDGET if supporting <= found_ids else Cause.NOT_FOUND
