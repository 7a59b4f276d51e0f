"""A user's memory for calls of a chat model: a context before each call, its turns stored afterwards.

Failures here are counted, and logged once until it works again; the call continues without memory.
"""

from __future__ import annotations

import asyncio
import atexit
import secrets
import weakref
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from datetime import UTC, datetime
from threading import Lock
from typing import TYPE_CHECKING, Any, ClassVar
from weakref import WeakSet

from graphmem.chats.answer_reader import ChatFailure, ChatFailures, PassingAnswer
from graphmem.chats.conversation import (
    ChatCall,
    ChatContext,
    ConversationIds,
    RecentChats,
    RecentResponse,
    messages_to_store,
    question_of,
)
from graphmem.chats.protocol import ChatAnswer, ChatRequest
from graphmem.text.token_counts import count_tokens

if TYPE_CHECKING:
    from graphmem.client import AsyncClient, Client
    from graphmem.context.models import ContextResponse

CONTEXT_SECONDS = 30.0
"""Seconds that a call waits for its context from a slow service; an unreachable one fails sooner."""

PREVIOUS_SECONDS = 5.0
"""Seconds that a context waits for earlier turns to be stored: another conversation may need them."""

CLOSING_SECONDS = 30.0
"""Seconds that closing a client waits for pending turns."""

_LIVING = Lock()
"""Held while listing the memories of this process."""


@dataclass(frozen=True, slots=True)
class ChatMemoryOptions:
    """The user of a memory and the options of its use.

    Turns are stored in the session `session_id`; without one, in a session per conversation. A context has at most
    `token_budget` tokens and includes the memories of `domains`; if there is exactly one, turns belong to it. With
    `space`, turns are shared with its members. With `read_only`, no turns are stored.
    """

    user_id: str
    session_id: str | None
    token_budget: int
    domains: tuple[str, ...]
    read_only: bool
    space: str | None = None


class _ChatMemory:
    """The common part of the blocking and the asynchronous memory."""

    _living: ClassVar[WeakSet[Any]]
    """The memories of one kind in this process: the next call of one may need turns stored by another."""

    _unstored: set[Any]

    def __init__(self, options: ChatMemoryOptions) -> None:
        self.options = options
        self.failures = ChatFailures()
        self._open: list[tuple[ChatCall, PassingAnswer]] = []
        self._lock = Lock()
        self._ids = ConversationIds(secrets.token_bytes())
        self._recent = RecentChats()
        self._unstored = set()
        with _LIVING:
            self._living.add(self)

    def _list_unstored(self) -> list[Any]:
        """Return the pending turns of this user, in all memories of this kind in this process."""
        with _LIVING:
            memories = [memory for memory in self._living if memory.options.user_id == self.options.user_id]
        return [storing for memory in memories for storing in memory._unstored.copy()]

    def begin(self, request: ChatRequest) -> ChatCall:
        """Return the call of a request, and end earlier calls of its conversation."""
        self._end_open(lambda call: _continues(request, call.request))
        user_id = self.options.user_id
        session_id = self.options.session_id
        if session_id is None and (previous := self._recent.find_response(user_id, request)):
            session_id = previous.session_id
        return ChatCall(request, session_id or self._ids.session_id(user_id, request, datetime.now(UTC).date()))

    def note_open(self, call: ChatCall, passing: PassingAnswer) -> None:
        """Note an answer that is being read: a program may stop reading a stream without closing it."""
        with self._lock:
            self._open.append((call, passing))

    def _end_open(self, is_over: Callable[[ChatCall], bool] = lambda _: True) -> None:
        with self._lock:
            over = [passing for call, passing in self._open if is_over(call)]
        for passing in over:
            passing.end()

    def _find_context(self, call: ChatCall) -> ChatContext | None:
        return self._recent.find_context(self.options.user_id, call)

    def _context_arguments(self, call: ChatCall) -> dict[str, Any]:
        question = question_of(call.request)
        return {
            "question": question,
            "session_id": call.session_id,
            "domains": self.options.domains,
            "space": self.options.space,
            "token_budget": self.options.token_budget + count_tokens(question or ""),
            "recent_messages": False,  # the caller sends them to the model
        }

    def _remember_context(self, call: ChatCall, response: ContextResponse) -> ChatContext:
        context = ChatContext.make(response.context_id, response.preamble)
        self._recent.remember_context(self.options.user_id, call, context)
        return context

    def _messages(self, call: ChatCall, answer: ChatAnswer | None) -> list[dict[str, Any]]:
        with self._lock:
            self._open = [(other, passing) for other, passing in self._open if other is not call]
        if answer and answer.response_id:
            response = RecentResponse(call.session_id, call.context)
            self._recent.remember_response(self.options.user_id, answer.response_id, response)
        return [] if self.options.read_only else messages_to_store(self._ids, call.session_id, call.request, answer)

    def _message_arguments(self, call: ChatCall) -> dict[str, Any]:
        domains = self.options.domains
        return {
            "session_id": call.session_id,
            "domain": domains[0] if len(domains) == 1 else None,
            "space": self.options.space,
        }


def _continues(request: ChatRequest, earlier: ChatRequest) -> bool:
    """Return whether a request has all turns of an earlier one, and more."""
    count = len(earlier.turns)
    return len(request.turns) > count and request.turns[:count] == earlier.turns


