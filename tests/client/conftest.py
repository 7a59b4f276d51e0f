"""The API on a free port, and a proxy to it that fails as a test wants."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack

import pytest

from graphmem.app.bootstrap import Services
from graphmem.client import AsyncClient
from graphmem.tenants.access import ApiKeyIn, KeyRole
from tests.api.conftest import address, app, services, settings

__all__ = ["address", "app", "services", "settings"]

ClientFactory = Callable[..., Awaitable[AsyncClient]]


class FaultyProxy:
    """A proxy to the API that applies the next of its `faults` to each request and forwards the rest.

    `lost`: the request is forwarded, its response dropped. `cut`: nothing is forwarded. Bytes: they are the response.
    """

    def __init__(self, port: int) -> None:
        self.faults: list[str | bytes] = []
        self.received_requests: list[bytes] = []
        self._port = port

    async def handle_connection(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Forward one request and its response, then close the connection."""
        request = await _read_request(reader)
        self.received_requests.append(request)
        fault = self.faults.pop(0) if self.faults else b""
        if isinstance(fault, bytes) and fault:
            writer.write(fault)
        elif fault != "cut":
            upstream_reader, upstream_writer = await asyncio.open_connection("127.0.0.1", self._port)
            upstream_writer.write(request.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n", 1))
            response = await upstream_reader.read()
            upstream_writer.close()
            if fault != "lost":
                writer.write(response)
        await writer.drain()
        writer.close()

    def idempotency_keys(self) -> set[bytes]:
        """Return the idempotency keys of the requests received."""
        lines = (line for request in self.received_requests for line in request.split(b"\r\n"))
        return {line for line in lines if line.lower().startswith(b"idempotency-key:")}


def error_response(status: str, **headers: str) -> bytes:
    """Return a response without a body, as a proxy would send it."""
    lines = [f"HTTP/1.1 {status}", *(f"{name.replace('_', '-')}: {value}" for name, value in headers.items())]
    return "\r\n".join([*lines, "Content-Length: 0", "Connection: close", "", ""]).encode()


async def _read_request(reader: asyncio.StreamReader) -> bytes:
    head = await reader.readuntil(b"\r\n\r\n")
    lengths = [line.split(b":")[1] for line in head.split(b"\r\n") if line.lower().startswith(b"content-length:")]
    return head + await reader.readexactly(int(lengths[0]) if lengths else 0)


@pytest.fixture
async def faulty_proxy(address: str) -> AsyncIterator[tuple[FaultyProxy, str]]:
    """A proxy to the API and its address."""
    proxy = FaultyProxy(int(address.rpartition(":")[2]))
    async with await asyncio.start_server(proxy.handle_connection, "127.0.0.1", 0) as server:
        yield proxy, f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"


@pytest.fixture
async def make_client(address: str, services: Services, tenant: str) -> AsyncIterator[ClientFactory]:
    """Make a client with a fresh key: `await make_client("agent", users=["mara"], base_url=…)`."""
    async with AsyncExitStack() as stack:

        async def make(
            role: str = "agent", users: list[str] | None = None, base_url: str = address, attempts: int = 4
        ) -> AsyncClient:
            key = await services.keys.create(tenant, ApiKeyIn(name=role, role=KeyRole(role), users=users))
            return await stack.enter_async_context(AsyncClient(key.key, base_url, attempts=attempts, timeout=60))

        yield make


@pytest.fixture
async def agent(make_client: ClientFactory) -> AsyncClient:
    """An agent of the whole tenant."""
    return await make_client("agent")


@pytest.fixture
async def admin(make_client: ClientFactory) -> AsyncClient:
    """An admin of the tenant."""
    return await make_client("admin")
