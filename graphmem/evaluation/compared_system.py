"""What a compared system is and can be asked, and the lines of the contexts that it gives."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Protocol, TypeVar

from pydantic import BaseModel

from graphmem.client.async_client import AsyncClient
from graphmem.evaluation.benchmark import AskedQuestion, BenchmarkConversation, BenchmarkMessage, single_line
from graphmem.evaluation.run_folder import AnswerContext, StoredSize
from graphmem.models.embedder import Embedder
from graphmem.models.language_model import Completion, LanguageModel, Receipt
from graphmem.models.prompts import ChatMessage, Prompt
from graphmem.models.provider_model import ProviderModel
from graphmem.neo4j.driver import Graph
from graphmem.runtime.errors import ModelAnswerUnusable
from graphmem.runtime.settings import Settings
from graphmem.text.token_counts import count_tokens, truncate_to_tokens

MIN_TRUNCATED_TOKENS = 16
"""Tokens that a truncated line keeps at least; a shorter one is left out."""

QUOTED_CHARACTERS = 40
"""Characters of a message by whose occurrence a context is known to quote it."""


@dataclass(frozen=True, slots=True)
class FoundLine:
    """A fact or a message found, as a line of a context, with the ids of its messages and of the memory."""

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

    A line that is too long is left out for a shorter one; the first one that is too long is truncated at the end.
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
    """Return a fact as a line with the days between which it holds."""
    since = f"{valid_at:%Y-%m-%d}" if valid_at else "date unknown"
    until = f"{invalid_at:%Y-%m-%d}" if invalid_at else "present"
    return f"- {single_line(fact)} ({since} - {until})"


def describe_message(message: BenchmarkMessage) -> str:
    """Return a message as a line with its day and its speaker."""
    day = f"{message.timestamp:%Y-%m-%d}, " if message.timestamp else ""
    return f"- {day}{message.speaker}: {single_line(message.content)}"


def find_quoted(conversation: BenchmarkConversation, text: str) -> list[str]:
    """Return the ids of the messages whose beginning, or the whole of a shorter one, is in a text."""
    shown = single_line(text)
    return [
        message.id
        for message in conversation.messages
        if single_line(message.content)[:QUOTED_CHARACTERS].strip() in shown
    ]


def fill_context(
    question: AskedQuestion, system: str, budget: int, lines: Sequence[FoundLine], seconds: float
) -> AnswerContext:
    """Return the context of the lines that fit into a budget; `seconds` are those in which all were found."""
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
    """Return a context with the number of its tokens."""
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


MAX_HITS = 100
"""Facts or messages that a search returns; more than the largest context can hold."""

CONVERSATIONS_AT_ONCE = 4
"""Conversations that are stored at the same time; the sessions of one follow each other."""

NUMBER_BYTES = 4
"""Bytes of a number of a vector, by which the size of what is stored is stated."""

T = TypeVar("T", bound=BaseModel)


@dataclass(frozen=True, slots=True)
class SystemResources:
    """What systems are built on: the operations of a tenant, the database and embedder behind them, and a folder.

    `folder` is where systems keep what they store outside the database.
    """

    memory: AsyncClient
    tenant: str
    settings: Settings
    graph: Graph
    embedder: Embedder
    folder: Path

    def open_model(self) -> ProviderModel:
        """Return the model that extracts for graphmem, which the settings must name."""
        model = ProviderModel.from_settings(self.settings)
        assert model is not None
        return model


class ContextSystem(Protocol):
    """Finds what a reader needs for a question; the user's id is the id of the conversation."""

    async def find(
        self, conversation: BenchmarkConversation, question: AskedQuestion, budgets: Sequence[int]
    ) -> list[AnswerContext]:
        """Return the context of each budget, or one for all where a budget means nothing."""
        ...


class ExtractingSystem(ContextSystem, Protocol):
    """Stores conversations itself and extracts from them with its own prompts."""

    @property
    def messages_per_add(self) -> int:
        """How many messages of a session it gets at a time."""
        ...

    @property
    def conversations_at_once(self) -> int:
        """How many conversations it gets at the same time."""
        ...

    async def add(self, conversation: BenchmarkConversation, messages: Sequence[BenchmarkMessage]) -> Receipt:
        """Store messages and extract from them; return what the requests cost.

        Raises ModelUnavailable when a request failed; nothing is stored then.
        """
        ...

    async def measure(self, conversation: BenchmarkConversation) -> StoredSize:
        """Return how much is stored of a conversation."""
        ...

    async def remove(self, conversations: Sequence[BenchmarkConversation]) -> None:
        """Remove what is stored outside the folder of the run."""
        ...


OpenSystem = Callable[[SystemResources], AbstractAsyncContextManager[ContextSystem]]
OpenExtractingSystem = Callable[[SystemResources], AbstractAsyncContextManager[ExtractingSystem]]


async def complete_usably(
    model: LanguageModel, prompt: Prompt | Sequence[ChatMessage], schema: type[T]
) -> Completion[T]:
    """Return an answer; one that cannot be used is asked for once more, also if it is a recorded one."""
    try:
        return await model.complete_structured(prompt, schema)
    except ModelAnswerUnusable:
        return await model.complete_structured(prompt, schema)
