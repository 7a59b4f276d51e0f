"""Which conversation a request belongs to, what it adds to it, and what a process remembers of recent calls. Pure."""

from __future__ import annotations

import hashlib
import hmac
import json
import uuid
from dataclasses import dataclass
from datetime import date
from threading import Lock
from typing import Any

from cachetools import TTLCache

from graphmem.chats.protocol import ChatAnswer, ChatRequest, make_context_block
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


CONTEXT_SECONDS = 600
"""Seconds in which the requests that follow the results of tools get the context of their question again."""

MAX_CONTEXTS = 1_000
"""Contexts that are remembered; the least recently used is dropped first."""

RESPONSE_SECONDS = 24 * 3600
"""Seconds in which a response that a request continues leads to its session."""

MAX_RESPONSES = 10_000
"""Responses that are remembered; the least recently used is dropped first."""


@dataclass(frozen=True, slots=True)
class ChatContext:
    """A context for a request: the block for its system prompt, which may be empty, and the id of the context."""

    id: str
    block: str

    @classmethod
    def make(cls, context_id: str, preamble: str) -> ChatContext:
        """Return the context with a preamble; an empty one adds nothing to a prompt."""
        return cls(context_id, make_context_block(preamble) if preamble.strip() else "")


@dataclass(slots=True)
class ChatCall:
    """One model call: the session of its conversation, and its context, if it could be had."""

    request: ChatRequest
    session_id: str
    context: ChatContext | None = None


@dataclass(frozen=True, slots=True)
class RecentResponse:
    """The response to a call: its session, its context if that is kept, and the id of the message that it answers."""

    session_id: str
    context: ChatContext | None = None
    asked_id: str | None = None


class RecentChats:
    """The contexts of the latest questions and the calls of the latest responses, by user; threads may share it."""

    def __init__(self) -> None:
        self._contexts: TTLCache[tuple[str, str, str], ChatContext] = TTLCache(MAX_CONTEXTS, CONTEXT_SECONDS)
        self._responses: TTLCache[tuple[str, str], RecentResponse] = TTLCache(MAX_RESPONSES, RESPONSE_SECONDS)
        self._lock = Lock()

    def find_response(self, user: str, request: ChatRequest) -> RecentResponse | None:
        """Return the response that a request continues, if it is remembered."""
        with self._lock:
            return self._responses.get((user, request.thread_id)) if request.thread_id else None

    def find_context(self, user: str, call: ChatCall) -> ChatContext | None:
        """Return the context of a question that the model has begun to answer, if it is remembered."""
        if not call.request.is_continued:
            return None
        if call.request.asked is None:
            previous = self.find_response(user, call.request)
            return previous.context if previous else None
        with self._lock:
            return self._contexts.get((user, call.session_id, call.request.asked.content))

    def remember_context(self, user: str, call: ChatCall, context: ChatContext) -> None:
        """Remember the context of a question."""
        if call.request.asked is not None:
            with self._lock:
                self._contexts[user, call.session_id, call.request.asked.content] = context

    def remember_response(self, user: str, response_id: str, response: RecentResponse) -> None:
        """Remember a response, by its id at the provider."""
        with self._lock:
            self._responses[user, response_id] = response
