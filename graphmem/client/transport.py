"""API requests as values, and sending them with httpx: errors and retries."""

from __future__ import annotations

import asyncio
import random
import time
import uuid
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar
from urllib.parse import quote

import httpx
from pydantic import BaseModel

from graphmem.runtime.errors import GraphmemError, InvalidInput, RateLimited, Unavailable

T = TypeVar("T")
M = TypeVar("M", bound=BaseModel)

ResponseParser = Callable[[httpx.Response], T]


@dataclass(frozen=True, slots=True)
class ApiCall(Generic[T]):
    """An HTTP request whose response is parsed as `T`.

    All attempts of an `is_write` call have the same idempotency key. A call that `waits_for_completion` waits for its
    response without a time limit.
    """

    method: str
    path: str
    parse: ResponseParser[T]
    params: Mapping[str, Any] = field(default_factory=dict)
    content: bytes | None = None
    media_type: str = "application/json"
    headers: Mapping[str, str] = field(default_factory=dict)
    is_write: bool = False
    waits_for_completion: bool = False


def get(
    answer: Callable[..., T], path: str, *ids: str, query: BaseModel | None = None, waits: bool = False
) -> ApiCall[T]:
    """Return a read by GET, with the parameters set in `query` as its query string."""
    return ApiCall(
        "GET", _make_path(path, ids), _to_parser(answer), params=_to_query(query), waits_for_completion=waits
    )


def ask(answer: Callable[..., T], path: str, *ids: str, body: BaseModel, waits: bool = False) -> ApiCall[T]:
    """Return a read by POST, with the parameters set in `body` as its body."""
    return ApiCall(
        "POST", _make_path(path, ids), _to_parser(answer), content=_to_body(body), waits_for_completion=waits
    )


def post(
    answer: Callable[..., T],
    path: str,
    *ids: str,
    body: BaseModel | None = None,
    query: BaseModel | None = None,
    waits: bool = False,
    method: str = "POST",
) -> ApiCall[T]:
    """Return a write; if its body has `wait` set, the call also waits for completion."""
    return ApiCall(
        method,
        _make_path(path, ids),
        _to_parser(answer),
        params=_to_query(query),
        content=_to_body(body),
        is_write=True,
        waits_for_completion=waits or getattr(body, "wait", False),
    )


def patch(answer: Callable[..., T], path: str, *ids: str, body: BaseModel, if_version: int | None) -> ApiCall[T]:
    """Return a correction, limited to a version if one is given."""
    headers = {} if if_version is None else {"If-Match": f'"{if_version}"'}
    return ApiCall(
        "PATCH", _make_path(path, ids), _to_parser(answer), content=_to_body(body), headers=headers, is_write=True
    )


def delete(
    answer: Callable[..., T],
    path: str,
    *ids: str,
    hard: bool = False,
    query: BaseModel | None = None,
    waits: bool = False,
) -> ApiCall[T]:
    """Return a deletion."""
    params = {"hard": "true"} if hard else _to_query(query)
    return ApiCall(
        "DELETE", _make_path(path, ids), _to_parser(answer), params=params, is_write=True, waits_for_completion=waits
    )


def upload(answer: Callable[..., T], path: str, *ids: str, document: bytes, query: BaseModel) -> ApiCall[T]:
    """Return a write whose body is a JSON or YAML document."""
    return ApiCall(
        "POST",
        _make_path(path, ids),
        _to_parser(answer),
        params=_to_query(query),
        content=document,
        media_type="application/json" if document.lstrip().startswith((b"{", b"[")) else "application/yaml",
        is_write=True,
        waits_for_completion=True,
    )


def items_of(model: type[M]) -> ResponseParser[list[M]]:
    """Return a parser of the models listed under `items`."""
    return lambda response: [model.model_validate(item) for item in response.json()["items"]]


def nothing(_: httpx.Response) -> None:
    """Return None: the response has no content."""


def _to_parser(answer: Callable[..., T]) -> ResponseParser[T]:
    read_model = getattr(answer, "model_validate_json", None)
    return answer if read_model is None else lambda response: read_model(response.content)


def _to_query(parameters: BaseModel | None) -> dict[str, Any]:
    if parameters is None:
        return {}
    return parameters.model_dump(mode="json", exclude_unset=True, exclude_none=True)


