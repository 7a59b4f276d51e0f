"""What a process remembers of recent calls: contexts of questions whose tools run, and sessions of responses."""

from __future__ import annotations

from dataclasses import dataclass
from threading import Lock

from cachetools import TTLCache

from graphmem.chats.context_block import make_context_block
from graphmem.chats.protocol import ChatRequest

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
