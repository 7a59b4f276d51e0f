"""Clients that send slowly: a body or a request that does not arrive in time ends with its connection."""

from __future__ import annotations

import asyncio
import socket
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from urllib.parse import urlsplit

import pytest
from graphmem_api.app import create_app

from graphmem.app.bootstrap import Services
from graphmem.runtime.settings import Settings
from tests.api.conftest import FIRST_KEY, serve_app


@asynccontextmanager
async def connected(address: str) -> AsyncIterator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
    """Yield a connection to a server."""
    parts = urlsplit(address)
    reader, writer = await asyncio.open_connection(parts.hostname, parts.port)
    try:
        yield reader, writer
    finally:
        writer.close()


async def send_slowly(address: str, start: bytes, drop: bytes) -> bytes:
    """Send the start of a request, then bytes one by one, until the server closes; return what came back."""
    async with connected(address) as (reader, writer):
        writer.write(start)

        async def drip() -> None:
            while True:
                writer.write(drop)
                await asyncio.sleep(0.05)

        answer = b""
        dripping = asyncio.create_task(drip())
        try:
            async with asyncio.timeout(60):
                with suppress(ConnectionError):
                    while part := await reader.read(65_536):
                        answer += part
        finally:
            dripping.cancel()
        return answer


async def test_body_that_does_not_arrive_in_time_gets_408_and_the_connection_ends(
    services: Services, settings: Settings
) -> None:
    head = (
        "POST /v1/users/mara/memories HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        f"Authorization: Bearer {FIRST_KEY}\r\nContent-Length: 5000\r\n\r\n"
    )
    async with serve_app(create_app(services, settings.model_copy(update={"body_timeout": 0.3}))) as address:
        answer = await send_slowly(address, head.encode(), b" ")
    assert answer.startswith(b"HTTP/1.1 408 ")
    assert b"urn:graphmem:problem:request-timeout" in answer


@pytest.mark.parametrize("first", [b"", b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"])
async def test_connection_on_which_no_request_begins_is_closed(
    first: bytes, services: Services, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("graphmem_api.middleware.HEADER_SECONDS", 0.3)
    async with serve_app(create_app(services, settings)) as address:
        answer = await send_slowly(address, first + b"GET /healthz HTTP/1.1\r\nX-Slow: ", b"a")
    assert answer.count(b"HTTP/1.1 200 OK") == bool(first)


async def test_headers_without_an_end_are_refused(services: Services, settings: Settings) -> None:
    async with serve_app(create_app(services, settings)) as address:
        answer = await send_slowly(address, b"GET /healthz HTTP/1.1\r\nX-Long: ", b"a" * 20_000)
    assert answer.startswith(b"HTTP/1.1 400 ")


async def test_idle_connection_is_kept_longer_than_headers_may_take(
    services: Services, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("graphmem_api.middleware.HEADER_SECONDS", 0.3)
    request = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"
    async with serve_app(create_app(services, settings)) as address, connected(address) as (reader, writer):
        for _ in range(2):
            writer.write(request)
            assert b"HTTP/1.1 200 OK" in await reader.readuntil(b"\r\n\r\n")
            await asyncio.sleep(0.6)


async def test_idle_connection_is_closed_in_the_end_also_after_the_body_of_a_refused_request(
    services: Services, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("graphmem_api.middleware.IDLE_SECONDS", 0.3)
    head = b"POST /v1/users/mara/memories HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2\r\n\r\n"
    async with serve_app(create_app(services, settings)) as address, connected(address) as (reader, writer):
        writer.write(head)
        assert (await reader.readuntil(b"\r\n\r\n")).startswith(b"HTTP/1.1 401 ")
        writer.write(b"{}")
        async with asyncio.timeout(60):
            await reader.read()


async def test_connection_whose_client_does_not_read_is_closed(
    services: Services, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("graphmem_api.middleware.UNREAD_SECONDS", 0.2)
    request = b"GET /openapi.json HTTP/1.1\r\nHost: localhost\r\n\r\n"

    def send_without_reading(port: int) -> None:
        with socket.create_connection(("127.0.0.1", port), timeout=60) as client:
            client.sendall(request * 100)
            for _ in range(600):
                client.send(b"GET")  # fails once the server has closed
                time.sleep(0.1)

    async with serve_app(create_app(services, settings)) as address:
        with pytest.raises(ConnectionError):
            await asyncio.to_thread(send_without_reading, urlsplit(address).port or 0)