def _to_body(parameters: BaseModel | None) -> bytes | None:
    return None if parameters is None else parameters.model_dump_json(exclude_unset=True).encode()


def _make_path(template: str, ids: tuple[str, ...]) -> str:
    """Return a path with ids in place of `{}`; raise InvalidInput for an id that a path cannot hold."""
    return template.format(*map(_escape_id, ids))


def _escape_id(text: str) -> str:
    """Return an id percent-encoded as one segment, including `.` and `..`, which would change the path."""
    if not text:
        raise InvalidInput("An id must not be empty.")
    if not text.strip("."):
        return text.replace(".", "%2E")
    try:
        return quote(text, safe="")
    except UnicodeEncodeError as error:
        raise InvalidInput("An id must be text that UTF-8 can encode.") from error


UNAVAILABLE_STATUSES = frozenset({502, 503, 504})
"""Statuses of a service, or a proxy in front of it, for which a retry may succeed."""


def error_from_response(response: httpx.Response) -> GraphmemError:
    """Return the error of a response: among the classes with its status, the one with its title."""
    problem = _problem_document(response)
    matching = [kind for kind in _error_classes(GraphmemError) if kind.status == response.status_code]
    titled = [kind for kind in matching if kind.title == problem.get("title")]
    fallback = Unavailable if response.status_code in UNAVAILABLE_STATUSES else GraphmemError
    kind = [*titled, *matching, fallback][0]
    detail = problem.get("detail") or f"The server answered {response.status_code} {response.reason_phrase}."
    error = kind(str(detail))
    error.retry_after = _parse_retry_after(response.headers.get("Retry-After"))
    errors = problem.get("errors")
    error.errors = [item for item in errors if isinstance(item, dict)] if isinstance(errors, list) else []
    return error


def _problem_document(response: httpx.Response) -> dict[str, Any]:
    try:
        document = response.json()
    except ValueError:
        return {}
    return document if isinstance(document, dict) else {}


def _error_classes(kind: type[GraphmemError]) -> Iterator[type[GraphmemError]]:
    """Yield an error class and its subclasses, base classes first."""
    yield kind
    for subclass in kind.__subclasses__():
        yield from _error_classes(subclass)


def _parse_retry_after(header: str | None) -> int | None:
    return int(header) if header and header.isdecimal() else None


MAX_RETRY_AFTER_SECONDS = 60
"""Longest pause in seconds that the server may ask for; beyond it, the call is not retried."""

CONNECT_SECONDS = 5.0
"""Seconds in which a server must accept a connection, which even a slow one does."""

BACKOFF_SECONDS = 0.25
"""Longest pause after the first attempt, in seconds; doubles with each attempt."""

MAX_BACKOFF_SECONDS = 10
"""Longest pause chosen by the client, in seconds."""


@dataclass(frozen=True, slots=True)
class CallRetryPolicy:
    """Retries calls that may succeed soon, with `attempts` attempts in total."""

    attempts: int

    def pause_after(self, attempt: int, error: GraphmemError) -> float | None:
        """Return the seconds to wait after a failed attempt (from 1), or None if the call has failed for good.

        The server's `Retry-After` takes precedence; otherwise, the pause is random with an exponentially growing limit.
        """
        if attempt >= self.attempts or not isinstance(error, RateLimited | Unavailable):
            return None
        if error.retry_after is not None:
            return error.retry_after if error.retry_after <= MAX_RETRY_AFTER_SECONDS else None
        return random.uniform(0, min(MAX_BACKOFF_SECONDS, BACKOFF_SECONDS * 2.0 ** (attempt - 1)))


_SCHEMES = ("http://", "https://")


class BlockingTransport:
    """Sends calls and blocks until the response arrives."""

    def __init__(self, api_key: str, base_url: str, timeout: float, policy: CallRetryPolicy, trust_env: bool) -> None:
        self._http = httpx.Client(**_http_options(api_key, base_url, timeout, trust_env))
        self._policy = policy

    def send(self, call: ApiCall[T]) -> T:
        """Send a call and return its parsed response; raise the error that the response reports."""
        request = _build_request(self._http, call, self._policy)
        attempt = 0
        while True:
            attempt += 1
            try:
                return _parse_response(call, self._send_once(request))
            except GraphmemError as error:
                pause = self._policy.pause_after(attempt, error)
                if pause is None:
                    raise
            time.sleep(pause)

    def _send_once(self, request: httpx.Request) -> httpx.Response:
        try:
            return self._http.send(request)
        except httpx.HTTPError as error:
            raise _connection_error(request, error) from error

    def close(self) -> None:
        """Close the connections."""
        self._http.close()


