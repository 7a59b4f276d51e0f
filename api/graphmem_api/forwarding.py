"""Responses with a body in chunks: generated while being sent, or passed on from a provider with their headers."""

from __future__ import annotations

import re
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Mapping
from contextlib import ExitStack

import anyio
import httpx
from fastapi.responses import StreamingResponse
from starlette.types import Receive, Scope, Send

from graphmem.chats.answer_reader import PassingAnswer
from graphmem.chats.service import CREDENTIAL_HEADERS
from graphmem.tenants.access import KEY_CHARS, KEY_PATTERN, KEY_PREFIX
from graphmem_api import headers


class StreamedResponse(StreamingResponse):
    """A response that closes its generator of chunks when it ends, and then calls `release`.

    Both happen whether the response was sent completely, the caller disconnected before or during it, or the generator
    raised. Starlette leaves the generator to the garbage collector, with all resources it holds open.
    """

    def __init__(
        self,
        chunks: AsyncGenerator[bytes],
        release: Callable[[], Awaitable[None]],
        status_code: int = 200,
        media_type: str | None = None,
    ) -> None:
        super().__init__(chunks, status_code, media_type=media_type)
        self._chunks = chunks
        self._release = release
        self._held = ExitStack()

    def hold(self, held: ExitStack) -> None:
        """Close something after the response has ended, such as the place of its request."""
        self._held = held

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send the response, and close its open resources."""
        try:
            await super().__call__(scope, receive, send)
        finally:
            with anyio.CancelScope(shield=True), self._held:
                try:
                    await self._chunks.aclose()
                finally:
                    await self._release()


_HOP_BY_HOP = frozenset(
    {
        "connection", "keep-alive", "proxy-authenticate", "proxy-authorization", "proxy-connection", "te", "trailer",
        "transfer-encoding", "upgrade",
    }
)  # fmt: skip
"""Headers of a connection rather than the message."""

_NOT_SENT_ON = _HOP_BY_HOP | {
    *CREDENTIAL_HEADERS, "accept-encoding", "content-length", "cookie", "expect", "forwarded", "host", "via",
    "x-real-ip", headers.REQUEST_ID.lower(),
}  # fmt: skip
"""Request headers that are for this server or are set again."""

_NOT_SENT_BACK = _HOP_BY_HOP | {"alt-svc", "date", "server", "set-cookie", "strict-transport-security"}
"""Response headers about the provider's host, which the caller did not address."""

_OWN_PREFIXES = ("x-graphmem-", "x-forwarded-")


class BrokenAnswer(Exception):
    """A provider closed its connection during an answer."""


def holds_graphmem_key(value: str, own_key: str) -> bool:
    """Return whether the value of a header or parameter contains a graphmem key, which no provider may receive.

    `own_key` is the key of the request, which need not have the usual format.
    """
    return bool(own_key and own_key in value) or KEY_PATTERN.search(value) is not None


_KEY_IN_BODY = re.compile(rf"(?<![\w-]){KEY_PREFIX}[\w-]{{{KEY_CHARS}}}(?![\w-])".encode())
"""A whole graphmem key; data in base64 hardly ever contains one by chance."""

MIN_OWN_KEY_BYTES = 16
"""Length from which the key of a request is looked for in its body: a shorter one may be a word."""

REMOVED_KEY = b"[graphmem key removed]"
"""What a provider gets in place of a graphmem key."""


def without_graphmem_keys(content: bytes, own_key: str) -> bytes:
    """Return a body in which no field and no text holds a graphmem key, that of the request included."""
    own = own_key.encode("utf-8", "surrogatepass")
    kept = content.replace(own, REMOVED_KEY) if len(own) >= MIN_OWN_KEY_BYTES else content
    return _KEY_IN_BODY.sub(REMOVED_KEY, kept)


def forwarded_request_headers(received: Mapping[str, str]) -> dict[str, str]:
    """Return the headers to forward to a provider; asks for an uncompressed answer, which can be read."""
    named = {name.strip().lower() for name in received.get("connection", "").split(",")}
    kept = {
        name: value
        for name, value in received.items()
        if name not in _NOT_SENT_ON and name not in named and not name.startswith(_OWN_PREFIXES)
    }
    return {**kept, "accept-encoding": "identity"}


def forward_response(
    response: httpx.Response, passing: PassingAnswer | None, added: Mapping[str, str]
) -> StreamedResponse:
    """Return a provider's response, whose bytes are read as they pass."""

    async def release() -> None:
        if passing:
            passing.end()  # also if the caller left before the first byte
        await response.aclose()

    forwarded = StreamedResponse(_relay(response, passing), release, response.status_code)
    forwarded.raw_headers = [
        (name.encode("latin-1"), value.encode("latin-1"))
        for name, value in (*_response_headers(response.headers.multi_items()), *added.items())
    ]
    return forwarded


def _response_headers(received: Iterable[tuple[str, str]]) -> Iterable[tuple[str, str]]:
    for name, value in received:
        if name == headers.REQUEST_ID.lower():
            yield headers.UPSTREAM_REQUEST_ID.lower(), value
        elif name not in _NOT_SENT_BACK:
            yield name, value


async def _relay(response: httpx.Response, passing: PassingAnswer | None) -> AsyncGenerator[bytes]:
    try:
        async for data in response.aiter_raw():
            if passing:
                passing.feed(data)
            yield data
    except httpx.HTTPError as error:
        if passing:
            passing.end(is_broken=True)
        raise BrokenAnswer(str(error) or type(error).__name__) from error
    finally:
        if passing:
            passing.end()  # before the caller receives the end
