"""Which conversation a request belongs to, and the messages that it adds to that conversation. Pure."""

from __future__ import annotations

import hashlib
import hmac
import json
import uuid
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Any

from graphmem.chats.protocol import ChatAnswer, ChatRequest
from graphmem.text.normalising import is_blank, remove_unstorable

MAX_QUESTION_CHARACTERS = 4_000
"""Characters of a question that memories are searched for; the last ones, where what is asked mostly stands."""

MAX_TURN_CHARACTERS = 30_000
"""Characters of a turn that are stored; the rest is cut off."""


def question_of(request: ChatRequest) -> str | None:
    """Return what memories are searched for; None where the user sent no text."""
    text = request.asked.text[-MAX_QUESTION_CHARACTERS:] if request.asked else ""
    return None if is_blank(text) else text


@dataclass(frozen=True, slots=True)
class ConversationIds:
    """Makes the ids of sessions and messages from what was said, so that what is sent again is recognised.

    Nobody without the `secret` can tell from an id what was said.
    """

    secret: bytes

    def session_id(self, user_id: str, request: ChatRequest, today: date) -> str:
        """Return the id of the session of a request: that of its thread, else one of today that begins like it."""
        beginning = [request.thread_id] if request.thread_id else [today.isoformat(), request.turns[0].content]
        return self._make("session", user_id, *beginning)

    def message_ids(self, session_id: str, request: ChatRequest, answer: ChatAnswer | None) -> tuple[str, str]:
        """Return the ids of the user's turn and of the answer: each follows from all turns up to it."""
        turns = [[turn.role, turn.content] for turn in request.turns]
        asked = max(index for index, turn in enumerate(request.turns, 1) if turn.role == "user")
        before = (session_id, request.thread_id)
        return (
            self._make("message", *before, *turns[:asked]),
            self._make("message", *before, *turns, answer.text if answer else None),
        )

    def _make(self, *parts: object) -> str:
        digest = hmac.digest(self.secret, json.dumps(parts).encode(), hashlib.sha256)
        return str(uuid.UUID(bytes=digest[:16], version=5))


def messages_to_store(
    ids: ConversationIds, session_id: str, request: ChatRequest, answer: ChatAnswer | None
) -> list[dict[str, Any]]:
    """Return what a call adds to its session: the user's turn, and the answer if it is complete and has text."""
    asked = request.asked
    if asked is None:
        return []
    asked_id, answer_id = ids.message_ids(session_id, request, answer)
    said: Sequence[tuple[str, str, str]] = [
        (asked_id, asked.role, asked.content),
        (answer_id, "assistant", answer.text if answer else ""),
    ]
    return [*_messages(said)]


def _messages(said: Sequence[tuple[str, str, str]]) -> Iterator[dict[str, Any]]:
    for message_id, role, text in said:
        if not is_blank(content := remove_unstorable(text).strip()[:MAX_TURN_CHARACTERS]):
            yield {"id": message_id, "role": role, "content": content}
