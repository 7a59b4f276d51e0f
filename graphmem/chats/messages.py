"""The messages of Anthropic. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from graphmem.chats.context_block import is_context_block, with_context_block
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
from graphmem.conversations.message_shapes import ATTACHMENTS, text_of


class MessagesProtocol(ChatProtocol):
    """`POST …/v1/messages`: the whole history as messages, the system prompt next to them."""

    name = "messages"
    path = "/v1/messages"

    def read_request(self, body: Mapping[str, Any]) -> ChatRequest:
        """Return what the body of a request says; nothing of one that only asks for a summary."""
        if body.get("compaction"):
            return ChatRequest(())
        metadata = body.get("metadata")
        user_id = metadata.get("user_id") if isinstance(metadata, dict) else None
        return make_request(_read_history(body.get("messages")), thread_id=_continued_thread(body), user_id=user_id)

    def add_context(self, body: Mapping[str, Any], block: str) -> JsonObject:
        """Return the body with a context at the end of its system prompt, after what the caller has cached of it.

        The system prompt of a thread cannot change: there the context goes before what the user says.
        """
        if _continued_thread(body):
            return {**body, "messages": _before_last_turn(body.get("messages"), block)}
        system = body.get("system")
        if isinstance(system, list):
            kept = [part for part in system if not is_context_block(text_of([part]))]
            return {**body, "system": [*kept, {"type": "text", "text": block}]}
        return {**body, "system": with_context_block(text_of(system), block)}

    def read_answer(self, body: Mapping[str, Any]) -> ChatAnswer:
        """Return what the text of a message says, without thoughts and tool calls."""
        return ChatAnswer(_text_of_blocks(body.get("content")), text_or_none(body.get("id")), is_complete=True)

    def read_event(self, event: Mapping[str, Any], answer: ChatAnswer) -> None:
        """Add what an event says; `message_stop` ends the answer."""
        kind = event.get("type")
        if kind == "message_start":
            message = event.get("message")
            answer.response_id = text_or_none(message.get("id")) if isinstance(message, dict) else None
        elif kind == "content_block_start" and answer.text:
            block = event.get("content_block")
            answer.text += "\n" if isinstance(block, dict) and block.get("type") == "text" else ""
        elif kind == "content_block_delta":
            delta = event.get("delta")
            answer.text += text_of([delta]) if isinstance(delta, dict) and delta.get("type") == "text_delta" else ""
        elif kind == "message_stop":
            answer.is_complete = True


def _continued_thread(body: Mapping[str, Any]) -> str | None:
    """Return the response that a request continues, whose turns and system prompt the provider keeps."""
    thread = body.get("thread")
    return text_or_none(thread.get("previous_message_id")) if isinstance(thread, dict) else None


def _before_last_turn(messages: object, block: str) -> object:
    """Return messages with a context in the last one, after results of tools; as they are where these are all."""
    last = messages[-1] if isinstance(messages, list) and messages else None
    if not isinstance(messages, list) or not isinstance(last, dict) or last.get("role") != "user":
        return messages
    content = last.get("content")
    parts = [{"type": "text", "text": content}] if isinstance(content, str) else content
    parts = [part for part in parts if not is_context_block(text_of([part]))] if isinstance(parts, list) else []
    results = [part for part in parts if isinstance(part, dict) and part.get("type") == "tool_result"]
    said = [part for part in parts if part not in results]
    if not said:
        return messages
    return [*messages[:-1], {**last, "content": [*results, {"type": "text", "text": block}, *said]}]


def _read_history(messages: object) -> Iterator[HistoryItem]:
    for message in messages if isinstance(messages, list) else []:
        if not isinstance(message, dict):
            continue
        content = message.get("content")
        blocks = [block for block in content if isinstance(block, dict)] if isinstance(content, list) else []
        # Results come before what the user adds to them.
        if any(block.get("type") == "tool_result" for block in blocks):
            yield "tool result"
        said = content if isinstance(content, str) else [block for block in blocks if _is_said(block)]
        if message.get("role") == "user":
            yield make_turn("user", said)
        elif message.get("role") == "assistant":
            yield make_turn("assistant", said)


def _is_said(block: Mapping[str, Any]) -> bool:
    return block.get("type") == "text" or block.get("type") in ATTACHMENTS


def _text_of_blocks(content: object) -> str:
    blocks = content if isinstance(content, list) else []
    return text_of([block for block in blocks if isinstance(block, dict) and block.get("type") == "text"])
