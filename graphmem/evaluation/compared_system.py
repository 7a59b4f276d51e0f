"""What a compared system is: its name, what it is built on, and what it can be asked."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, TypeVar

from pydantic import BaseModel

from graphmem.client.async_client import AsyncClient
from graphmem.evaluation.benchmark import AskedQuestion, BenchmarkConversation, BenchmarkMessage
from graphmem.evaluation.run_folder import AnswerContext, StoredSize
from graphmem.models.embedder import Embedder
from graphmem.models.language_model import ChatMessage, Completion, LanguageModel, Prompt, Receipt
from graphmem.models.provider_model import ProviderModel
from graphmem.neo4j.driver import Graph
from graphmem.runtime.errors import ModelAnswerUnusable
from graphmem.runtime.settings import Settings

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
