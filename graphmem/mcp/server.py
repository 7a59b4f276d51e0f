"""The MCP server: the tools, and instructions on when to use them."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from typing import TYPE_CHECKING, Any

from mcp.server.mcpserver import Context as ToolCall
from mcp.server.mcpserver import MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from mcp.server.mcpserver.tools import Tool
from mcp.types import ToolAnnotations
from pydantic import ValidationError, create_model

import graphmem
from graphmem.mcp.connection import Connection
from graphmem.mcp.conversation_tools import ConversationTools
from graphmem.mcp.tools import MemoryTools
from graphmem.runtime.validation_domain import invalid_input_from

if TYPE_CHECKING:
    from graphmem.app.bootstrap import Services

SERVER_NAME = "graphmem"
SERVER_TITLE = "graphmem: memory of the user"

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
    tools = MemoryTools(get_services, get_connection)
    conversation = ConversationTools(get_services, get_connection)
    return MCPServer(
        SERVER_NAME,
        title=SERVER_TITLE,
        version=graphmem.__version__,
        instructions=INSTRUCTIONS,
        lifespan=lifespan,
        subscriptions=False,
        tools=[
            MemoryTool.strict(function, title, hints)
            for function, title, hints in (
                (tools.search_memory, "Search memory", _READ_ONLY),
                (conversation.get_context, "Get context", _READ_ONLY),
                (tools.lookup_entity, "Look up names", _READ_ONLY),
                (tools.memory_history, "Read the history of a memory", _READ_ONLY),
                (conversation.enhance_reply, "Enhance a reply", _READ_ONLY),
                (conversation.summarize_session, "Sum up a conversation", _ADDITIVE),
                (tools.save_memory, "Remember", _ADDITIVE),
                (tools.upsert_memories, "Save what was learned", _ADDITIVE),
                (tools.update_memory, "Correct a memory", _ADDITIVE),
                (tools.delete_memory, "End a memory", _DESTRUCTIVE),
            )
        ],
    )


class MemoryTool(Tool):
    """A tool that refuses unknown arguments and says which argument was meant."""

    @classmethod
    def strict(cls, function: Callable[..., Any], title: str, hints: ToolAnnotations) -> MemoryTool:
        """Return the tool of a function, described by its docstring."""
        tool = cls.from_function(function, title=title, description=inspect.getdoc(function), annotations=hints)
        accepted = tool.fn_metadata.arg_model
        arguments = create_model(accepted.__name__, __base__=accepted)
        arguments.model_config["extra"] = "forbid"
        arguments.model_rebuild(force=True)
        metadata = tool.fn_metadata.model_copy(update={"arg_model": arguments})
        schema = arguments.model_json_schema(by_alias=True)
        return cls.model_validate({**dict(tool), "fn_metadata": metadata, "parameters": schema})

    async def run(self, arguments: dict[str, Any], context: ToolCall[Any, Any], convert_result: bool = False) -> Any:
        """Run the tool; raise ToolError with one sentence on arguments that it does not take."""
        try:
            self.fn_metadata.validate_arguments(arguments)
        except ValidationError as error:
            invalid = invalid_input_from(error, model=self.fn_metadata.arg_model)
            raise ToolError(f"{invalid.title}: {invalid.detail}") from None
        return await super().run(arguments, context, convert_result)
