"""The conversation of a request, the turns it adds, and the recent calls that a process remembers. Pure."""

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
"""Characters of a question to search memories for, from its end, where the actual question usually is."""

MAX_TURN_CHARACTERS = 30_000
"""Characters stored of a turn; the rest is cut off."""


def question_of(request: ChatRequest) -> str | None:
    """Return the text to search memories for; None if the user sent no text."""
    text = request.asked.text[-MAX_QUESTION_CHARACTERS:] if request.asked else ""
    return None if is_blank(text) else text


@dataclass(frozen=True, slots=True)
class ConversationIds:
    """Makes session and message ids from the conversation's text, so that repeated turns are recognised.

    Without the `secret`, an id reveals nothing about the text.
    """

    secret: bytes

    def session_id(self, user_id: str, request: ChatRequest, today: date) -> str:
        """Return the session id of a request: its thread's, else that of today's session with the same beginning."""
        beginning = [request.thread_id] if request.thread_id else [today.isoformat(), request.turns[0].content]
        return self._make("session", user_id, *beginning)

    def asked_id(self, session_id: str, request: ChatRequest) -> str:
        """Return the id of the user's turn, derived from all turns up to it."""
        asked = max((index for index, turn in enumerate(request.turns, 1) if turn.role == "user"), default=0)
        return self._message_id(session_id, request, asked)

    def answer_id(self, session_id: str, request: ChatRequest, answer: ChatAnswer) -> str:
        """Return the id of an answer, derived from all turns before it and from its text."""
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
    """Return the messages that a call adds to its session: the user's turn, and a complete answer that has text."""
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
"""Seconds for which requests with tool results reuse the context of their question."""

MAX_CONTEXTS = 1_000
"""Most contexts remembered; the least recently used is dropped first."""

RESPONSE_SECONDS = 24 * 3600
"""Seconds for which a response that a request continues leads to its session."""

MAX_RESPONSES = 10_000
"""Most responses remembered; the least recently used is dropped first."""


@dataclass(frozen=True, slots=True)
class ChatContext:
    """A context for a request: its id, and the block for the system prompt, which may be empty."""

    id: str
    block: str

    @classmethod
    def make(cls, context_id: str, preamble: str) -> ChatContext:
        """Return the context with a preamble; an empty preamble adds nothing to the prompt."""
        return cls(context_id, make_context_block(preamble) if preamble.strip() else "")


@dataclass(slots=True)
class ChatCall:
    """A model call: the session of its conversation, and its context if available."""

    request: ChatRequest
    session_id: str
    context: ChatContext | None = None


@dataclass(frozen=True, slots=True)
class RecentResponse:
    """The response to a call: its session, its context if kept, and the id of the message that it answers."""

    session_id: str
    context: ChatContext | None = None
    asked_id: str | None = None


class RecentChats:
    """The contexts of recent questions and the calls of recent responses, by user; safe to share between threads."""

    def __init__(self) -> None:
        self._contexts: TTLCache[tuple[str, str, str], ChatContext] = TTLCache(MAX_CONTEXTS, CONTEXT_SECONDS)
        self._responses: TTLCache[tuple[str, str], RecentResponse] = TTLCache(MAX_RESPONSES, RESPONSE_SECONDS)
        self._lock = Lock()

    def find_response(self, user: str, request: ChatRequest) -> RecentResponse | None:
        """Return the response that a request continues, if it is remembered."""
        with self._lock:
            return self._responses.get((user, request.thread_id)) if request.thread_id else None

    def find_context(self, user: str, call: ChatCall) -> ChatContext | None:
        """Return the remembered context of a question that the model has begun to answer, if any."""
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
