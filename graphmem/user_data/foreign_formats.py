"""Chat logs in the format of OpenAI's API.

A log is a list or JSONL of `{role, content}`, `{"messages": […]}`, or a list of the latter, one per conversation.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from pydantic import BaseModel, ValidationError

from graphmem.conversations.session import MessageIn, MessagesIn, split_into_batches
from graphmem.runtime.errors import InvalidInput
from graphmem.runtime.field_types import Id
from graphmem.user_data.formats import to_invalid_input
from graphmem.user_data.models import RejectedEntry

ROLE_ALIASES = {"developer": "system", "function": "tool"}
"""Roles of OpenAI's API by the name that graphmem gives them."""

DocumentPath = tuple[str | int, ...]


class _ChatMessage(BaseModel):
    role: str
    content: str | list[dict[str, Any]] | None = None
    id: str | None = None
    name: str | None = None
    timestamp: str | None = None
    created_at: str | int | float | None = None


class _ChatConversation(BaseModel):
    messages: list[Any]
    session_id: Id | None = None
    conversation_id: Id | None = None
    id: Id | None = None


@dataclass(slots=True)
class ParsedChatLog:
    """The messages of a chat log in batches of one session each, and the messages that were rejected."""

    batches: list[MessagesIn] = field(default_factory=list)
    rejected: list[RejectedEntry] = field(default_factory=list)


def parse_chat_log(document: Any) -> ParsedChatLog:
    """Return the conversations of a chat log; raise InvalidInput for another format.

    Missing ids of sessions and messages are derived from the content, so that a second import finds the same ones.
    """
    parsed = ParsedChatLog()
    for path, conversation in _split_conversations(document):
        session = (
            conversation.session_id
            or conversation.conversation_id
            or conversation.id
            or _derive_session_id(conversation.messages)
        )
        messages = list(_parse_messages(conversation, path, session, parsed.rejected))
        parsed.batches += (MessagesIn(session_id=session, messages=batch) for batch in split_into_batches(messages))
    if not parsed.batches and not parsed.rejected:
        raise InvalidInput("The chat log contains no messages.")
    return parsed


def derive_message_id(session: str, message: dict[str, Any], seen_contents: Counter[str]) -> str:
    """Return an id derived from a message.

    `seen_contents` counts the equal messages of a session, which get different ids.
    """
    content = json.dumps([session, message], sort_keys=True, ensure_ascii=False)
    seen_contents[content] += 1
    return (
        "line-" + hashlib.sha256(f"{seen_contents[content]}{content}".encode("utf-8", "surrogatepass")).hexdigest()[:24]
    )


def _split_conversations(document: Any) -> Iterator[tuple[DocumentPath, _ChatConversation]]:
    """Yield each conversation with the path of its messages."""
    whole = [document] if isinstance(document, dict) and "messages" not in document else document
    if isinstance(whole, list) and not any(isinstance(item, dict) and "messages" in item for item in whole):
        yield (), _ChatConversation(messages=whole)
        return
    several = isinstance(whole, list)
    for index, item in enumerate(whole if several else [whole]):
        path: DocumentPath = (index,) if several else ()
        try:
            yield (*path, "messages"), _ChatConversation.model_validate(item)
        except ValidationError as error:
            raise to_invalid_input(error, path, "a chat log") from None


def _parse_messages(
    conversation: _ChatConversation, path: DocumentPath, session: str, rejected: list[RejectedEntry]
) -> Iterator[MessageIn]:
    seen_contents: Counter[str] = Counter()
    for index, raw in enumerate(conversation.messages):
        at = (*path, index)
        try:
            turn = _ChatMessage.model_validate(raw)
            text = _join_text_parts(turn.content)
            if not text.strip():
                rejected.append(RejectedEntry(loc=list(at), id=turn.id, reason="it has no text"))
                continue
            message = {
                "role": ROLE_ALIASES.get(turn.role, turn.role),
                "content": text,
                "name": turn.name,
                "timestamp": turn.timestamp or _to_rfc3339(turn.created_at),
            }
            message = {key: value for key, value in message.items() if value is not None}
            message["id"] = turn.id or derive_message_id(session, message, seen_contents)
            yield MessageIn.model_validate(message)
        except ValidationError as error:
            raise to_invalid_input(error, at, "a chat log") from None


def _join_text_parts(content: str | list[dict[str, Any]] | None) -> str:
    """Return the text of a message; content may be a list of parts, of which only some have text."""
    if isinstance(content, str):
        return content
    texts = [part.get("text") for part in content or []]
    parts = [text.get("value") if isinstance(text, dict) else text for text in texts]
    return "\n".join(text for text in parts if isinstance(text, str))


def _to_rfc3339(value: str | float | None) -> str | None:
    """Return a creation time as RFC 3339; OpenAI's API gives seconds since 1970."""
    if not isinstance(value, int | float):
        return value
    try:
        return datetime.fromtimestamp(value, UTC).isoformat()
    except (ValueError, OverflowError, OSError):
        return str(value)


def _derive_session_id(messages: list[Any]) -> str:
    serialized = json.dumps(messages, sort_keys=True, ensure_ascii=False)
    return "import-" + hashlib.sha256(serialized.encode("utf-8", "surrogatepass")).hexdigest()[:16]
