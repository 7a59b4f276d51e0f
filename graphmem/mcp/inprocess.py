"""The tools of one user in the same process, for agents that speak to a model themselves."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from mcp import Client

from graphmem.bootstrap import GraphMemory
from graphmem.domain.identity import DEFAULT_TENANT, owner_of
from graphmem.mcp.connection import Connection
from graphmem.mcp.server import NAME, make_server


@asynccontextmanager
async def tools_of(memory: GraphMemory, user_id: str, tenant: str = DEFAULT_TENANT) -> AsyncIterator[Client]:
    """Give a client session with the tools of a user: `instructions`, `list_tools()`, `call_tool(name, arguments)`."""
    connection = Connection(owner_of(tenant, user_id), actor=NAME)

    async def opened() -> GraphMemory:
        return memory

    async with Client(make_server(opened, lambda _: connection)) as client:
        yield client
