"""Memory for provider clients, added to their transports: `wrap_openai(OpenAI(), user="mara")`, `wrap_anthropic`."""

from __future__ import annotations

import json
import os
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol, TypeVar, overload

import httpx
import httpx2

from graphmem.chats.answer_reader import AnswerReader, ChatFailure, ChatFailures, PassingAnswer
from graphmem.chats.conversation import ChatContext
from graphmem.chats.protocol import (
    ChatCompletionsProtocol,
    ChatProtocol,
    ChatRequest,
    MessagesProtocol,
    ResponsesProtocol,
)
from graphmem.integrations.agent_memory import DEFAULT_TOKEN_BUDGET
from graphmem.integrations.chat_memory import (
    CONTEXT_SECONDS,
    AsyncChatMemory,
    BlockingChatMemory,
    ChatMemoryOptions,
)
from graphmem.runtime.errors import ConfigurationError, InvalidInput
from graphmem.runtime.field_types import check_identity

if TYPE_CHECKING:
    import anthropic
    import openai

    from graphmem.client import AsyncClient, Client


CLOSING_SECONDS = 5.0
"""Seconds that closing a partly read stream waits for its turns to be stored."""

CONTEXT_ID_HEADER = "x-graphmem-context-id"
"""Response header with the id of the context, for rating the answer."""

MEMORY_HEADER = "x-graphmem-memory"
"""Response header whose value is `unavailable` if the model was called without memory."""

SIGNED_SCHEME = "AWS4-HMAC-SHA256"
"""The `Authorization` scheme that signs the body of a request."""


class _MemoryTransport:
    """The common part of the blocking and the asynchronous transport, for requests and responses of either library."""

    _inner: Any
    _library: Any
    _protocols: Sequence[ChatProtocol]
    _failures: ChatFailures

    def _client_options(self) -> dict[str, Any]:
        """Return the options that a client of this transport takes from the inner one, which does the rest."""
        inner = self._inner
        return {
            "transport": self,
            "base_url": inner.base_url,
            "headers": inner.headers,
            "params": inner.params,
            "cookies": inner.cookies,
            "timeout": inner.timeout,
        }

    def _find_protocol(self, request: Any) -> ChatProtocol | None:
        path = request.url.path.rstrip("/")
        if request.method != "POST":
            return None
        return next((protocol for protocol in self._protocols if path.endswith(protocol.path)), None)

    def _read(
        self, protocol: ChatProtocol, headers: Mapping[str, str], content: bytes
    ) -> tuple[dict[str, Any], ChatRequest] | None:
        """Return the body of a request, raw and parsed; None without a user's turn."""
        with self._failures.noted(ChatFailure.READ):
            if headers.get("authorization", "").startswith(SIGNED_SCHEME):
                raise InvalidInput("The request is signed, so its body must not change.")
            body = json.loads(content)
            request = protocol.read_request(body)
            return (body, request) if request.is_dialogue else None
        return None

    def _rewrite(self, request: Any, body: Mapping[str, Any]) -> Any:
        headers = [(name, value) for name, value in request.headers.raw if name.lower() != b"content-length"]
        content = json.dumps(body, separators=(",", ":")).encode()
        return self._library.Request(
            request.method, request.url, headers=headers, content=content, extensions=request.extensions
        )

    def _respond(self, response: Any, stream: Any, context: ChatContext | None = None, *, told: bool = False) -> Any:
        headers = [*response.headers.raw]
        if context:
            headers.append((CONTEXT_ID_HEADER.encode(), context.id.encode()))
        elif told:
            headers.append((MEMORY_HEADER.encode(), b"unavailable"))
        return self._library.Response(
            response.status_code, headers=headers, stream=stream, extensions=response.extensions
        )

    def _add_context(
        self, request: Any, protocol: ChatProtocol, body: Mapping[str, Any], context: ChatContext | None
    ) -> Any:
        """Return the request with its context; asks for an uncompressed answer, which can be read."""
        request.headers["Accept-Encoding"] = "identity"
        if not context or not context.block:
            return request
        return self._rewrite(request, protocol.add_context(body, context.block))


