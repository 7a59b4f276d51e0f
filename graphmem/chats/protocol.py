"""Requests to chat models in their providers' protocols: reading the turns, adding a context. Pure."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

from graphmem.conversations.session import ATTACHMENTS, attachments_of, mark_attachments, text_of
from graphmem.text.added_texts import PROMPT_TAG, fence_context, without_added_texts, without_thoughts
from graphmem.text.normalising import remove_unstorable

JsonObject = dict[str, Any]
"""A JSON object of a protocol; members unknown here are passed on unchanged."""


@dataclass(frozen=True, slots=True)
class ChatTurn:
    """One message of the user or the model; `attachments` names non-text content, such as `image`."""

    role: Literal["user", "assistant"]
    text: str
    attachments: tuple[str, ...] = ()

    @property
    def content(self) -> str:
        """The turn as stored: its text, and a mark for each attachment."""
        return mark_attachments(self.text, self.attachments)


@dataclass(frozen=True, slots=True)
class ChatRequest:
    """The content of a request to a model.

    `turns` are the user's and the model's, oldest first. The model is to answer the user's latest turn; with
    `is_continued` it has begun to, and tool results follow. `thread_id` names a conversation or a response whose turns
    the provider keeps, so that they are not sent again. `user_id` is the user that the request names.
    """

    turns: tuple[ChatTurn, ...]
    is_continued: bool = False
    thread_id: str | None = None
    user_id: str | None = None

    @classmethod
    def of_text(cls, text: str) -> ChatRequest:
        """Return a request with a text as the user's only turn."""
        return cls((ChatTurn("user", text),))

    @property
    def asked(self) -> ChatTurn | None:
        """The user's latest turn; None in a request without one."""
        return next((turn for turn in reversed(self.turns) if turn.role == "user"), None)

    @property
    def is_dialogue(self) -> bool:
        """Whether the model answers a user, whose turn is in the request or kept by the provider."""
        return self.asked is not None or (self.is_continued and self.thread_id is not None)


@dataclass(slots=True)
class ChatAnswer:
    """A model's answer as far as it was read; later requests may refer to its `response_id`.

    `is_complete` is set once the provider signals the end, which some servers never do, `has_failed` once it reports an
    error instead.
    """

    text: str = ""
    response_id: str | None = None
    is_complete: bool = False
    has_failed: bool = False


class ChatProtocol(ABC):
    """The format of requests to a model and of its answers; unknown content never raises."""

    name: ClassVar[str]
    path: ClassVar[str]
    """The end of the path of requests."""

    @abstractmethod
    def read_request(self, body: Mapping[str, Any]) -> ChatRequest:
        """Read the body of a request."""

    @abstractmethod
    def add_context(self, body: Mapping[str, Any], block: str) -> JsonObject:
        """Return the body of a request with a context at the end of its system prompt, replacing an earlier one."""

    @abstractmethod
    def read_answer(self, body: Mapping[str, Any]) -> ChatAnswer:
        """Read an answer that is not streamed."""

    @abstractmethod
    def read_event(self, event: Mapping[str, Any], answer: ChatAnswer) -> None:
        """Add an event of a streamed answer to the answer read so far."""


HistoryItem = ChatTurn | Literal["tool result"]
"""One item of the history in a request, reduced to what the code here needs."""


def make_request(items: Iterable[HistoryItem], *, thread_id: object = None, user_id: object = None) -> ChatRequest:
    """Return the request whose history has these items, oldest first."""
    turns: list[ChatTurn] = []
    asked, is_continued = 0, False
    for item in items:
        if item == "tool result":
            is_continued = True
        elif isinstance(item, ChatTurn) and item.content:
            turns.append(item)
            if item.role == "user":
                asked, is_continued = len(turns), False
    if not asked:
        turns = []
    elif not is_continued:
        del turns[asked:]  # the beginning of the answer, dictated by the caller
    return ChatRequest(
        tuple(turns),
        is_continued=is_continued,
        thread_id=text_or_none(thread_id),
        user_id=text_or_none(user_id),
    )


