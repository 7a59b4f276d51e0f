"""The two clients: one table of verbs, one way to try again, two ways to wait."""

from __future__ import annotations

import functools
import uuid
from collections.abc import Callable, Coroutine
from types import TracebackType
from typing import Any, Generic, ParamSpec, Self, TypeVar, overload

import httpx
from tenacity import AsyncRetrying, RetryCallState, Retrying, retry_if_exception, stop_after_attempt
from tenacity.wait import wait_random_exponential

from graphmem.client import operations
from graphmem.client.api_call import ApiCall
from graphmem.client.error_responses import error_from_response
from graphmem.errors import GraphmemError, RateLimited, Unavailable

P = ParamSpec("P")
T = TypeVar("T")

DEFAULT_SERVER_URL = "http://127.0.0.1:8321"
MAX_RETRY_AFTER_SECONDS = 60
"""Seconds; a server that asks to come back later than that is not asked again."""

_exponential_backoff = wait_random_exponential(multiplier=0.25, max=10)


class ClientMethod(Generic[P, T]):
    """A verb of both clients: called on the one it returns `T`, on the other something to await."""

    def __init__(self, operation: Callable[P, ApiCall[T]]) -> None:
        self._operation = operation
        self.__doc__ = operation.__doc__

    @overload
    def __get__(self, client: None, owner: type) -> Self: ...

    @overload
    def __get__(self, client: Client, owner: type) -> Callable[P, T]: ...

    @overload
    def __get__(self, client: AsyncClient, owner: type) -> Callable[P, Coroutine[Any, Any, T]]: ...

    def __get__(self, client: Client | AsyncClient | None, owner: type) -> object:
        return self if client is None else client.bind(self._operation)


class ClientMethods:
    """What can be asked of the HTTP API."""

    add = ClientMethod(operations.add)
    memories = ClientMethod(operations.memories)
    memory = ClientMethod(operations.memory)
    update_memory = ClientMethod(operations.update_memory)
    delete_memory = ClientMethod(operations.delete_memory)
    erase_memory = ClientMethod(operations.erase_memory)
    history = ClientMethod(operations.history)
    revert_memory = ClientMethod(operations.revert_memory)

    search = ClientMethod(operations.search)
    search_messages = ClientMethod(operations.search_messages)
    lookup = ClientMethod(operations.lookup)
    entities = ClientMethod(operations.entities)
    entity = ClientMethod(operations.entity)
    entity_memories = ClientMethod(operations.entity_memories)
    entity_graph = ClientMethod(operations.entity_graph)
    context = ClientMethod(operations.context)
    preferences = ClientMethod(operations.preferences)
    patterns = ClientMethod(operations.patterns)
    contexts = ClientMethod(operations.contexts)

    add_messages = ClientMethod(operations.add_messages)
    sessions = ClientMethod(operations.sessions)
    create_session = ClientMethod(operations.create_session)
    session = ClientMethod(operations.session)
    session_messages = ClientMethod(operations.session_messages)
    close_session = ClientMethod(operations.close_session)
    summarize_session = ClientMethod(operations.summarize_session)
    feedback = ClientMethod(operations.feedback)
    job = ClientMethod(operations.job)
    retry_job = ClientMethod(operations.retry_job)
    trigger_extraction = ClientMethod(operations.trigger_extraction)

    consolidate = ClientMethod(operations.consolidate)
    runs = ClientMethod(operations.runs)
    run = ClientMethod(operations.run)
    rollback = ClientMethod(operations.rollback)
    maintain = ClientMethod(operations.maintain)
    create_key = ClientMethod(operations.create_key)
    keys = ClientMethod(operations.keys)
    revoke_key = ClientMethod(operations.revoke_key)

    export = ClientMethod(operations.export)
    export_schema = ClientMethod(operations.export_schema)
    import_ = ClientMethod(operations.import_)
    forget = ClientMethod(operations.forget)


class Client(ClientMethods):
    """The HTTP API, blocking: `with Client(key) as memory: memory.search("mara", "tea")`.

    `timeout` is in seconds for one try, which calls that wait for work to finish do not have; `attempts` is how often
    a call is tried when the server cannot be reached, is away or asks to slow down. Writes carry an idempotency key,
    so that trying again never does them twice. Errors are those of `graphmem.errors`.
    """

    def __init__(
        self, api_key: str, base_url: str = DEFAULT_SERVER_URL, *, timeout: float = 30, attempts: int = 4
    ) -> None:
        self._http = httpx.Client(**_httpx_options(api_key, base_url, timeout))
        self._retrying = Retrying(**_retry_options(attempts))

    def bind(self, operation: Callable[P, ApiCall[T]]) -> Callable[P, T]:
        """Return an operation as a method of this client."""

        @functools.wraps(operation)
        def method(*args: P.args, **kwargs: P.kwargs) -> T:
            call = operation(*args, **kwargs)
            request = _build_request(self._http, call)
            return self._retrying.copy()(lambda: _parse_response(call, self._send(request)))

        return method

    def _send(self, request: httpx.Request) -> httpx.Response:
        try:
            return self._http.send(request)
        except httpx.HTTPError as error:
            raise _connection_error(request, error) from error

    def close(self) -> None:
        """Let go of the connections."""
        self._http.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()


