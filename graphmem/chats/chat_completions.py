"""The chat completions of OpenAI, which most servers of models speak. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from graphmem.chats.context_block import with_context_block, without_context_blocks
from graphmem.chats.protocol import (
    ChatAnswer,
    ChatProtocol,
    ChatRequest,
    HistoryItem,
    JsonObject,
    make_request,
    make_turn,
    text_or_none,
)
from graphmem.conversations.message_shapes import text_of

_SYSTEM_ROLES = ("system", "developer")
_TOOL_ROLES = ("tool", "function")


class ChatCompletionsProtocol(ChatProtocol):
    """`POST …/chat/completions`: the whole history as messages, of which the first are the system prompt."""

    name = "chat completions"
    path = "/chat/completions"

    def read_request(self, body: Mapping[str, Any]) -> ChatRequest:
        """Return what the body of a request says."""
        return make_request(_read_history(_messages_of(body)), user_id=body.get("user"))

    def add_context(self, body: Mapping[str, Any], block: str) -> JsonObject:
        """Return the body with a context at the end of its last system message, or in one of its own."""
        messages = [_without_context(message) for message in _messages_of(body)]
        leading = 0
        while leading < len(messages) and _role_of(messages[leading]) in _SYSTEM_ROLES:
            leading += 1
        if leading:
            last = messages[leading - 1]
            messages[leading - 1] = {**last, "content": _extended(last.get("content"), block)}
        else:
            messages.insert(0, {"role": "system", "content": block})
        return {**body, "messages": messages}

    def read_answer(self, body: Mapping[str, Any]) -> ChatAnswer:
        """Return what the first choice says."""
        answer = ChatAnswer(response_id=text_or_none(body.get("id")), is_complete=True)
        for choice in _first_choices(body):
            message = choice.get("message")
            answer.text = text_of(message.get("content")) if isinstance(message, dict) else ""
        return answer

    def read_event(self, event: Mapping[str, Any], answer: ChatAnswer) -> None:
        """Add what a chunk says; the one with a reason to finish ends the answer."""
        answer.response_id = answer.response_id or text_or_none(event.get("id"))
        for choice in _first_choices(event):
            delta = choice.get("delta")
            answer.text += text_of(delta.get("content")) if isinstance(delta, dict) else ""
            answer.is_complete = answer.is_complete or bool(choice.get("finish_reason"))


def _messages_of(body: Mapping[str, Any]) -> list[Any]:
    messages = body.get("messages")
    return messages if isinstance(messages, list) else []


def _role_of(message: object) -> str:
    return str(message.get("role")) if isinstance(message, dict) else ""


def _read_history(messages: list[Any]) -> Iterator[HistoryItem]:
    for message in messages:
        role = _role_of(message)
        if role in _TOOL_ROLES:
            yield "tool result"
        elif role == "user":
            yield make_turn("user", message.get("content"))
        elif role == "assistant":
            yield make_turn("assistant", message.get("content"))


def _without_context(message: Any) -> Any:
    """Return a system message without an earlier context; any other message as it is."""
    content = message.get("content") if _role_of(message) in _SYSTEM_ROLES else None
    if isinstance(content, str):
        return {**message, "content": without_context_blocks(content)}
    return message


def _extended(content: object, block: str) -> object:
    if isinstance(content, list):
        return [*content, {"type": "text", "text": block}]
    return with_context_block(text_of(content), block)


def _first_choices(body: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """Yield the first choice, if there is one: of several answers one is stored."""
    choices = body.get("choices")
    for choice in choices if isinstance(choices, list) else []:
        if isinstance(choice, dict) and choice.get("index", 0) == 0:
            yield choice