class AsyncTransport:
    """Sends calls without blocking the event loop."""

    def __init__(
        self,
        api_key: str,
        base_url: str,
        timeout: float,
        policy: CallRetryPolicy,
        trust_env: bool,
        transport: httpx.AsyncBaseTransport | None = None,
    ) -> None:
        options = _http_options(api_key, base_url, timeout, trust_env)
        self._http = httpx.AsyncClient(**options, transport=transport)
        self._policy = policy

    async def send(self, call: ApiCall[T]) -> T:
        """Send a call and return its parsed response; raise the error that the response reports."""
        request = _build_request(self._http, call, self._policy)
        attempt = 0
        while True:
            attempt += 1
            try:
                return _parse_response(call, await self._send_once(request))
            except GraphmemError as error:
                pause = self._policy.pause_after(attempt, error)
                if pause is None:
                    raise
            await asyncio.sleep(pause)

    async def _send_once(self, request: httpx.Request) -> httpx.Response:
        try:
            return await self._http.send(request)
        except httpx.HTTPError as error:
            raise _connection_error(request, error) from error

    async def aclose(self) -> None:
        """Close the connections."""
        await self._http.aclose()


def _http_options(api_key: str, base_url: str, timeout: float, trust_env: bool) -> dict[str, Any]:
    """Return the options of an HTTP client; raise InvalidInput for an invalid address, or one passed as the key."""
    if api_key.strip().lower().startswith(_SCHEMES):
        raise InvalidInput("The server's address was given as the key: pass the key first, then the address.")
    if not base_url.strip().lower().startswith(_SCHEMES):
        raise InvalidInput("base_url is the server's address and begins with http:// or https://.")
    return {
        "base_url": base_url,
        "headers": {"Authorization": f"Bearer {api_key}"},
        "timeout": httpx.Timeout(timeout, connect=min(timeout, CONNECT_SECONDS)),
        "trust_env": trust_env,
        "verify": not base_url.startswith("http://"),  # loads certificates only if needed
    }


def _build_request(
    http: httpx.Client | httpx.AsyncClient, call: ApiCall[Any], policy: CallRetryPolicy
) -> httpx.Request:
    """Return the request of a call; all attempts share it, and thereby its idempotency key."""
    headers = dict(call.headers)
    if call.content is not None:
        headers["Content-Type"] = call.media_type
    if call.is_write and policy.attempts > 1:
        headers["Idempotency-Key"] = uuid.uuid4().hex
    timeout = http.timeout
    if call.waits_for_completion:
        timeout = httpx.Timeout(timeout.write, connect=timeout.connect, read=None)
    return http.build_request(
        call.method, call.path, params=call.params, content=call.content, headers=headers, timeout=timeout
    )


def _parse_response(call: ApiCall[T], response: httpx.Response) -> T:
    if not response.is_success:
        raise error_from_response(response)
    try:
        return call.parse(response)
    except (ValueError, KeyError, TypeError) as error:
        raise GraphmemError(f"{response.url.host} is not a graphmem server: check the address.") from error


def _connection_error(request: httpx.Request, error: httpx.HTTPError) -> GraphmemError:
    """Return the error of a request without a response."""
    address = f"{request.url.scheme}://{request.url.netloc.decode()}"
    reason = str(error) or type(error).__name__
    if isinstance(error, httpx.ReadTimeout | httpx.WriteTimeout):
        seconds = f"{request.extensions['timeout']['read']:g}"
        why = "it is busy, or was just started and makes its first requests"
        return Unavailable(f"graphmem at {address} has not answered within {seconds} s: {why}.", retry_after=None)
    if isinstance(error, httpx.NetworkError | httpx.TimeoutException | httpx.RemoteProtocolError):
        return Unavailable(f"graphmem at {address} cannot be reached ({reason}).", retry_after=None)
    return GraphmemError(f"graphmem at {address} cannot be called ({reason}): check the address.")
