"""The two clients: the same methods, blocking and asynchronous.

httpx, pydantic and the models of the API are imported when the first client is created, so that importing this module
takes a few milliseconds.
"""

from __future__ import annotations

import functools
from abc import ABC, abstractmethod
from collections.abc import Callable, Coroutine
from types import TracebackType
from typing import TYPE_CHECKING, Any, Generic, ParamSpec, Self, TypeVar, overload

from graphmem.client.retries import CallRetryPolicy

if TYPE_CHECKING:
    from graphmem.client.endpoints import Endpoint, Endpoints
    from graphmem.client.operations import OperationMethod
    from graphmem.client.operations.composed import ComposedOperations, ComposedSteps

P = ParamSpec("P")
T = TypeVar("T")

DEFAULT_SERVER_URL = "http://127.0.0.1:8321"
"""Address of a server that `graphmem serve` started with its default settings."""


class BoundClientMethod(ABC, Generic[P, T]):
    """A method of both clients: it returns a `T`, or on `AsyncClient` a coroutine of it."""

    @overload
    def __get__(self, client: None, owner: type) -> Self: ...

    @overload
    def __get__(self, client: Client, owner: type) -> OperationMethod[P, T]: ...

    @overload
    def __get__(self, client: AsyncClient, owner: type) -> OperationMethod[P, Coroutine[Any, Any, T]]: ...

    def __get__(self, client: Client | AsyncClient | None, owner: type) -> object:
        return self if client is None else self._bind(client)

    @abstractmethod
    def _bind(self, client: Client | AsyncClient) -> object:
        """Return the method of one client."""


class ClientMethod(BoundClientMethod[P, T]):
    """A method that calls one endpoint."""

    def __init__(self, select: Callable[[type[Endpoints]], Endpoint[P, T]]) -> None:
        self._select = select

    def _bind(self, client: Client | AsyncClient) -> object:
        from graphmem.client.endpoints import Endpoints

        return client.bind(self._select(Endpoints))


class ComposedClientMethod(BoundClientMethod[P, T]):
    """A method that calls several endpoints, one after the other."""

    def __init__(self, select: Callable[[type[ComposedOperations]], Callable[P, ComposedSteps[T]]]) -> None:
        self._select = select

    def _bind(self, client: Client | AsyncClient) -> object:
        from graphmem.client.operations.composed import ComposedOperations

        return client.bind_composed(self._select(ComposedOperations))


class ClientMethods:
    """The methods of both clients, one for each operation."""

    add = ComposedClientMethod(lambda composed: composed.add)
    get_all = ComposedClientMethod(lambda composed: composed.get_all)
    _save_statements = ClientMethod(lambda endpoints: endpoints.add)
    memories = ClientMethod(lambda endpoints: endpoints.memories)
    memory = ClientMethod(lambda endpoints: endpoints.memory)
    update = ClientMethod(lambda endpoints: endpoints.update)
    delete = ClientMethod(lambda endpoints: endpoints.delete)
    erase_memory = ClientMethod(lambda endpoints: endpoints.erase_memory)
    history = ClientMethod(lambda endpoints: endpoints.history)
    changes = ClientMethod(lambda endpoints: endpoints.changes)
    revert = ClientMethod(lambda endpoints: endpoints.revert)

    search = ClientMethod(lambda endpoints: endpoints.search)
    search_messages = ClientMethod(lambda endpoints: endpoints.search_messages)
    lookup = ClientMethod(lambda endpoints: endpoints.lookup)
    entities = ClientMethod(lambda endpoints: endpoints.entities)
    entity = ClientMethod(lambda endpoints: endpoints.entity)
    entity_memories = ClientMethod(lambda endpoints: endpoints.entity_memories)
    entity_graph = ClientMethod(lambda endpoints: endpoints.entity_graph)
    context = ClientMethod(lambda endpoints: endpoints.context)
    rate_context = ClientMethod(lambda endpoints: endpoints.rate_context)
    memory_uses = ClientMethod(lambda endpoints: endpoints.memory_uses)
    preferences = ClientMethod(lambda endpoints: endpoints.preferences)
    patterns = ClientMethod(lambda endpoints: endpoints.patterns)
    contexts = ClientMethod(lambda endpoints: endpoints.contexts)
    add_context = ClientMethod(lambda endpoints: endpoints.add_context)
    delete_context = ClientMethod(lambda endpoints: endpoints.delete_context)
    enhance = ClientMethod(lambda endpoints: endpoints.enhance)
    profile = ClientMethod(lambda endpoints: endpoints.profile)
    persona = ClientMethod(lambda endpoints: endpoints.persona)
    set_persona = ClientMethod(lambda endpoints: endpoints.set_persona)
    contradictions = ClientMethod(lambda endpoints: endpoints.contradictions)
    intents = ClientMethod(lambda endpoints: endpoints.intents)

    add_messages = ClientMethod(lambda endpoints: endpoints.add_messages)
    sessions = ClientMethod(lambda endpoints: endpoints.sessions)
    create_session = ClientMethod(lambda endpoints: endpoints.create_session)
    session = ClientMethod(lambda endpoints: endpoints.session)
    session_messages = ClientMethod(lambda endpoints: endpoints.session_messages)
    session_archives = ClientMethod(lambda endpoints: endpoints.session_archives)
    close_session = ClientMethod(lambda endpoints: endpoints.close_session)
    summarize_session = ClientMethod(lambda endpoints: endpoints.summarize_session)
    feedback = ClientMethod(lambda endpoints: endpoints.feedback)
    job = ClientMethod(lambda endpoints: endpoints.job)
    retry_job = ClientMethod(lambda endpoints: endpoints.retry_job)
    trigger_extraction = ClientMethod(lambda endpoints: endpoints.trigger_extraction)

    consolidate = ClientMethod(lambda endpoints: endpoints.consolidate)
    runs = ClientMethod(lambda endpoints: endpoints.runs)
    run = ClientMethod(lambda endpoints: endpoints.run)
    rollback = ClientMethod(lambda endpoints: endpoints.rollback)
    maintain = ClientMethod(lambda endpoints: endpoints.maintain)
    reembed = ClientMethod(lambda endpoints: endpoints.reembed)
    embedding = ClientMethod(lambda endpoints: endpoints.embedding)
    create_key = ClientMethod(lambda endpoints: endpoints.create_key)
    keys = ClientMethod(lambda endpoints: endpoints.keys)
    revoke_key = ClientMethod(lambda endpoints: endpoints.revoke_key)
    create_webhook = ClientMethod(lambda endpoints: endpoints.create_webhook)
    webhooks = ClientMethod(lambda endpoints: endpoints.webhooks)
    delete_webhook = ClientMethod(lambda endpoints: endpoints.delete_webhook)
    instructions = ClientMethod(lambda endpoints: endpoints.instructions)
    set_instructions = ClientMethod(lambda endpoints: endpoints.set_instructions)
    declared_types = ClientMethod(lambda endpoints: endpoints.declared_types)
    set_declared_types = ClientMethod(lambda endpoints: endpoints.set_declared_types)

    export = ClientMethod(lambda endpoints: endpoints.export)
    records_schema = ClientMethod(lambda endpoints: endpoints.records_schema)
    export_schema = ClientMethod(lambda endpoints: endpoints.export_schema)
    import_ = ClientMethod(lambda endpoints: endpoints.import_)
    users = ClientMethod(lambda endpoints: endpoints.users)
    forget = ClientMethod(lambda endpoints: endpoints.forget)


