"""The lines of a context: facts and messages as text, and selecting those that fit into a budget. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime

from graphmem.evaluation.benchmark import AskedQuestion, BenchmarkConversation, BenchmarkMessage, single_line
from graphmem.evaluation.run_folder import AnswerContext
from graphmem.text.token_counts import count_tokens, truncate_to_tokens

MIN_TRUNCATED_TOKENS = 16
"""Fewest tokens of a truncated line; a shorter one is left out."""

QUOTED_CHARACTERS = 40
"""Characters of a message that show, if found in a context, that the context quotes it."""


@dataclass(frozen=True, slots=True)
class FoundLine:
    """A fact or message found, as a line of a context, with the ids of its messages and its memory."""

    text: str
    message_ids: Sequence[str]
    memory_id: str | None = None


@dataclass(frozen=True, slots=True)
class FilledContext:
    """The lines that fit into a budget."""

    text: str
    lines: Sequence[FoundLine]


def fill_budget(lines: Iterable[FoundLine], budget: int) -> FilledContext:
    """Return the lines that fit into a budget of tokens, best first.

    A line that is too long is skipped in favour of shorter ones; at the end, the first skipped line is truncated to
    fit.
    """
    chosen: list[FoundLine] = []
    first_left_out: FoundLine | None = None
    used = 0
    for line in lines:
        cost = count_tokens(line.text) + 1
        if used + cost <= budget:
            chosen.append(line)
            used += cost
        elif first_left_out is None:
            first_left_out = line
    if first_left_out and budget - used > MIN_TRUNCATED_TOKENS:
        text = truncate_to_tokens(first_left_out.text, budget - used - 1)
        chosen.append(FoundLine(text, first_left_out.message_ids, first_left_out.memory_id))
    return FilledContext("\n".join(line.text for line in chosen), chosen)


def describe_fact(fact: str, valid_at: datetime | None, invalid_at: datetime | None) -> str:
    """Return a fact as a line with its valid dates."""
    since = f"{valid_at:%Y-%m-%d}" if valid_at else "date unknown"
    until = f"{invalid_at:%Y-%m-%d}" if invalid_at else "present"
    return f"- {single_line(fact)} ({since} - {until})"


def describe_message(message: BenchmarkMessage) -> str:
    """Return a message as a line with its day and speaker."""
    day = f"{message.timestamp:%Y-%m-%d}, " if message.timestamp else ""
    return f"- {day}{message.speaker}: {single_line(message.content)}"


def find_quoted(conversation: BenchmarkConversation, text: str) -> list[str]:
    """Return the ids of the messages quoted in a text: it contains their beginning, or all of a short one."""
    shown = single_line(text)
    return [
        message.id
        for message in conversation.messages
        if single_line(message.content)[:QUOTED_CHARACTERS].strip() in shown
    ]


def fill_context(
    question: AskedQuestion, system: str, budget: int, lines: Sequence[FoundLine], seconds: float
) -> AnswerContext:
    """Return the context of the lines that fit into a budget; `seconds` is the time it took to find them."""
    filled = fill_budget(lines, budget)
    covered = list(dict.fromkeys(message_id for line in filled.lines for message_id in line.message_ids))
    memories = [line.memory_id for line in filled.lines if line.memory_id]
    return make_context(question, system, budget, filled.text, seconds, covered, memories)


def make_context(
    question: AskedQuestion,
    system: str,
    budget: int | None,
    text: str,
    seconds: float,
    covered: list[str],
    memories: list[str],
) -> AnswerContext:
    """Return a context with its number of tokens."""
    return AnswerContext(
        question_id=question.id,
        system=system,
        budget=budget,
        text=text,
        tokens=count_tokens(text),
        seconds=seconds,
        covered=covered,
        memories=memories,
    )
