"""Requests and answers that are passed on as they are: their headers, and their bytes as they come."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterable, Mapping

import httpx

from graphmem.chats.answer_reader import PassingAnswer
from graphmem.chats.upstream import CREDENTIAL_HEADERS
from graphmem.tenants.tokens import KEY_PATTERN
from graphmem_api import headers
from graphmem_api.streamed_response import StreamedResponse

_HOP_BY_HOP = frozenset(
    {
        "connection", "keep-alive", "proxy-authenticate", "proxy-authorization", "proxy-connection", "te", "trailer",
        "transfer-encoding", "upgrade",
    }
)  # fmt: skip
"""Headers of one connection, not of the message."""

_NOT_SENT_ON = _HOP_BY_HOP | {
    *CREDENTIAL_HEADERS, "accept-encoding", "content-length", "cookie", "expect", "forwarded", "host", "via",
    "x-real-ip", headers.REQUEST_ID.lower(),
}  # fmt: skip
"""Headers of a request that are for this server, or are made again."""

_NOT_SENT_BACK = _HOP_BY_HOP | {"alt-svc", "date", "server", "set-cookie", "strict-transport-security"}
"""Headers of a response that speak of the provider's host, which is not the one that the caller asked."""

_OWN_PREFIXES = ("x-graphmem-", "x-forwarded-")


class BrokenAnswer(Exception):
    """A provider ended its connection in the middle of an answer."""


def holds_graphmem_key(value: str, own_key: str) -> bool:
    """Return whether the value of a header or a parameter holds a graphmem key, which no provider may get.

    `own_key` is the key that the request was accepted with, which need not look like one.
    """
    return bool(own_key and own_key in value) or KEY_PATTERN.search(value) is not None


def forwarded_request_headers(received: Mapping[str, str]) -> dict[str, str]:
    """Return the headers of a request that a provider gets; its answer is not compressed, so that it can be read."""
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
    """Return the response of a provider, whose bytes are read while they pass."""

    async def release() -> None:
        if passing:
            passing.end()  # of a caller who left before its first byte, too
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
            passing.end()  # before the caller gets the end
