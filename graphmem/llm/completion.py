"""Completions: the checked answer of a model, and its cost."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from pydantic import BaseModel

from graphmem.domain.job import Receipt

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


@dataclass(frozen=True, slots=True)
class ToolCallCompletion:
    """The tool calls of a model, in order, the text of its first answer, and the cost."""

    calls: list[ToolCall]
    text: str
    receipt: Receipt
