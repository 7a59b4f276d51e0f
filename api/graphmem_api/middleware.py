"""Handling common to all requests: id, log line, metrics, span, encoded paths, limits on load and slow clients."""

from __future__ import annotations

import asyncio
import collections
import logging
import re
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from typing import cast
from urllib.parse import quote, unquote_to_bytes

from opentelemetry.trace import Span, SpanKind
from prometheus_client import Counter, Histogram
from starlette.convertors import Convertor
from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from structlog.contextvars import bound_contextvars
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from graphmem.runtime.errors import InvalidInput, RequestTimeout, Unavailable
from graphmem.runtime.tracing import mark_failed, span
from graphmem_api import headers
from graphmem_api.forwarding import BrokenAnswer
from graphmem_api.problems import make_problem_response

SEGMENT_CONVERTOR = "segment"
"""Name of the convertor for ids in route paths, as in `/v1/users/{user_id:segment}`."""


class EncodedSegmentConvertor(Convertor[str]):
    """A path segment that is decoded after routing."""

    regex = "[^/]+"

    def convert(self, value: str) -> str:
        """Return the decoded segment; raise InvalidInput if it is not UTF-8."""
        try:
            return unquote_to_bytes(value.encode("latin-1")).decode("utf-8")
        except UnicodeError as error:
            raise InvalidInput(
                "The path is not percent-encoded UTF-8.", errors=[{"loc": ["path"], "msg": "is not UTF-8"}]
            ) from error

    def to_string(self, value: str) -> str:
        """Return a text percent-encoded as a segment."""
        return quote(value, safe="")


def keep_path_encoded(scope: Scope) -> None:
    """Replace a request's decoded path by the path as sent, so that routing splits it correctly."""
    raw: bytes = scope.get("raw_path") or quote(scope["path"]).encode()
    scope["path"] = raw.split(b"?", 1)[0].decode("latin-1")


log = logging.getLogger(__name__)

REQUESTS = Counter("graphmem_http_requests", "HTTP requests by route and status.", ["method", "route", "status"])
SECONDS = Histogram("graphmem_http_request_seconds", "Seconds from a request to its response.", ["method", "route"])

_REQUEST_ID_PATTERN = re.compile(headers.REQUEST_ID_PATTERN)
_KNOWN_METHODS = frozenset({"GET", "POST", "PATCH", "DELETE", "PUT", "HEAD", "OPTIONS"})
"""Methods that metrics distinguish; callers could make up any number of others."""