_BROKEN = (httpx.HTTPError, httpx2.HTTPError)
"""Errors of a connection that breaks off during an answer."""


class PassingStream(httpx.SyncByteStream, httpx2.SyncByteStream):
    """The bytes of a response, read as they pass; iteration can stop and resume."""

    def __init__(self, response: Any, passing: PassingAnswer | None) -> None:
        self._response = response
        self._received = response.iter_raw()
        self._passing = passing

    def __iter__(self) -> Iterator[bytes]:
        try:
            for data in self._received:
                if self._passing:
                    self._passing.feed(data)
                yield data
        except _BROKEN:
            if self._passing:
                self._passing.end(is_broken=True)
            raise

    def close(self) -> None:
        """Close the response; its answer is complete or has broken off."""
        self._response.close()
        if self._passing:
            self._passing.end()


class PassingAsyncStream(httpx.AsyncByteStream, httpx2.AsyncByteStream):
    """The bytes of an asynchronous response, read as they pass; iteration can stop and resume.

    Closing a partly read stream waits until its turns are stored: the event loop may be about to end.
    """

    def __init__(
        self,
        response: Any,
        passing: PassingAnswer | None,
        wait_until_stored: Callable[[float], Awaitable[None]] | None = None,
    ) -> None:
        self._response = response
        self._received = response.aiter_raw()
        self._passing = passing
        self._wait_until_stored = wait_until_stored
        self._is_read = False

    async def __aiter__(self) -> AsyncIterator[bytes]:
        try:
            async for data in self._received:
                if self._passing:
                    self._passing.feed(data)
                yield data
            self._is_read = True
        except _BROKEN:
            if self._passing:
                self._passing.end(is_broken=True)
            raise

    async def aclose(self) -> None:
        """Close the response; its answer is complete or has broken off."""
        if not self._received.ag_running:  # another task is reading; it ends with the response
            await self._received.aclose()
        await self._response.aclose()
        if self._passing is None:
            return
        was_left = not self._is_read and not self._passing.is_complete
        self._passing.end()
        if was_left and self._wait_until_stored:
            await self._wait_until_stored(CLOSING_SECONDS)


class BlockingMemoryTransport(_MemoryTransport, httpx.BaseTransport, httpx2.BaseTransport):
    """Sends requests with the HTTP client of a provider's client, and adds memory to model calls."""

    def __init__(self, inner: Any, protocols: Sequence[ChatProtocol], memory: BlockingChatMemory) -> None:
        self._inner, self._protocols, self.memory = inner, protocols, memory
        self._library = httpx2 if isinstance(inner, httpx2.Client) else httpx
        self._failures = memory.failures

    def make_client(self) -> Any:
        """Return an HTTP client that sends with this transport."""
        return self._library.Client(**self._client_options())

    def handle_request(self, request: Any) -> Any:
        """Send a request; return its response, whose stream is read as it passes."""
        protocol = self._find_protocol(request)
        read = self._read(protocol, request.headers, request.read()) if protocol else None
        if protocol is None or read is None:
            response = self._inner.send(request, stream=True)
            return self._respond(response, PassingStream(response, None))
        body, said = read
        call = self.memory.begin(said)
        self.memory.add_context(call)
        response = self._inner.send(self._add_context(request, protocol, body, call.context), stream=True)
        passing = None
        if response.is_success:
            reader = AnswerReader(protocol, response.headers.get("content-type", ""))
            passing = PassingAnswer(reader, self._failures, lambda answer: self.memory.store(call, answer))
            self.memory.note_open(call, passing)
        return self._respond(response, PassingStream(response, passing), call.context, told=True)

    def close(self) -> None:
        """Store pending turns, and close the HTTP client."""
        self.memory.close()
        self._inner.close()


