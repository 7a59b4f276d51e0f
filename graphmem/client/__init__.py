"""The HTTP API as Python: `AsyncClient` and `Client`, with the verbs of `GraphMemory` and the errors of graphmem."""

from graphmem.client.clients import AsyncClient, Client

__all__ = ["AsyncClient", "Client"]