class RequestMiddleware:
    """The outermost ASGI middleware."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        keep_path_encoded(scope)
        received = Headers(scope=scope)
        given_id = received.get(headers.REQUEST_ID, "")
        request_id = given_id if _REQUEST_ID_PATTERN.match(given_id) else uuid.uuid4().hex
        status = 0

        async def send_with_id(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                sent = MutableHeaders(scope=message)
                sent[headers.REQUEST_ID] = request_id
                sent.setdefault("Cache-Control", "no-store")
                sent["X-Content-Type-Options"] = "nosniff"
            await send(message)

        started = time.perf_counter()
        with (
            bound_contextvars(request_id=request_id),
            span("request", kind=SpanKind.SERVER, caller=received, graphmem__request_id=request_id) as current,
        ):
            try:
                await self._app(scope, receive, send_with_id)
            except ClientDisconnect:
                log.info("the client disconnected")
            except BrokenAnswer as error:
                log.warning("a provider broke off its answer: %s", error)  # the caller's connection is closed too
            except Exception:
                log.exception("a request failed")
                if status:
                    raise
                await _internal_error(scope)(scope, receive, send_with_id)
            finally:
                _record_request(scope, status, time.perf_counter() - started, current)


def _internal_error(scope: Scope) -> ASGIApp:
    detail = f"An unexpected error occurred: the log has it under this response's {headers.REQUEST_ID}."
    return make_problem_response(scope["path"], 500, "Internal error", detail)


def _record_request(scope: Scope, status: int, seconds: float, current: Span) -> None:
    route = getattr(scope.get("route"), "path_format", "unknown")
    method = scope["method"] if scope["method"] in _KNOWN_METHODS else "other"
    REQUESTS.labels(method, route, str(status)).inc()
    SECONDS.labels(method, route).observe(seconds)
    current.update_name(f"{method} {route}")
    current.set_attributes({"http.request.method": method, "http.route": route, "http.response.status_code": status})
    if status >= 500:
        mark_failed(current, str(status))
    caller = scope.get("state", {}).get("caller")
    log.info(
        "request",
        extra={
            "method": method,
            "route": route,
            "status": status,
            "ms": round(seconds * 1000, 1),
            "key_id": getattr(caller, "id", None),
        },
    )


RETRY_SECONDS = 1
"""Seconds after which a refused request may be sent again."""

RESERVED_SHARE = 4
"""One in this many places is closed to any single key, so that a busy key does not shut out others."""


class Admission:
    """Counts the requests in progress, from their headers to the end of their responses.

    A request takes one of `limit` places once its body has arrived, so that slow senders take none. A single key may
    have requests in most, but not all places, and as many bodies arriving.
    """

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._limit_of_key = max(1, limit - limit // RESERVED_SHARE)
        self._in_progress = 0
        self._by_key: collections.Counter[str] = collections.Counter()

    @contextmanager
    def accepted(self, key_id: str) -> Iterator[RequestPlace]:
        """Count a key's request from its headers to its response; raise Unavailable if the key has too many."""
        if self._by_key[key_id] >= self._limit_of_key:
            raise Unavailable(
                "This key has too many requests in progress: send this one again after the seconds in `Retry-After`.",
                retry_after=RETRY_SECONDS,
            )
        self._count(key_id, 1, 0)
        try:
            yield RequestPlace(self, key_id)
        finally:
            self._count(key_id, -1, 0)

    def _check_room(self) -> None:
        if self._in_progress >= self._limit:
            raise Unavailable(
                "The server has too many requests in progress: send this one again after the seconds in `Retry-After`.",
                retry_after=RETRY_SECONDS,
            )

    def _count(self, key_id: str, of_key: int, in_progress: int) -> None:
        self._in_progress += in_progress
        self._by_key[key_id] += of_key
        if not self._by_key[key_id]:
            del self._by_key[key_id]


class RequestPlace:
    """The places counted for one request: its key's, and the server's while in progress."""

    def __init__(self, admission: Admission, key_id: str) -> None:
        self._admission = admission
        self._key_id = key_id
        self._pauses = 0

    @contextmanager
    def worked_on(self) -> Iterator[None]:
        """Count a request whose body has arrived; raise Unavailable if all places are taken."""
        self._admission._check_room()
        self._admission._count(self._key_id, 0, 1)
        try:
            yield
        finally:
            self._admission._count(self._key_id, 0, -1)

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Free the places of a request while it waits for a job; afterwards, it takes them again in any case."""
        self._pauses += 1
        if self._pauses == 1:
            self._admission._count(self._key_id, -1, -1)
        try:
            yield
        finally:
            self._pauses -= 1
            if not self._pauses:
                self._admission._count(self._key_id, 1, 1)


HEADER_SECONDS = 15.0
"""Seconds in which a connection's first request must begin, and the headers of each request must arrive."""

IDLE_SECONDS = 75
"""Seconds after a response in which the next request may begin.

Clients and proxies close idle connections after up to 60 seconds. A server that closes them first breaks requests being
sent at that moment. uvicorn has the same limit, but does not apply it after receiving the rest of a refused body.
"""

BYTES_PER_SECOND = 100_000
"""Bytes of a body that extend its deadline by one second on arrival, so that large imports may take longer."""


UNREAD_SECONDS = 60.0
"""Seconds in which a client must resume reading once unread data has filled the buffers."""