class BlockingChatMemory(_ChatMemory):
    """A user's memory for a blocking client; a thread stores turns in the order of their calls.

    At its end, the program waits for pending turns. `asks` builds contexts, `stores` stores turns.
    """

    _living: ClassVar[WeakSet[Any]] = WeakSet()
    _unstored: set[Future[None]]

    def __init__(self, options: ChatMemoryOptions, asks: Client, stores: Client, *, owns_clients: bool) -> None:
        super().__init__(options)
        self._asks, self._stores, self._owns_clients = asks, stores, owns_clients
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="graphmem-turns")
        atexit.register(_end_open_answers, weakref.ref(self))

    def add_context(self, call: ChatCall) -> None:
        """Give a call its context, if available."""
        call.context = self._find_context(call)
        if call.context is None:
            wait(self._list_unstored(), PREVIOUS_SECONDS)
            with self.failures.noted(ChatFailure.CONTEXT):
                response = self._asks.context(self.options.user_id, **self._context_arguments(call))
                call.context = self._remember_context(call, response)

    def store(self, call: ChatCall, answer: ChatAnswer | None) -> None:
        """Store the turns of a call in the background."""
        if not (messages := self._messages(call, answer)):
            return
        try:
            future = self._thread.submit(self._store, call, messages)
        except RuntimeError:  # the interpreter is shutting down and starts no more threads
            self._store(call, messages)
            return
        self._unstored.add(future)
        future.add_done_callback(self._unstored.discard)

    def _store(self, call: ChatCall, messages: list[dict[str, Any]]) -> None:
        with self.failures.noted(ChatFailure.STORE):
            self._stores.add_messages(self.options.user_id, messages, **self._message_arguments(call))

    def flush(self, timeout: float | None = None) -> None:
        """Wait until the turns of all calls are stored, at most `timeout` seconds; end the answers being read."""
        self._end_open()
        wait([*self._unstored], timeout)

    def close(self) -> None:
        """Store pending turns, and close the clients opened here."""
        self.flush(CLOSING_SECONDS)
        self._thread.shutdown(wait=False)
        if self._owns_clients:
            self._asks.close()
            self._stores.close()


def _end_open_answers(memory: weakref.ref[BlockingChatMemory]) -> None:
    if living := memory():
        living.flush(CLOSING_SECONDS)


class AsyncChatMemory(_ChatMemory):
    """A user's memory for an asynchronous client; tasks store turns in the order of their calls.

    A cancelled task, as at the end of `asyncio.run`, still stores its turns.
    """

    _living: ClassVar[WeakSet[Any]] = WeakSet()
    _unstored: set[asyncio.Task[None]]

    def __init__(
        self, options: ChatMemoryOptions, asks: AsyncClient, stores: AsyncClient, *, owns_clients: bool
    ) -> None:
        super().__init__(options)
        self._asks, self._stores, self._owns_clients = asks, stores, owns_clients
        self._order = asyncio.Lock()

    async def add_context(self, call: ChatCall) -> None:
        """Give a call its context, if available in time."""
        call.context = self._find_context(call)
        if call.context is None:
            loop = asyncio.get_running_loop()  # tasks of other loops cannot be awaited
            if storing := [task for task in self._list_unstored() if task.get_loop() is loop]:
                await asyncio.wait(storing, timeout=PREVIOUS_SECONDS)
            with self.failures.noted(ChatFailure.CONTEXT):
                async with asyncio.timeout(CONTEXT_SECONDS):
                    response = await self._asks.context(self.options.user_id, **self._context_arguments(call))
                call.context = self._remember_context(call, response)

    def store(self, call: ChatCall, answer: ChatAnswer | None) -> None:
        """Store the turns of a call in the background."""
        if messages := self._messages(call, answer):
            task = asyncio.create_task(self._store_to_the_end(call, messages))
            self._unstored.add(task)
            task.add_done_callback(self._unstored.discard)

    async def _store_to_the_end(self, call: ChatCall, messages: list[dict[str, Any]]) -> None:
        with self.failures.noted(ChatFailure.STORE):
            try:
                async with self._order:
                    await self._store(call, messages)
            except asyncio.CancelledError:
                # The event loop is about to end. Turns stored already are recognised by their ids.
                async with asyncio.timeout(CLOSING_SECONDS):
                    await self._store(call, messages)

    async def _store(self, call: ChatCall, messages: list[dict[str, Any]]) -> None:
        await self._stores.add_messages(self.options.user_id, messages, **self._message_arguments(call))

    async def flush(self, timeout: float | None = None) -> None:  # noqa: ASYNC109 - as of the blocking one
        """Wait until the turns of all calls are stored, at most `timeout` seconds; end the answers being read."""
        self._end_open()
        await self.wait_until_stored(timeout)

    async def wait_until_stored(self, timeout: float | None = None) -> None:  # noqa: ASYNC109 - as above
        """Wait until the turns of finished calls are stored, at most `timeout` seconds."""
        if self._unstored:
            await asyncio.wait([*self._unstored], timeout=timeout)

    async def aclose(self) -> None:
        """Store pending turns, and close the clients opened here."""
        await self.flush(CLOSING_SECONDS)
        if self._owns_clients:
            await self._asks.aclose()
            await self._stores.aclose()