class AsyncClient(ClientMethods):
    """The HTTP API, asynchronous: `async with AsyncClient(key) as memory: await memory.search("mara", "tea")`.

    What is said of `Client` holds for it too.
    """

    def __init__(
        self, api_key: str, base_url: str = DEFAULT_SERVER_URL, *, timeout: float = 30, attempts: int = 4
    ) -> None:
        self._http = httpx.AsyncClient(**_httpx_options(api_key, base_url, timeout))
        self._retrying = AsyncRetrying(**_retry_options(attempts))

    def bind(self, operation: Callable[P, ApiCall[T]]) -> Callable[P, Coroutine[Any, Any, T]]:
        """Return an operation as a method of this client."""

        @functools.wraps(operation)
        async def method(*args: P.args, **kwargs: P.kwargs) -> T:
            call = operation(*args, **kwargs)
            request = _build_request(self._http, call)

            async def once() -> T:
                return _parse_response(call, await self._send(request))

            return await self._retrying.copy()(once)

        return method

    async def _send(self, request: httpx.Request) -> httpx.Response:
        try:
            return await self._http.send(request)
        except httpx.HTTPError as error:
            raise _connection_error(request, error) from error

    async def aclose(self) -> None:
        """Let go of the connections."""
        await self._http.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None
    ) -> None:
        await self.aclose()


def _httpx_options(api_key: str, base_url: str, timeout: float) -> dict[str, Any]:
    return {"base_url": base_url, "headers": {"Authorization": f"Bearer {api_key}"}, "timeout": timeout}


def _build_request(http: httpx.Client | httpx.AsyncClient, call: ApiCall[T]) -> httpx.Request:
    """Return the request of a call; every try of it is this one, under the same idempotency key."""
    headers = dict(call.headers)
    if call.content is not None:
        headers["Content-Type"] = call.media_type
    if call.is_write:
        headers["Idempotency-Key"] = uuid.uuid4().hex
    timeout = httpx.Timeout(http.timeout.connect, read=None) if call.waits_for_completion else http.timeout
    return http.build_request(
        call.method, call.path, params=call.params, content=call.content, headers=headers, timeout=timeout
    )


def _parse_response(call: ApiCall[T], answer: httpx.Response) -> T:
    """Return what an answer says; raise the error it stands for."""
    if not answer.is_success:
        raise error_from_response(answer)
    try:
        return call.parse(answer)
    except (ValueError, KeyError, TypeError) as error:
        raise GraphmemError(f"{answer.url.host} does not answer as graphmem: check the address.") from error


def _connection_error(request: httpx.Request, error: httpx.HTTPError) -> GraphmemError:
    """Return the error of a request that got no answer."""
    where = f"{request.url.scheme}://{request.url.netloc.decode()}"
    reason = str(error) or type(error).__name__
    if isinstance(error, httpx.NetworkError | httpx.TimeoutException | httpx.RemoteProtocolError):
        return Unavailable(f"graphmem at {where} cannot be reached ({reason}).", retry_after=None)
    return GraphmemError(f"graphmem at {where} cannot be asked ({reason}): check the address.")


def _retry_options(attempts: int) -> dict[str, Any]:
    return {
        "retry": retry_if_exception(_is_retryable),
        "wait": _retry_wait_seconds,
        "stop": stop_after_attempt(attempts),
        "reraise": True,
    }


def _is_retryable(error: BaseException) -> bool:
    """Return whether the same call may succeed soon."""
    return isinstance(error, RateLimited | Unavailable) and (error.retry_after or 0) <= MAX_RETRY_AFTER_SECONDS


def _retry_wait_seconds(state: RetryCallState) -> float:
    """Return how many seconds to wait: as long as the server asks for, else longer from try to try."""
    error = state.outcome.exception() if state.outcome else None
    asked = error.retry_after if isinstance(error, GraphmemError) else None
    return asked if asked is not None else _exponential_backoff(state)