MAX_HEAD_BYTES = 64 * 1024
"""Most bytes of a request before its body; httptools has no such limit."""


class ImpatientHttpProtocol(HttpToolsProtocol):
    """uvicorn's protocol, which also closes connections that are idle or whose client sends or reads too slowly.

    It also closes those with overlong headers.
    """

    _timer: asyncio.TimerHandle | None = None
    _unread_timer: asyncio.TimerHandle | None = None
    _reads_head = True
    _head_bytes = 0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Start waiting for the first request."""
        super().connection_made(cast(asyncio.Transport, transport))
        self._close_in(HEADER_SECONDS)

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop waiting."""
        super().connection_lost(exc)
        self._stop_waiting()
        self._stop_waiting_for_reader()

    def pause_writing(self) -> None:
        """Start waiting for the client to read, during which its request keeps its place."""
        super().pause_writing()
        self._unread_timer = self.loop.call_later(UNREAD_SECONDS, self.transport.abort)

    def resume_writing(self) -> None:
        """Stop waiting for the client to read."""
        super().resume_writing()
        self._stop_waiting_for_reader()

    def data_received(self, data: bytes) -> None:
        """Parse received data; refuse a request with overlong headers."""
        self._head_bytes += len(data) if self._reads_head else 0
        super().data_received(data)
        if self._reads_head and self._head_bytes > MAX_HEAD_BYTES and not self.transport.is_closing():
            self.send_400_response("The headers of the request are too long.")

    def on_message_begin(self) -> None:
        """Start waiting for the headers of a request, and count their bytes."""
        super().on_message_begin()
        self._close_in(HEADER_SECONDS)
        self._reads_head, self._head_bytes = True, 0

    def on_headers_complete(self) -> None:
        """Stop waiting for headers; the body has its own limits."""
        super().on_headers_complete()
        self._stop_waiting()
        self._reads_head = False

    def on_response_complete(self) -> None:
        """Start waiting for the next request."""
        super().on_response_complete()
        if not self._reads_head:  # the next request's headers have their own time limit
            self._close_in(IDLE_SECONDS)

    def _close_in(self, seconds: float) -> None:
        self._stop_waiting()
        self._timer = self.loop.call_later(seconds, self._close_unless_busy, seconds)

    def _stop_waiting(self) -> None:
        if self._timer is not None:
            self._timer.cancel()

    def _stop_waiting_for_reader(self) -> None:
        if self._unread_timer is not None:
            self._unread_timer.cancel()

    def _close_unless_busy(self, seconds: float) -> None:
        if self.cycle is None or self.cycle.response_complete:
            self.transport.close()
        else:  # an earlier request is in progress
            self._close_in(seconds)


class BodyDeadlineMiddleware:
    """An ASGI middleware that raises RequestTimeout for the reader of a body that does not arrive in time."""

    def __init__(self, app: ASGIApp, seconds: float) -> None:
        self._app = app
        self._seconds = seconds

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        if scope["type"] == "http":
            receive = _BoundedBody(receive, self._seconds).receive
        await self._app(scope, receive, send)


class _BoundedBody:
    """The messages of a request; the time of its body starts when the application first reads."""

    def __init__(self, receive: Receive, seconds: float) -> None:
        self._receive = receive
        self._seconds = seconds
        self._deadline: float | None = None
        self._is_complete = False

    async def receive(self) -> Message:
        if self._is_complete:  # the only later message is the end of the connection
            return await self._receive()
        if self._deadline is None:
            self._deadline = asyncio.get_running_loop().time() + self._seconds
        try:
            async with asyncio.timeout_at(self._deadline):
                message = await self._receive()
        except TimeoutError as error:
            raise RequestTimeout("The body of the request did not arrive in time: send it faster.") from error
        self._deadline += len(message.get("body", b"")) / BYTES_PER_SECOND
        self._is_complete = not message.get("more_body", False)
        return message
