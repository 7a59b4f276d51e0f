"""The MCP server: the tools, and instructions on when to use them."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from typing import TYPE_CHECKING, Any

from mcp.server.mcpserver import Context as ToolCall
from mcp.server.mcpserver import MCPServer
from mcp.types import ToolAnnotations

import graphmem
from graphmem.mcp.connection import Connection
from graphmem.mcp.tools import MemoryTools

if TYPE_CHECKING:
    from graphmem.bootstrap import Services

SERVER_NAME = "graphmem"

INSTRUCTIONS = """\
You have a memory of the user that outlives this conversation.
Before you answer, call search_memory (or get_context at the start of a conversation) when the answer may depend on \
the user, and lookup_entity when a name comes up. Look in memory first, elsewhere only when it has nothing fitting.
When the user says "remember" or "don't forget", call save_memory and confirm it. When you learn something worth \
knowing later, call upsert_memories, once for each statement. Correct what is wrong with update_memory; end what the \
user takes back with delete_memory.
What the user says now beats what is remembered. Do not recite memories; let them shape the answer.\
"""

_READ_ONLY = ToolAnnotations(read_only_hint=True, open_world_hint=False)
_ADDITIVE = ToolAnnotations(read_only_hint=False, destructive_hint=False, idempotent_hint=True, open_world_hint=False)
_DESTRUCTIVE = ToolAnnotations(read_only_hint=False, destructive_hint=True, idempotent_hint=True, open_world_hint=False)


def make_server(
    get_services: Callable[[], Awaitable[Services]],
    get_connection: Callable[[ToolCall], Connection],
    lifespan: Callable[[MCPServer[Any]], AbstractAsyncContextManager[Any]] | None = None,
) -> MCPServer[Any]:
    """Return a server of the tools; `get_connection` names the user of each tool call."""
    server = MCPServer(
        SERVER_NAME, version=graphmem.__version__, instructions=INSTRUCTIONS, lifespan=lifespan, subscriptions=False
    )
    tools = MemoryTools(get_services, get_connection)
    for tool, hints in (
        (tools.search_memory, _READ_ONLY),
        (tools.get_context, _READ_ONLY),
        (tools.lookup_entity, _READ_ONLY),
        (tools.memory_history, _READ_ONLY),
        (tools.enhance_reply, _READ_ONLY),
        (tools.save_memory, _ADDITIVE),
        (tools.upsert_memories, _ADDITIVE),
        (tools.update_memory, _ADDITIVE),
        (tools.delete_memory, _DESTRUCTIVE),
    ):
        server.add_tool(tool, description=inspect.getdoc(tool), annotations=hints)
    return server
