"""Memory for provider clients: `client = wrap_openai(OpenAI(), user="mara")`, and `wrap_anthropic`."""

from __future__ import annotations

import os
from collections.abc import Coroutine, Sequence
from typing import TYPE_CHECKING, Any, Protocol, TypeVar, overload

from graphmem.chats.protocol import ChatCompletionsProtocol, ChatProtocol, MessagesProtocol, ResponsesProtocol
from graphmem.integrations.agent_memory import DEFAULT_TOKEN_BUDGET
from graphmem.integrations.chat_memory import (
    CONTEXT_SECONDS,
    AsyncChatMemory,
    BlockingChatMemory,
    ChatMemoryOptions,
)
from graphmem.integrations.memory_transport import AsyncMemoryTransport, BlockingMemoryTransport
from graphmem.runtime.errors import ConfigurationError, InvalidInput
from graphmem.runtime.field_types import check_filled_in

if TYPE_CHECKING:
    import anthropic
    import openai

    from graphmem.client import AsyncClient, Client

AnthropicClient = TypeVar("AnthropicClient", bound="anthropic.Anthropic | anthropic.AsyncAnthropic")
OpenAIClient = TypeVar("OpenAIClient", bound="openai.OpenAI | openai.AsyncOpenAI")

URL_VARIABLE, KEY_VARIABLE = "GRAPHMEM_URL", "GRAPHMEM_API_KEY"
"""Environment variables with the address of the server and its key, as hooks read them."""

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
    """Return the memory of a wrapped client: `flush` waits for what it stores, `failures.count` counts what failed."""
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
            check_filled_in(identity)
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
    """Return a client that asks once and in time, and one that is patient."""
    key = os.environ.get(KEY_VARIABLE)
    if not key:
        raise ConfigurationError(f"graphmem has no key: set {KEY_VARIABLE}, or give a client as `memory`.")
    from graphmem.client.async_client import DEFAULT_SERVER_URL

    url = os.environ.get(URL_VARIABLE) or DEFAULT_SERVER_URL
    return kind(key, url, timeout=CONTEXT_SECONDS, attempts=1), kind(key, url)
