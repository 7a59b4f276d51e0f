"""The interface of a language model: structured answers and tool calls."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, Protocol, TypeVar

from pydantic import BaseModel

from graphmem.llm.completion import Completion, ToolCallCompletion
from graphmem.llm.prompts import ChatMessage, Prompt

T = TypeVar("T", bound=BaseModel)

ModelUse = Literal["gate", "main"]
"""What a call is for: `gate` decides whether anything is worth remembering, and what; `main` is everything else."""


class LanguageModel(Protocol):
    """A language model that graphmem may call; a provider is a class with these methods.

    Every failure is a ModelUnavailable, whose `retry_after` is None where the same call fails until a setting changes.
    """

    async def complete_structured(
        self,
        prompt: Prompt | Sequence[ChatMessage],
        schema: type[T],
        *,
        use: ModelUse = "main",
    ) -> Completion[T]:
        """Return one answer in the shape of `schema`."""
        ...

    async def call_tools(
        self,
        prompt: Prompt | Sequence[ChatMessage],
        tools: Sequence[Mapping[str, Any]],
        *,
        use: ModelUse = "main",
    ) -> ToolCallCompletion:
        """Return the calls of tools that the model makes, if any; `tools` as in the chat completions API."""
        ...
