"""Clients of the HTTP API: `Client` blocks, `AsyncClient` is for asyncio; `GraphMemory` has the same methods.

They are imported at first use.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from graphmem.client.async_client import AsyncClient
    from graphmem.client.client import Client

__all__ = ["AsyncClient", "Client"]


def __getattr__(name: str) -> object:
    if name == "AsyncClient":
        from graphmem.client.async_client import AsyncClient

        return AsyncClient
    if name == "Client":
        from graphmem.client.client import Client

        return Client
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
