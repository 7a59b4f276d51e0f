"""The responses of OpenAI, whose conversations the provider may keep. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from graphmem.chats.context_block import with_context_block
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

_FINAL_EVENTS = ("response.completed", "response.incomplete")
_FAILURE_EVENTS = ("response.failed", "response.cancelled", "error")


class ResponsesProtocol(ChatProtocol):
    """`POST …/responses`: new items as input, the system prompt as instructions."""

    name = "responses"
    path = "/responses"

    def read_request(self, body: Mapping[str, Any]) -> ChatRequest:
        """Return what the body of a request says."""
        conversation = body.get("conversation")
        if isinstance(conversation, dict):
            conversation = conversation.get("id")
        return make_request(
            _read_history(body.get("input")),
            thread_id=text_or_none(conversation) or body.get("previous_response_id"),
            user_id=body.get("user"),
        )

    def add_context(self, body: Mapping[str, Any], block: str) -> JsonObject:
        """Return the body with a context at the end of its instructions, which no later response inherits."""
        return {**body, "instructions": with_context_block(text_of(body.get("instructions")), block)}

    def read_answer(self, body: Mapping[str, Any]) -> ChatAnswer:
        """Return what the messages of a response say."""
        items = body.get("output")
        texts = [
            text_of(item.get("content"))
            for item in (items if isinstance(items, list) else [])
            if isinstance(item, dict) and item.get("type") == "message"
        ]
        is_complete = body.get("status", "completed") in ("completed", "incomplete")
        return ChatAnswer("\n".join(filter(None, texts)), text_or_none(body.get("id")), is_complete)

    def read_event(self, event: Mapping[str, Any], answer: ChatAnswer) -> None:
        """Add what an event says; the last one holds the whole response."""
        kind, delta = event.get("type"), event.get("delta")
        answer.has_failed |= kind in _FAILURE_EVENTS
        if kind == "response.output_text.delta" and isinstance(delta, str):
            answer.text += delta
        elif kind in _FINAL_EVENTS:
            response = event.get("response")
            whole = self.read_answer(response if isinstance(response, dict) else {})
            answer.text = whole.text or answer.text
            answer.response_id, answer.is_complete = whole.response_id, True


def _read_history(items: object) -> Iterator[HistoryItem]:
    if isinstance(items, str):
        yield make_turn("user", items)
    for item in items if isinstance(items, list) else []:
        if not isinstance(item, dict):
            continue
        if str(item.get("type")).endswith("_output"):
            yield "tool result"
        elif item.get("role") == "user":
            yield make_turn("user", item.get("content"))
        elif item.get("role") == "assistant":
            yield make_turn("assistant", item.get("content"))
