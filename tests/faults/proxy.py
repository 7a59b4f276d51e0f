"""A TCP proxy before a server, with which a test disconnects the server from its clients, or gives it TLS."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from urllib.parse import urlsplit


class Proxy:
    """Forwards connections to a server until it is frozen: then it accepts connections and passes on nothing."""

    def __init__(self, host: str, port: int, tls: ssl.SSLContext | None = None) -> None:
        self._target = (host, port)
        self._tls = tls
        self._flowing = asyncio.Event()
        self._flowing.set()
        self._server: asyncio.Server | None = None
        self._connections: set[asyncio.Task[None]] = set()

    @property
    def port(self) -> int:
        assert self._server
        return int(self._server.sockets[0].getsockname()[1])

    async def start(self) -> None:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0, ssl=self._tls)

    async def stop(self) -> None:
        assert self._server
        self._server.close()
        for connection in self._connections:
            connection.cancel()

    def freeze(self) -> None:
        self._flowing.clear()

    def thaw(self) -> None:
        self._flowing.set()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task
        self._connections.add(task)
        try:
            with suppress(OSError):
                await self._flowing.wait()
                server_reader, server_writer = await asyncio.open_connection(*self._target)
                async with asyncio.TaskGroup() as group:
                    group.create_task(self._pass_on(reader, server_writer))
                    group.create_task(self._pass_on(server_reader, writer))
        except* OSError:
            pass
        finally:
            self._connections.discard(task)

    async def _pass_on(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while data := await reader.read(65536):
                await self._flowing.wait()
                writer.write(data)
                await writer.drain()
        finally:
            writer.close()


@asynccontextmanager
async def proxy_before(uri: str) -> AsyncIterator[tuple[Proxy, str]]:
    """A proxy before the server of an address, and the address of the proxy."""
    target = urlsplit(uri)
    assert target.hostname
    proxy = Proxy(target.hostname, target.port or 7687)
    await proxy.start()
    try:
        yield proxy, f"bolt://127.0.0.1:{proxy.port}"
    finally:
        proxy.thaw()
        await proxy.stop()
