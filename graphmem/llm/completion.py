"""Completions: what a model's server answered, checked, and what it cost."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Generic, TypeGuard, TypeVar

from openai.types.chat import ChatCompletion, ChatCompletionMessage, ChatCompletionMessageFunctionToolCall
from openai.types.chat.chat_completion import Choice
from pydantic import BaseModel

from graphmem.errors import ModelUnavailable
from graphmem.llm.failures import DEFAULT_RETRY_AFTER_SECONDS

T = TypeVar("T", bound=BaseModel)


@dataclass(frozen=True, slots=True)
class LlmReceipt:
    """What model calls cost: completions received, tokens, seconds.

    Tokens are estimated at four characters each where the server does not count them.
    """

    calls: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    seconds: float = 0.0

    def __add__(self, other: LlmReceipt) -> LlmReceipt:
        return LlmReceipt(
            self.calls + other.calls,
            self.prompt_tokens + other.prompt_tokens,
            self.completion_tokens + other.completion_tokens,
            self.seconds + other.seconds,
        )


@dataclass(frozen=True, slots=True)
class Completion(Generic[T]):
    """An answer that fits its schema, and what it cost."""

    value: T
    receipt: LlmReceipt


@dataclass(frozen=True, slots=True)
class ToolCall:
    """One call the model asks for; `arguments` are the model's own and not yet validated."""

    name: str
    arguments: dict[str, Any]


@dataclass(frozen=True, slots=True)
class ToolCallCompletion:
    """The tool calls of one answer, in order, the text beside them, and what it cost."""

    calls: list[ToolCall]
    text: str
    receipt: LlmReceipt


def is_completion(answer: object) -> TypeGuard[ChatCompletion]:
    """Whether this is a completion with a message: the client library lets everything through that answers 200."""
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
    """The text of an answer. Raises ModelUnavailable for one that was cut, filtered or declined."""
    raise_if_incomplete(completion, model)
    message = completion.choices[0].message
    if message.refusal and not message.content:
        raise ModelUnavailable(f"The language model {model} declined to answer this prompt.", retry_after=None)
    return message.content or ""


def raise_if_incomplete(completion: ChatCompletion, model: str) -> None:
    """Raises ModelUnavailable for an answer that is not whole."""
    reason = completion.choices[0].finish_reason
    if reason == "length":
        text = f"The answer of the language model {model} was cut at its length limit: send fewer messages at once."
        raise ModelUnavailable(text, retry_after=DEFAULT_RETRY_AFTER_SECONDS)
    if reason == "content_filter":
        text = f"The content filter of the language model {model} withheld the answer."
        raise ModelUnavailable(text, retry_after=None)


def parse_tool_call(call: object, model: str) -> ToolCall:
    """One tool call as the server sent it. Raises ModelUnavailable when its arguments are no JSON object."""
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


def read_receipt(asked: Mapping[str, Any], completion: ChatCompletion) -> LlmReceipt:
    """The cost of one completion, without its seconds."""
    usage = completion.usage
    if usage is not None and isinstance(usage.prompt_tokens, int) and isinstance(usage.completion_tokens, int):
        return LlmReceipt(1, usage.prompt_tokens, usage.completion_tokens)
    told = completion.choices[0].message.model_dump_json(exclude_none=True, warnings=False)
    return LlmReceipt(1, len(json.dumps(asked["messages"], ensure_ascii=False)) // 4, len(told) // 4)
