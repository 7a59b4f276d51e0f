"""The interface of compared systems: their resources, and the operations that a run calls."""

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
"""Facts or messages returned by a search; more than fit into the largest context."""

CONVERSATIONS_AT_ONCE = 4
"""Conversations stored concurrently; the sessions of each are stored one after another."""

NUMBER_BYTES = 4
"""Bytes per number of a vector, for stating stored sizes."""

T = TypeVar("T", bound=BaseModel)


@dataclass(frozen=True, slots=True)
class SystemResources:
    """The resources of systems: the operations of a tenant, their database and embedder, and a folder.

    `folder` is for data that systems store outside the database.
    """

    memory: AsyncClient
    tenant: str
    settings: Settings
    graph: Graph
    embedder: Embedder
    folder: Path

    def open_model(self) -> ProviderModel:
        """Return graphmem's extraction model, which the settings must name."""
        model = ProviderModel.from_settings(self.settings)
        assert model is not None
        return model


class ContextSystem(Protocol):
    """Finds the context that a reader needs for a question; the user's id is the conversation's."""

    async def find(
        self, conversation: BenchmarkConversation, question: AskedQuestion, budgets: Sequence[int]
    ) -> list[AnswerContext]:
        """Return a context per budget, or one for all if budgets do not apply."""
        ...


class ExtractingSystem(ContextSystem, Protocol):
    """Stores conversations and extracts from them with its own prompts."""

    @property
    def messages_per_add(self) -> int:
        """The number of a session's messages that it receives at once."""
        ...

    @property
    def conversations_at_once(self) -> int:
        """The number of conversations that it receives concurrently."""
        ...

    async def add(self, conversation: BenchmarkConversation, messages: Sequence[BenchmarkMessage]) -> Receipt:
        """Store messages and extract from them; return the cost of the requests.

        Raises ModelUnavailable if a request failed; nothing is stored then.
        """
        ...

    async def measure(self, conversation: BenchmarkConversation) -> StoredSize:
        """Return the stored size of a conversation."""
        ...

    async def remove(self, conversations: Sequence[BenchmarkConversation]) -> None:
        """Remove the data stored outside the run folder."""
        ...


OpenSystem = Callable[[SystemResources], AbstractAsyncContextManager[ContextSystem]]
OpenExtractingSystem = Callable[[SystemResources], AbstractAsyncContextManager[ExtractingSystem]]


async def complete_usably(
    model: LanguageModel, prompt: Prompt | Sequence[ChatMessage], schema: type[T]
) -> Completion[T]:
    """Return an answer; request an unusable one again, even if it is recorded."""
    try:
        return await model.complete_structured(prompt, schema)
    except ModelAnswerUnusable:
        return await model.complete_structured(prompt, schema)
