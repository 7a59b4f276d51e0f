"""Completions: the checked answer of a model, and its cost."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from pydantic import BaseModel

from graphmem.models.prompts import ChatMessage
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
