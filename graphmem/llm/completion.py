"""Completions: the checked answer of a model's server, and its cost."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Generic, TypeGuard, TypeVar

from openai.types.chat import ChatCompletion, ChatCompletionMessage, ChatCompletionMessageFunctionToolCall
from openai.types.chat.chat_completion import Choice
from pydantic import BaseModel

from graphmem.domain.job import Receipt
from graphmem.errors import ModelUnavailable
from graphmem.retries import DEFAULT_RETRY_AFTER_SECONDS

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
    """The tool calls of one answer, in order, its text, and its cost."""

    calls: list[ToolCall]
    text: str
    receipt: Receipt


def is_completion(answer: object) -> TypeGuard[ChatCompletion]:
    """Return whether an answer is a completion with a message; the client library passes on whatever has status 200."""
    choices = answer.choices if isinstance(answer, ChatCompletion) else None
    if not isinstance(choices, list) or not choices or not isinstance(choices[0], Choice):
        return False
    message = choices[0].message
    return (
        isinstance(message, ChatCompletionMessage)
        and isinstance(message.content, str | None)
        and isinstance(message.tool_calls, list | None)
    )


def read_text(completion: ChatCompletion, model: str) -> str:
    """Return the text of an answer; raise ModelUnavailable for one that was cut, filtered or declined."""
    raise_if_incomplete(completion, model)
    message = completion.choices[0].message
    if message.refusal and not message.content:
        raise ModelUnavailable(f"The language model {model} declined to answer this prompt.", retry_after=None)
    return message.content or ""


def raise_if_incomplete(completion: ChatCompletion, model: str) -> None:
    """Raise ModelUnavailable for an answer that was cut at its length limit or withheld by a filter."""
    reason = completion.choices[0].finish_reason
    if reason == "length":
        text = f"The answer of the language model {model} was cut at its length limit: send fewer messages at once."
        raise ModelUnavailable(text, retry_after=DEFAULT_RETRY_AFTER_SECONDS)
    if reason == "content_filter":
        text = f"The content filter of the language model {model} withheld the answer."
        raise ModelUnavailable(text, retry_after=None)


def parse_tool_call(call: object, model: str) -> ToolCall:
    """Return one tool call; raise ModelUnavailable when its arguments are no JSON object."""
    if isinstance(call, ChatCompletionMessageFunctionToolCall):
        try:
            # Some servers send the object itself instead of its JSON.
            arguments: object = call.function.arguments or "{}"
            arguments = json.loads(arguments) if isinstance(arguments, str) else arguments
        except (ValueError, RecursionError):
            arguments = None
        if isinstance(arguments, dict):
            return ToolCall(call.function.name, arguments)
    text = f"The language model {model} called a tool with arguments that are no JSON object. Repeating may help."
    raise ModelUnavailable(text, retry_after=DEFAULT_RETRY_AFTER_SECONDS)


def read_receipt(request: Mapping[str, Any], completion: ChatCompletion, *, seconds: float) -> Receipt:
    """Return the cost of one completion."""
    usage = completion.usage
    if usage is not None and isinstance(usage.prompt_tokens, int) and isinstance(usage.completion_tokens, int):
        prompt_tokens, completion_tokens = usage.prompt_tokens, usage.completion_tokens
    else:
        prompt = json.dumps(request["messages"], ensure_ascii=False)
        answer = completion.choices[0].message.model_dump_json(exclude_none=True, warnings=False)
        prompt_tokens, completion_tokens = len(prompt) // CHARACTERS_PER_TOKEN, len(answer) // CHARACTERS_PER_TOKEN
    return Receipt(llm_calls=1, prompt_tokens=prompt_tokens, completion_tokens=completion_tokens, seconds=seconds)