def make_turn(role: Literal["user", "assistant"], content: object) -> ChatTurn:
    """Return the turn of a message whose content is a text or a list of parts, some of them attachments."""
    text = remove_unstorable(without_added_texts(text_of(content))).strip()
    if role == "assistant":
        text = without_thoughts(text)
    return ChatTurn(role, text, tuple(attachments_of(content)))


def text_or_none(value: object) -> str | None:
    """Return a value if it is a non-blank text, otherwise None."""
    return value if isinstance(value, str) and value.strip() else None


OPENING, CLOSING = f"<{PROMPT_TAG}>", f"</{PROMPT_TAG}>"

_BLOCK = re.compile(rf"\s*{OPENING}.*?{CLOSING}", re.DOTALL)


def make_context_block(preamble: str) -> str:
    """Return the block of a prompt that holds a context."""
    return fence_context(PROMPT_TAG, preamble)


def is_context_block(text: str) -> bool:
    """Return whether a text is a block from `make_context_block`."""
    return text.startswith(OPENING) and text.rstrip().endswith(CLOSING)


def without_context_blocks(text: str) -> str:
    """Return a text without its context blocks."""
    return _BLOCK.sub("", text).lstrip("\n") if OPENING in text else text


def with_context_block(text: str, block: str) -> str:
    """Return a system prompt with a context at its end, replacing an earlier one."""
    return "\n\n".join(part for part in (without_context_blocks(text), block) if part)


_SYSTEM_ROLES = ("system", "developer")
_TOOL_ROLES = ("tool", "function")


class ChatCompletionsProtocol(ChatProtocol):
    """`POST …/chat/completions`: the whole history as messages, with the system prompt first."""

    name = "chat completions"
    path = "/chat/completions"

    def read_request(self, body: Mapping[str, Any]) -> ChatRequest:
        """Read the body of a request."""
        return make_request(_read_completions_history(_messages_of(body)), user_id=body.get("user"))

    def add_context(self, body: Mapping[str, Any], block: str) -> JsonObject:
        """Return the body with a context at the end of its last system message, or in a new one."""
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
        """Read the first choice."""
        answer = ChatAnswer(response_id=text_or_none(body.get("id")), is_complete=True)
        for choice in _first_choices(body):
            message = choice.get("message")
            answer.text = text_of(message.get("content")) if isinstance(message, dict) else ""
        return answer

    def read_event(self, event: Mapping[str, Any], answer: ChatAnswer) -> None:
        """Add a chunk; the one with a finish reason ends the answer."""
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


def _read_completions_history(messages: list[Any]) -> Iterator[HistoryItem]:
    for message in messages:
        role = _role_of(message)
        if role in _TOOL_ROLES:
            yield "tool result"
        elif role == "user":
            yield make_turn("user", message.get("content"))
        elif role == "assistant":
            yield make_turn("assistant", message.get("content"))


def _without_context(message: Any) -> Any:
    """Return a system message without an earlier context; return other messages unchanged."""
    content = message.get("content") if _role_of(message) in _SYSTEM_ROLES else None
    if isinstance(content, str):
        return {**message, "content": without_context_blocks(content)}
    return message


def _extended(content: object, block: str) -> object:
    if isinstance(content, list):
        return [*content, {"type": "text", "text": block}]
    return with_context_block(text_of(content), block)


