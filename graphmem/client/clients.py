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
from graphmem.client.call import Call
from graphmem.client.refusals import error_of
from graphmem.errors import GraphmemError, RateLimited, Unavailable

P = ParamSpec("P")
T = TypeVar("T")

DEFAULT_URL = "http://127.0.0.1:8321"
LONGEST_PAUSE = 60
"""Seconds; a server that asks to come back later than that is not asked again."""

_backoff = wait_random_exponential(multiplier=0.25, max=10)


class Verb(Generic[P, T]):
    """A verb of both clients: called on the one it returns `T`, on the other something to await."""

    def __init__(self, operation: Callable[P, Call[T]]) -> None:
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


class Verbs:
    """What can be asked of the HTTP API."""

    add = Verb(operations.add)
    memories = Verb(operations.memories)
    memory = Verb(operations.memory)
    update_memory = Verb(operations.update_memory)
    delete_memory = Verb(operations.delete_memory)
    erase_memory = Verb(operations.erase_memory)
    history = Verb(operations.history)
    revert_memory = Verb(operations.revert_memory)

    search = Verb(operations.search)
    search_messages = Verb(operations.search_messages)
    lookup = Verb(operations.lookup)
    entities = Verb(operations.entities)
    entity = Verb(operations.entity)
    entity_memories = Verb(operations.entity_memories)
    entity_graph = Verb(operations.entity_graph)
    context = Verb(operations.context)
    preferences = Verb(operations.preferences)
    patterns = Verb(operations.patterns)
    contexts = Verb(operations.contexts)

    add_messages = Verb(operations.add_messages)
    sessions = Verb(operations.sessions)
    create_session = Verb(operations.create_session)
    session = Verb(operations.session)
    session_messages = Verb(operations.session_messages)
    close_session = Verb(operations.close_session)
    summarize_session = Verb(operations.summarize_session)
    feedback = Verb(operations.feedback)
    job = Verb(operations.job)
    retry_job = Verb(operations.retry_job)
    trigger_extraction = Verb(operations.trigger_extraction)

    consolidate = Verb(operations.consolidate)
    runs = Verb(operations.runs)
    run = Verb(operations.run)
    rollback = Verb(operations.rollback)
    maintain = Verb(operations.maintain)
    create_key = Verb(operations.create_key)
    keys = Verb(operations.keys)
    revoke_key = Verb(operations.revoke_key)

    export = Verb(operations.export)
    export_schema = Verb(operations.export_schema)
    import_ = Verb(operations.import_)
    forget = Verb(operations.forget)


class Client(Verbs):
    """The HTTP API, blocking: `with Client(key) as memory: memory.search("mara", "tea")`.

    `timeout` is in seconds for one try, which calls that wait for work to finish do not have; `attempts` is how often
    a call is tried when the server cannot be reached, is away or asks to slow down. Writes carry an idempotency key,
    so that trying again never does them twice. Errors are those of `graphmem.errors`.
    """

    def __init__(self, api_key: str, base_url: str = DEFAULT_URL, *, timeout: float = 30, attempts: int = 4) -> None:
        self._http = httpx.Client(**_options(api_key, base_url, timeout))
        self._trying = Retrying(**_policy(attempts))

    def bind(self, operation: Callable[P, Call[T]]) -> Callable[P, T]:
        """Return an operation as a method of this client."""

        @functools.wraps(operation)
        def method(*args: P.args, **kwargs: P.kwargs) -> T:
            call = operation(*args, **kwargs)
            request = _request(self._http, call)
            return self._trying.copy()(lambda: _read(call, self._once(request)))

        return method

    def _once(self, request: httpx.Request) -> httpx.Response:
        try:
            return self._http.send(request)
        except httpx.HTTPError as error:
            raise _unreached(request, error) from error

    def close(self) -> None:
        """Let go of the connections."""
        self._http.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()


class AsyncClient(Verbs):
    """The HTTP API, asynchronous: `async with AsyncClient(key) as memory: await memory.search("mara", "tea")`.

    What is said of `Client` holds for it too.
    """

    def __init__(self, api_key: str, base_url: str = DEFAULT_URL, *, timeout: float = 30, attempts: int = 4) -> None:
        self._http = httpx.AsyncClient(**_options(api_key, base_url, timeout))
        self._trying = AsyncRetrying(**_policy(attempts))

    def bind(self, operation: Callable[P, Call[T]]) -> Callable[P, Coroutine[Any, Any, T]]:
        """Return an operation as a method of this client."""

        @functools.wraps(operation)
        async def method(*args: P.args, **kwargs: P.kwargs) -> T:
            call = operation(*args, **kwargs)
            request = _request(self._http, call)

            async def once() -> T:
                return _read(call, await self._once(request))

            return await self._trying.copy()(once)

        return method

    async def _once(self, request: httpx.Request) -> httpx.Response:
        try:
            return await self._http.send(request)
        except httpx.HTTPError as error:
            raise _unreached(request, error) from error

    async def aclose(self) -> None:
        """Let go of the connections."""
        await self._http.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None
    ) -> None:
        await self.aclose()


def _options(api_key: str, base_url: str, timeout: float) -> dict[str, Any]:
    return {"base_url": base_url, "headers": {"Authorization": f"Bearer {api_key}"}, "timeout": timeout}


def _request(http: httpx.Client | httpx.AsyncClient, call: Call[T]) -> httpx.Request:
    """Return the request of a call; every try of it is this one, under the same idempotency key."""
    headers = dict(call.headers)
    if call.content is not None:
        headers["Content-Type"] = call.media_type
    if call.writes:
        headers["Idempotency-Key"] = uuid.uuid4().hex
    timeout = httpx.Timeout(http.timeout.connect, read=None) if call.patient else http.timeout
    return http.build_request(
        call.method, call.path, params=call.params, content=call.content, headers=headers, timeout=timeout
    )


def _read(call: Call[T], answer: httpx.Response) -> T:
    """Return what an answer says; raise the error it stands for."""
    if not answer.is_success:
        raise error_of(answer)
    try:
        return call.read(answer)
    except (ValueError, KeyError, TypeError) as error:
        raise GraphmemError(f"{answer.url.host} does not answer as graphmem: check the address.") from error


def _unreached(request: httpx.Request, error: httpx.HTTPError) -> GraphmemError:
    """Return the error of a request that got no answer."""
    where = f"{request.url.scheme}://{request.url.netloc.decode()}"
    reason = str(error) or type(error).__name__
    if isinstance(error, httpx.NetworkError | httpx.TimeoutException | httpx.RemoteProtocolError):
        return Unavailable(f"graphmem at {where} cannot be reached ({reason}).", retry_after=None)
    return GraphmemError(f"graphmem at {where} cannot be asked ({reason}): check the address.")


def _policy(attempts: int) -> dict[str, Any]:
    return {
        "retry": retry_if_exception(_passes),
        "wait": _pause,
        "stop": stop_after_attempt(attempts),
        "reraise": True,
    }


def _passes(error: BaseException) -> bool:
    """Return whether the same call may succeed soon."""
    return isinstance(error, RateLimited | Unavailable) and (error.retry_after or 0) <= LONGEST_PAUSE


def _pause(state: RetryCallState) -> float:
    """Return how many seconds to wait: as long as the server asks for, else longer from try to try."""
    error = state.outcome.exception() if state.outcome else None
    asked = error.retry_after if isinstance(error, GraphmemError) else None
    return asked if asked is not None else _backoff(state)