class AsyncMemoryTransport(_MemoryTransport, httpx.AsyncBaseTransport, httpx2.AsyncBaseTransport):
    """Sends requests with the HTTP client of a provider's asynchronous client, and adds memory to model calls."""

    def __init__(self, inner: Any, protocols: Sequence[ChatProtocol], memory: AsyncChatMemory) -> None:
        self._inner, self._protocols, self.memory = inner, protocols, memory
        self._library = httpx2 if isinstance(inner, httpx2.AsyncClient) else httpx
        self._failures = memory.failures

    def make_client(self) -> Any:
        """Return an HTTP client that sends with this transport."""
        return self._library.AsyncClient(**self._client_options())

    async def handle_async_request(self, request: Any) -> Any:
        """Send a request; return its response, whose stream is read as it passes."""
        protocol = self._find_protocol(request)
        read = self._read(protocol, request.headers, await request.aread()) if protocol else None
        if protocol is None or read is None:
            response = await self._inner.send(request, stream=True)
            return self._respond(response, PassingAsyncStream(response, None))
        body, said = read
        call = self.memory.begin(said)
        await self.memory.add_context(call)
        response = await self._inner.send(self._add_context(request, protocol, body, call.context), stream=True)
        passing = None
        if response.is_success:
            reader = AnswerReader(protocol, response.headers.get("content-type", ""))
            passing = PassingAnswer(reader, self._failures, lambda answer: self.memory.store(call, answer))
            self.memory.note_open(call, passing)
        stream = PassingAsyncStream(response, passing, self.memory.wait_until_stored)
        return self._respond(response, stream, call.context, told=True)

    async def aclose(self) -> None:
        """Store pending turns, and close the HTTP client."""
        await self.memory.aclose()
        await self._inner.aclose()


AnthropicClient = TypeVar("AnthropicClient", bound="anthropic.Anthropic | anthropic.AsyncAnthropic")
OpenAIClient = TypeVar("OpenAIClient", bound="openai.OpenAI | openai.AsyncOpenAI")

URL_VARIABLE, KEY_VARIABLE = "GRAPHMEM_URL", "GRAPHMEM_API_KEY"
"""Environment variables with the server's address and key, the same as for hooks."""

_OPENAI = (ChatCompletionsProtocol(), ResponsesProtocol())
_ANTHROPIC = (MessagesProtocol(),)


def wrap_openai(
    client: OpenAIClient,
    *,
    user: str,
    session: str | None = None,
    budget: int = DEFAULT_TOKEN_BUDGET,
    domains: Sequence[str] = (),
    read_only: bool = False,
    space: str | None = None,
    memory: Client | AsyncClient | None = None,
) -> OpenAIClient:
    """Return a copy of an OpenAI client that has graphmem's memory of a user.

    Before a chat completion or a response, the context for the user's last message is added to the system prompt, with
    at most `budget` tokens. Afterwards, what the user and the model said is stored in the background, in `session` or
    in one session per conversation. With `read_only`, nothing is stored; with `space`, it is shared with the members of
    that space. The context includes what is known in `domains`; if there is exactly one, what is stored belongs to it.
    If graphmem does not answer, the model is called without memory.

    `memory` is a graphmem client, blocking or asynchronous like `client`; by default, one for `GRAPHMEM_URL` with the
    key in `GRAPHMEM_API_KEY`. Raises ConfigurationError without a key, InvalidInput for a memory of the other kind.
    """
    options = _make_options(user, session, budget, domains, read_only, space)
    wrapped: OpenAIClient = _wrap(client, _OPENAI, options, memory)
    return wrapped


