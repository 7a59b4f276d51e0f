"""What a process remembers of recent calls: contexts of questions whose tools run, and the sessions of responses."""

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

THREAD_SECONDS = 24 * 3600
"""Seconds in which a response that a request continues leads to its session."""

MAX_THREADS = 10_000
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


class RecentChats:
    """The contexts and sessions of the latest calls, by user; threads may share it."""

    def __init__(self) -> None:
        self._contexts: TTLCache[tuple[str, str, str], ChatContext] = TTLCache(MAX_CONTEXTS, CONTEXT_SECONDS)
        self._sessions: TTLCache[tuple[str, str], str] = TTLCache(MAX_THREADS, THREAD_SECONDS)
        self._lock = Lock()

    def find_session(self, user: str, request: ChatRequest) -> str | None:
        """Return the session of the response that a request continues, if it is remembered."""
        with self._lock:
            return self._sessions.get((user, request.thread_id)) if request.thread_id else None

    def remember_session(self, user: str, response_id: str, session_id: str) -> None:
        """Remember the session of a response."""
        with self._lock:
            self._sessions[user, response_id] = session_id

    def find_context(self, user: str, session_id: str, request: ChatRequest) -> ChatContext | None:
        """Return the context of a question that the model has begun to answer, if it is remembered."""
        if not request.is_continued or request.asked is None:
            return None
        with self._lock:
            return self._contexts.get((user, session_id, request.asked.content))

    def remember_context(self, user: str, session_id: str, request: ChatRequest, context: ChatContext) -> None:
        """Remember the context of a question."""
        if request.asked is not None:
            with self._lock:
                self._contexts[user, session_id, request.asked.content] = context

    def discard_user(self, user: str) -> None:
        """Remove everything of a user."""
        with self._lock:
            for context_key in [key for key in self._contexts if key[0] == user]:
                self._contexts.pop(context_key, None)
            for thread_key in [key for key in self._sessions if key[0] == user]:
                self._sessions.pop(thread_key, None)

    def count_user(self, user: str) -> int:
        """Return how much there is of a user."""
        with self._lock:
            return sum(key[0] == user for cache in (self._contexts, self._sessions) for key in cache)
