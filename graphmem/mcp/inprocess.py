"""The tools of one user for agents in the same process."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from mcp import Client

from graphmem.app.bootstrap import Services
from graphmem.graph_memory import GraphMemory
from graphmem.mcp.connection import Connection
from graphmem.mcp.server import SERVER_NAME, make_server
from graphmem.tenants.owners import make_owner


@asynccontextmanager
async def open_tool_client(memory: GraphMemory, user_id: str) -> AsyncIterator[Client]:
    """Open an MCP client with the tools of a user: `instructions`, `list_tools()`, `call_tool(name, arguments)`."""
    connection = Connection(make_owner(memory.tenant, user_id), actor=SERVER_NAME)

    async def get_services() -> Services:
        return memory.services

    async with Client(make_server(get_services, lambda _: connection)) as client:
        yield client