def wrap_anthropic(
    client: AnthropicClient,
    *,
    user: str,
    session: str | None = None,
    budget: int = DEFAULT_TOKEN_BUDGET,
    domains: Sequence[str] = (),
    read_only: bool = False,
    space: str | None = None,
    memory: Client | AsyncClient | None = None,
) -> AnthropicClient:
    """Return a copy of an Anthropic client that has graphmem's memory of a user; see `wrap_openai`.

    Before a message, the context for the user's last message is added to the system prompt; afterwards, the turns are
    stored. Bedrock and Vertex clients call their models without memory.
    """
    options = _make_options(user, session, budget, domains, read_only, space)
    wrapped: AnthropicClient = _wrap(client, _ANTHROPIC, options, memory)
    return wrapped


class _BlockingClient(Protocol):
    def close(self) -> None: ...


class _AsynchronousClient(Protocol):
    def close(self) -> Coroutine[Any, Any, None]: ...


@overload
def memory_of(client: _BlockingClient) -> BlockingChatMemory: ...


@overload
def memory_of(client: _AsynchronousClient) -> AsyncChatMemory: ...


def memory_of(client: object) -> BlockingChatMemory | AsyncChatMemory:
    """Return the memory of a wrapped client: `flush` waits for pending turns, `failures.count` has the failures."""
    transport = _transport_of(client)
    if transport is None:
        raise InvalidInput("The client has no memory: wrap it first.")
    return transport.memory


def _transport_of(client: object) -> BlockingMemoryTransport | AsyncMemoryTransport | None:
    transport = getattr(getattr(client, "_client", None), "_transport", None)
    return transport if isinstance(transport, BlockingMemoryTransport | AsyncMemoryTransport) else None


def _make_options(
    user: str, session: str | None, budget: int, domains: Sequence[str], read_only: bool, space: str | None
) -> ChatMemoryOptions:
    if not user.strip():
        raise InvalidInput("Pass the user whose memory the client uses as `user`.")
    if isinstance(domains, str):
        raise InvalidInput("Pass the domains as a list: `domains=[…]`.")
    for name, identity in (("user", user), ("session", session or "")):
        try:
            check_identity(identity)
        except ValueError as error:
            raise InvalidInput(f"`{name}` {error}.") from None
    return ChatMemoryOptions(user, session, budget, tuple(domains), read_only, space)


def _wrap(
    client: Any,
    protocols: Sequence[ChatProtocol],
    options: ChatMemoryOptions,
    memory: Client | AsyncClient | None,
) -> Any:
    from graphmem.client import AsyncClient, Client

    if _transport_of(client):
        raise InvalidInput("The client already has a memory: wrap the original client.")
    inner = client._client
    if hasattr(inner, "aclose"):
        if memory is not None and not isinstance(memory, AsyncClient):
            raise InvalidInput(
                "An asynchronous client needs an asynchronous memory: give an AsyncClient or GraphMemory."
            )
        asks, stores = (memory, memory) if memory else _open_clients(AsyncClient)
        transport: Any = AsyncMemoryTransport(
            inner, protocols, AsyncChatMemory(options, asks, stores, owns_clients=memory is None)
        )
    else:
        if memory is not None and not isinstance(memory, Client):
            raise InvalidInput("A blocking client needs a blocking memory: give a Client.")
        asks, stores = (memory, memory) if memory else _open_clients(Client)
        transport = BlockingMemoryTransport(
            inner, protocols, BlockingChatMemory(options, asks, stores, owns_clients=memory is None)
        )
    return client.with_options(http_client=transport.make_client())


def _open_clients(kind: Any) -> tuple[Any, Any]:
    """Return a client for contexts, with one attempt, and one for storing turns, which retries."""
    key = os.environ.get(KEY_VARIABLE)
    if not key:
        raise ConfigurationError(f"graphmem has no key: set {KEY_VARIABLE}, or give a client as `memory`.")
    from graphmem.client.async_client import DEFAULT_SERVER_URL

    url = os.environ.get(URL_VARIABLE) or DEFAULT_SERVER_URL
    return kind(key, url, timeout=CONTEXT_SECONDS, attempts=1), kind(key, url)
