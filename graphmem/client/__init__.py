"""Clients of the HTTP API: `Client` blocks, `AsyncClient` is for asyncio; both have the methods of `GraphMemory`."""

from graphmem.client.clients import AsyncClient, Client

__all__ = ["AsyncClient", "Client"]
