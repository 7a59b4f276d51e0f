"""The interface of a language model: structured answers and tool calls, and what they cost."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, Literal, Protocol, TypeVar

from pydantic import BaseModel

from graphmem.models.prompts import ChatMessage, Prompt
from graphmem.models.receipt import Receipt

T = TypeVar("T", bound=BaseModel)

CHARACTERS_PER_TOKEN = 4
"""Characters of one token, where the server does not count tokens."""


@dataclass(frozen=True, slots=True)
class Completion(Generic[T]):
    """An answer that fits its schema, and its cost."""

    value: T
    receipt: Receipt


@dataclass(frozen=True, slots=True)
class ToolCall:
    """One call of a tool; `arguments` are as the model wrote them, not validated."""

    name: str
    arguments: dict[str, Any]


TOOL_DONE = "done"
"""The result of a tool call that can be used."""


@dataclass(frozen=True, slots=True)
class ToolExchange:
    """One answer of a model that may call tools: its text, its calls, and the result of each."""

    text: str
    calls: list[ToolCall]
    results: list[str]


@dataclass(frozen=True, slots=True)
class ToolCallCompletion:
    """The different tool calls of a model, in order, the text of its first answer, and the cost.

    `messages` are the prompt, and `exchange` are the answers that followed.
    """

    calls: list[ToolCall]
    text: str
    receipt: Receipt
    messages: list[ChatMessage] = field(default_factory=list)
    exchange: list[ToolExchange] = field(default_factory=list)


DEFAULT_MODEL = "gpt-4.1-mini"
"""Model where the settings name a key or an address and no model."""

MAX_TOOL_ANSWERS = 6
"""Answers of a model that calls tools, at most; it gets the results of the calls of each."""


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
