"""Answers of a model: their text, their tool calls and their cost; those that cannot be used."""

from __future__ import annotations

import json
from collections.abc import Sequence

from pydantic_ai.messages import (
    ModelMessage,
    ModelRequest,
    ModelResponse,
    SystemPromptPart,
    TextPart,
    ToolCallPart,
    UserPromptPart,
)

from graphmem.models.completion import CHARACTERS_PER_TOKEN, ToolCall
from graphmem.models.prompts import ChatMessage
from graphmem.models.receipt import Receipt
from graphmem.runtime.errors import ModelAnswerUnusable, ModelUnavailable
from graphmem.runtime.retries import DEFAULT_RETRY_AFTER_SECONDS


def to_model_messages(messages: Sequence[ChatMessage]) -> list[ModelMessage]:
    """Return chat messages in the library's form."""
    converted: list[ModelMessage] = []
    for message in messages:
        content = message["content"]
        if message["role"] == "assistant":
            converted.append(ModelResponse(parts=[TextPart(content)]))
        else:
            part = SystemPromptPart(content) if message["role"] == "system" else UserPromptPart(content)
            if converted and isinstance(converted[-1], ModelRequest):
                converted[-1] = ModelRequest(parts=[*converted[-1].parts, part])
            else:
                converted.append(ModelRequest(parts=[part]))
    return converted


def raise_if_incomplete(response: ModelResponse, model: str) -> None:
    """Raise for an answer that was cut at its length limit, withheld by a filter or declined."""
    if response.finish_reason == "length":
        raise ModelAnswerUnusable(
            f"The answer of the language model {model} was cut at its length limit: send fewer messages at once.",
            retry_after=DEFAULT_RETRY_AFTER_SECONDS,
        )
    if (response.provider_details or {}).get("refusal"):
        raise ModelUnavailable(f"The language model {model} declined to answer this prompt.", retry_after=None)
    if response.finish_reason == "content_filter":
        text = f"The content filter of the language model {model} withheld the answer."
        raise ModelUnavailable(text, retry_after=None)


def text_of(response: ModelResponse) -> str:
    """Return the text of an answer, without thoughts."""
    return "".join(part.content for part in response.parts if isinstance(part, TextPart))


def structured_text_of(response: ModelResponse) -> str:
    """Return the text in which to look for JSON: the arguments of the answer's tool call, or its text."""
    calls = tool_call_parts(response)
    return calls[0].args_as_json_str() if calls else text_of(response)


def tool_call_parts(response: ModelResponse) -> list[ToolCallPart]:
    """Return the tool calls of an answer, in order."""
    return [part for part in response.parts if isinstance(part, ToolCallPart)]


def parse_tool_call(part: ToolCallPart, model: str) -> ToolCall:
    """Return one tool call; raise ModelAnswerUnusable when its arguments are no JSON object."""
    try:
        arguments: object = part.args or "{}"
        arguments = json.loads(arguments) if isinstance(arguments, str) else arguments
    except (ValueError, RecursionError):
        arguments = None
    if isinstance(arguments, dict):
        return ToolCall(part.tool_name, arguments)
    text = f"The language model {model} called a tool with arguments that are no JSON object. Repeating may help."
    raise ModelAnswerUnusable(text, retry_after=DEFAULT_RETRY_AFTER_SECONDS)


def read_receipt(messages: Sequence[ChatMessage], response: ModelResponse) -> Receipt:
    """Return the cost of one answer, without its seconds."""
    prompt_tokens, completion_tokens = response.usage.input_tokens, response.usage.output_tokens
    if not prompt_tokens and not completion_tokens:
        answer = [text_of(response), *(part.args_as_json_str() for part in tool_call_parts(response))]
        prompt_tokens = len(json.dumps(messages, ensure_ascii=False)) // CHARACTERS_PER_TOKEN
        completion_tokens = sum(map(len, answer)) // CHARACTERS_PER_TOKEN
    return Receipt(llm_calls=1, prompt_tokens=prompt_tokens, completion_tokens=completion_tokens)