class Client(ClientMethods):
    """The HTTP API, blocking: `with Client(key) as memory: memory.search("mara", "tea")`.

    `timeout` is in seconds for one attempt; calls that wait for work to finish have none. `attempts` is how often a
    call is sent when the server cannot be reached, is unavailable or limits the rate. With `trust_env` the proxies of
    the environment are used. Writes carry an idempotency key: sent again, they happen once. Methods raise
    the errors of `graphmem.runtime.errors`.
    """

    def __init__(
        self,
        api_key: str,
        base_url: str = DEFAULT_SERVER_URL,
        *,
        timeout: float = 30,
        attempts: int = 4,
        trust_env: bool = True,
    ) -> None:
        from graphmem.client.transport import BlockingTransport

        self._transport = BlockingTransport(api_key, base_url, timeout, CallRetryPolicy(attempts), trust_env)

    def bind(self, endpoint: Endpoint[P, T]) -> Callable[P, T]:
        """Return an endpoint as a method of this client."""

        @functools.wraps(endpoint.operation)
        def method(*args: P.args, **kwargs: P.kwargs) -> T:
            return self._transport.send(endpoint.make_call(*args, **kwargs))

        return method

    def bind_composed(self, compose: Callable[P, ComposedSteps[T]]) -> Callable[P, T]:
        """Return a method of this client that takes several steps."""
        from graphmem.client.operations import accept_user_by_name
        from graphmem.client.operations.composed import take_steps_blocking

        @functools.wraps(compose)
        def method(*args: P.args, **kwargs: P.kwargs) -> T:
            return take_steps_blocking(self, accept_user_by_name(compose, args, kwargs))

        return method

    def close(self) -> None:
        """Close the connections."""
        self._transport.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()


class AsyncClient(ClientMethods):
    """The HTTP API, asynchronous: `async with AsyncClient(key) as memory: await memory.search("mara", "tea")`.

    The parameters are those of `Client`.
    """

    def __init__(
        self,
        api_key: str,
        base_url: str = DEFAULT_SERVER_URL,
        *,
        timeout: float = 30,
        attempts: int = 4,
        trust_env: bool = True,
    ) -> None:
        from graphmem.client.transport import AsyncTransport

        self._transport = AsyncTransport(api_key, base_url, timeout, CallRetryPolicy(attempts), trust_env)

    def bind(self, endpoint: Endpoint[P, T]) -> Callable[P, Coroutine[Any, Any, T]]:
        """Return an endpoint as a method of this client."""

        @functools.wraps(endpoint.operation)
        async def method(*args: P.args, **kwargs: P.kwargs) -> T:
            return await self._transport.send(endpoint.make_call(*args, **kwargs))

        return method

    def bind_composed(self, compose: Callable[P, ComposedSteps[T]]) -> Callable[P, Coroutine[Any, Any, T]]:
        """Return a method of this client that takes several steps."""
        from graphmem.client.operations import accept_user_by_name
        from graphmem.client.operations.composed import take_steps

        @functools.wraps(compose)
        async def method(*args: P.args, **kwargs: P.kwargs) -> T:
            return await take_steps(self, accept_user_by_name(compose, args, kwargs))

        return method

    async def aclose(self) -> None:
        """Close the connections."""
        await self._transport.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None
    ) -> None:
        await self.aclose()
