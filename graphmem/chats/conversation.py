"""Which conversation a request belongs to, and the messages that it adds to that conversation. Pure."""

from __future__ import annotations

import hashlib
import hmac
import json
import uuid
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

    def asked_id(self, session_id: str, request: ChatRequest) -> str:
        """Return the id of the user's turn, which follows from all turns up to it."""
        asked = max((index for index, turn in enumerate(request.turns, 1) if turn.role == "user"), default=0)
        return self._message_id(session_id, request, asked)

    def answer_id(self, session_id: str, request: ChatRequest, answer: ChatAnswer) -> str:
        """Return the id of an answer, which follows from all turns before it and from its text."""
        return self._message_id(session_id, request, len(request.turns), answer.text)

    def _message_id(self, session_id: str, request: ChatRequest, count: int, *more: str) -> str:
        turns = [[turn.role, turn.content] for turn in request.turns[:count]]
        return self._make("message", session_id, request.thread_id, turns, *more)

    def _make(self, *parts: object) -> str:
        digest = hmac.digest(self.secret, json.dumps(parts).encode(), hashlib.sha256)
        return str(uuid.UUID(bytes=digest[:16], version=5))


def messages_to_store(
    ids: ConversationIds, session_id: str, request: ChatRequest, answer: ChatAnswer | None
) -> list[dict[str, Any]]:
    """Return what a call adds to its session: the user's turn, and the answer if it is complete and has text."""
    messages = []
    if request.asked:
        messages.append((ids.asked_id(session_id, request), "user", request.asked.content))
    if answer:
        messages.append((ids.answer_id(session_id, request, answer), "assistant", answer.text))
    return [
        {"id": message_id, "role": role, "content": content}
        for message_id, role, text in messages
        if not is_blank(content := remove_unstorable(text).strip()[:MAX_TURN_CHARACTERS])
    ]
