"""The tools of one user in the same process, for agents that speak to a model themselves."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from mcp import Client

from graphmem.bootstrap import GraphMemory
from graphmem.domain.identity import DEFAULT_TENANT, make_owner
from graphmem.mcp.connection import Connection
from graphmem.mcp.server import SERVER_NAME, make_server


@asynccontextmanager
async def open_tool_client(memory: GraphMemory, user_id: str, tenant: str = DEFAULT_TENANT) -> AsyncIterator[Client]:
    """Give a client session with the tools of a user: `instructions`, `list_tools()`, `call_tool(name, arguments)`."""
    connection = Connection(make_owner(tenant, user_id), actor=SERVER_NAME)

    async def get_memory() -> GraphMemory:
        return memory

    async with Client(make_server(get_memory, lambda _: connection)) as client:
        yield client
