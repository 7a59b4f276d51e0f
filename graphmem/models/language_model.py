"""The interface of a language model: structured answers and tool calls."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, Protocol, TypeVar

from pydantic import BaseModel

from graphmem.models.completion import Completion, ToolCall, ToolCallCompletion
from graphmem.models.prompts import ChatMessage, Prompt

DEFAULT_MODEL = "gpt-4.1-mini"
"""Model where the settings name a key or an address and no model."""

MAX_TOOL_ANSWERS = 6
"""Answers of a model that calls tools, at most; it gets the results of the calls of each."""

T = TypeVar("T", bound=BaseModel)

ModelUse = Literal["gate", "main"]
"""What a call is for: `gate` decides whether anything is worth remembering, and what; `main` is everything else."""

CheckToolCall = Callable[[ToolCall], str | None]
"""Return why a call of a tool cannot be used, in words for the model, or None."""


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
        check: CheckToolCall = lambda call: None,
    ) -> ToolCallCompletion:
        """Return the calls of tools that the model makes, if any; `tools` as in the chat completions API.

        The model gets the result of each call, the reason where `check` refuses it, and may call again until it calls
        no tool, only repeats itself, or has answered `MAX_TOOL_ANSWERS` times.
        """
        ...