def _first_choices(body: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """Yield the first choice, if any: only one of several answers is stored."""
    choices = body.get("choices")
    for choice in choices if isinstance(choices, list) else []:
        if isinstance(choice, dict) and choice.get("index", 0) == 0:
            yield choice


_FINAL_EVENTS = ("response.completed", "response.incomplete")
_FAILURE_EVENTS = ("response.failed", "response.cancelled", "error")


class ResponsesProtocol(ChatProtocol):
    """`POST …/responses`: new items as input, the system prompt as instructions."""

    name = "responses"
    path = "/responses"

    def read_request(self, body: Mapping[str, Any]) -> ChatRequest:
        """Read the body of a request."""
        conversation = body.get("conversation")
        if isinstance(conversation, dict):
            conversation = conversation.get("id")
        return make_request(
            _read_responses_history(body.get("input")),
            thread_id=text_or_none(conversation) or body.get("previous_response_id"),
            user_id=body.get("user"),
        )

    def add_context(self, body: Mapping[str, Any], block: str) -> JsonObject:
        """Return the body with a context at the end of its instructions, which no later response inherits."""
        return {**body, "instructions": with_context_block(text_of(body.get("instructions")), block)}

    def read_answer(self, body: Mapping[str, Any]) -> ChatAnswer:
        """Read the messages of a response."""
        items = body.get("output")
        texts = [
            text_of(item.get("content"))
            for item in (items if isinstance(items, list) else [])
            if isinstance(item, dict) and item.get("type") == "message"
        ]
        is_complete = body.get("status", "completed") in ("completed", "incomplete")
        return ChatAnswer("\n".join(filter(None, texts)), text_or_none(body.get("id")), is_complete)

    def read_event(self, event: Mapping[str, Any], answer: ChatAnswer) -> None:
        """Add an event; the last one holds the whole response."""
        kind, delta = event.get("type"), event.get("delta")
        answer.has_failed |= kind in _FAILURE_EVENTS
        if kind == "response.output_text.delta" and isinstance(delta, str):
            answer.text += delta
        elif kind in _FINAL_EVENTS:
            response = event.get("response")
            whole = self.read_answer(response if isinstance(response, dict) else {})
            answer.text = whole.text or answer.text
            answer.response_id, answer.is_complete = whole.response_id, True


def _read_responses_history(items: object) -> Iterator[HistoryItem]:
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


class MessagesProtocol(ChatProtocol):
    """`POST …/v1/messages`: the whole history as messages, the system prompt next to them."""

    name = "messages"
    path = "/v1/messages"

    def read_request(self, body: Mapping[str, Any]) -> ChatRequest:
        """Read the body of a request; one that only asks for a summary has no turns."""
        if body.get("compaction"):
            return ChatRequest(())
        metadata = body.get("metadata")
        user_id = metadata.get("user_id") if isinstance(metadata, dict) else None
        return make_request(
            _read_messages_history(body.get("messages")), thread_id=_continued_thread(body), user_id=user_id
        )

    def add_context(self, body: Mapping[str, Any], block: str) -> JsonObject:
        """Return the body with a context at the end of its system prompt, after the part that the caller caches.

        The system prompt of a thread cannot change, so there the context precedes the user's text.
        """
        if _continued_thread(body):
            return {**body, "messages": _before_last_turn(body.get("messages"), block)}
        system = body.get("system")
        if isinstance(system, list):
            kept = [part for part in system if not is_context_block(text_of([part]))]
            return {**body, "system": [*kept, {"type": "text", "text": block}]}
        return {**body, "system": with_context_block(text_of(system), block)}

    def read_answer(self, body: Mapping[str, Any]) -> ChatAnswer:
        """Read the text of a message, without thoughts and tool calls."""
        return ChatAnswer(_text_of_blocks(body.get("content")), text_or_none(body.get("id")), is_complete=True)

    def read_event(self, event: Mapping[str, Any], answer: ChatAnswer) -> None:
        """Add an event; `message_stop` ends the answer."""
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
    """Return the id of the response that a request continues, whose turns and system prompt the provider keeps."""
    thread = body.get("thread")
    return text_or_none(thread.get("previous_message_id")) if isinstance(thread, dict) else None


def _before_last_turn(messages: object, block: str) -> object:
    """Return messages with a context in the last one, after tool results; unchanged if it has nothing else."""
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


def _read_messages_history(messages: object) -> Iterator[HistoryItem]:
    for message in messages if isinstance(messages, list) else []:
        if not isinstance(message, dict):
            continue
        content = message.get("content")
        blocks = [block for block in content if isinstance(block, dict)] if isinstance(content, list) else []
        # Tool results must precede the user's text.
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
