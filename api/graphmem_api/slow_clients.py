"""Limits for clients that are slow to send: the time of a request's headers, and that of its body."""

from __future__ import annotations

import asyncio
from typing import cast

from starlette.types import ASGIApp, Message, Receive, Scope, Send
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from graphmem.runtime.errors import RequestTimeout

HEADER_SECONDS = 15.0
"""Seconds in which the first request of a connection must begin, and the headers of each request must arrive."""

IDLE_SECONDS = 75
"""Seconds after a response in which the next request may begin.

Clients and proxies close idle connections after up to 60 seconds. A server that closes them first breaks the requests
that are sent on them at that moment. uvicorn has the same limit, but no longer applies it once the rest of a refused
body has arrived.
"""

BYTES_PER_SECOND = 100_000
"""A body gets one more second for each of these many bytes that have arrived, so that large imports may take longer."""


MAX_HEAD_BYTES = 64 * 1024
"""Most bytes of a request before its body, since httptools has no limit of its own."""


class ImpatientHttpProtocol(HttpToolsProtocol):
    """uvicorn's protocol, closing connections that are idle or whose headers are too long or do not arrive in time."""

    _timer: asyncio.TimerHandle | None = None
    _reads_head = True
    _head_bytes = 0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Wait for the first request."""
        super().connection_made(cast(asyncio.Transport, transport))
        self._close_in(HEADER_SECONDS)

    def connection_lost(self, exc: Exception | None) -> None:
        """Wait no longer."""
        super().connection_lost(exc)
        self._stop_waiting()

    def data_received(self, data: bytes) -> None:
        """Parse what has arrived; refuse a request whose headers are too long."""
        self._head_bytes += len(data) if self._reads_head else 0
        super().data_received(data)
        if self._reads_head and self._head_bytes > MAX_HEAD_BYTES and not self.transport.is_closing():
            self.send_400_response("The headers of the request are too long.")

    def on_message_begin(self) -> None:
        """Wait for the headers of a request, and count their bytes."""
        super().on_message_begin()
        self._close_in(HEADER_SECONDS)
        self._reads_head, self._head_bytes = True, 0

    def on_headers_complete(self) -> None:
        """Wait no longer: a body has limits of its own."""
        super().on_headers_complete()
        self._stop_waiting()
        self._reads_head = False

    def on_response_complete(self) -> None:
        """Wait for the next request."""
        super().on_response_complete()
        if not self._reads_head:  # the headers of the next one have their own time
            self._close_in(IDLE_SECONDS)

    def _close_in(self, seconds: float) -> None:
        self._stop_waiting()
        self._timer = self.loop.call_later(seconds, self._close_unless_busy, seconds)

    def _stop_waiting(self) -> None:
        if self._timer is not None:
            self._timer.cancel()

    def _close_unless_busy(self, seconds: float) -> None:
        if self.cycle is None or self.cycle.response_complete:
            self.transport.close()
        else:  # an earlier request is in progress
            self._close_in(seconds)


class BodyDeadlineMiddleware:
    """An ASGI middleware that raises RequestTimeout in whatever reads a body that does not arrive in time."""

    def __init__(self, app: ASGIApp, seconds: float) -> None:
        self._app = app
        self._seconds = seconds

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        if scope["type"] == "http":
            receive = _BoundedBody(receive, self._seconds).receive
        await self._app(scope, receive, send)


class _BoundedBody:
    """The messages of one request; the time of its body runs from the first time that the application reads."""

    def __init__(self, receive: Receive, seconds: float) -> None:
        self._receive = receive
        self._seconds = seconds
        self._deadline: float | None = None
        self._is_complete = False

    async def receive(self) -> Message:
        if self._is_complete:  # what follows is the end of the connection
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
