"""The MCP server: the tools and instructions for their use, over standard input and output or in the same process."""

from __future__ import annotations

import inspect
import json
import re
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any

import anyio
from mcp import Client
from mcp.server.mcpserver import Context as ToolCall
from mcp.server.mcpserver import MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from mcp.server.mcpserver.tools import Tool
from mcp.server.stdio import stdio_server
from mcp.shared.message import SessionMessage
from mcp.types import Tool as ListedTool
from mcp.types import ToolAnnotations
from mcp_types import INVALID_REQUEST, PARSE_ERROR, ErrorData, JSONRPCError
from pydantic import ValidationError, create_model

import graphmem
from graphmem.client.async_client import AsyncClient
from graphmem.mcp.tools import GetMemory, MemoryTools, UserMemory
from graphmem.runtime.validation import invalid_input_from

SERVER_NAME = "graphmem"
SERVER_TITLE = "graphmem: memory of the user"

INSTRUCTIONS = """\
You have a memory of the user that outlives this conversation.
Before you answer, call search_memory (or get_context at the start of a conversation) when the answer may depend on \
the user, and lookup_entity when a name comes up. Look in memory first, elsewhere only when it has nothing fitting.
When the user says "remember" or "don't forget", or you learn something worth knowing later, call save_memory, once \
for each statement. Correct what is wrong with update_memory; end what the user takes back with delete_memory.
What the user says now beats what is remembered. Do not recite memories; let them shape the answer.\
"""

ALIASES = {"upsert_memories": "save_memory"}
"""Unlisted names by which tools may be called."""

_READ_ONLY = ToolAnnotations(read_only_hint=True, open_world_hint=False)
_ADDITIVE = ToolAnnotations(read_only_hint=False, destructive_hint=False, idempotent_hint=True, open_world_hint=False)
_DESTRUCTIVE = ToolAnnotations(read_only_hint=False, destructive_hint=True, idempotent_hint=True, open_world_hint=False)

_REQUEST_ID = re.compile(r'"id"\s*:\s*(\d{1,18}|"[^"\\]{0,200}")')
"""The id in a request that is not valid JSON; `params` come after it."""

_TEXTS = frozenset({"content", "key", "value"})
"""Arguments that may be a word such as "none"; only null or an empty text means that they are absent."""

_ABSENT = re.compile(r"\s*(?:null|none|undefined)?\s*", re.IGNORECASE)
"""Values that models write for absent optional arguments."""


class MemoryServer(MCPServer[Any]):
    """A server of the tools; `get_memory` returns the memory of each tool call.

    With `can_ask`, it includes the tool that answers questions, which needs a language model.
    """

    def __init__(self, get_memory: GetMemory, *, can_ask: bool) -> None:
        tools = MemoryTools(get_memory)
        offered: list[tuple[Callable[..., Any], str, ToolAnnotations]] = [
            (tools.search_memory, "Search memory", _READ_ONLY),
            *([(tools.ask_memory, "Ask memory", _READ_ONLY)] if can_ask else []),
            (tools.get_context, "Get context", _READ_ONLY),
            (tools.lookup_entity, "Look up names", _READ_ONLY),
            (tools.memory_history, "Read the history of a memory", _READ_ONLY),
            (tools.save_memory, "Remember", _ADDITIVE),
            (tools.update_memory, "Correct a memory", _ADDITIVE),
            (tools.delete_memory, "End a memory", _DESTRUCTIVE),
        ]
        made = [MemoryTool.make(function, title, hints) for function, title, hints in offered]
        by_name = {tool.name: tool for tool in made}
        super().__init__(
            SERVER_NAME,
            title=SERVER_TITLE,
            version=graphmem.__version__,
            instructions=INSTRUCTIONS,
            subscriptions=False,
            log_level="WARNING",
            tools=[*made, *(by_name[name].model_copy(update={"name": alias}) for alias, name in ALIASES.items())],
        )

    async def list_tools(self) -> list[ListedTool]:
        """Return the tools, each under one name."""
        return [tool for tool in await super().list_tools() if tool.name not in ALIASES]


class MemoryTool(Tool):
    """A tool that accepts models' ways of writing absent arguments, and reports invalid ones."""

    @classmethod
    def make(cls, function: Callable[..., Any], title: str, hints: ToolAnnotations) -> MemoryTool:
        """Return the tool of a function, described by its docstring."""
        description = inspect.getdoc(function)
        tool = cls.from_function(
            function, title=title, description=description, annotations=hints, structured_output=False
        )
        accepted = tool.fn_metadata.arg_model
        arguments = create_model(accepted.__name__, __base__=accepted)
        arguments.model_config["extra"] = "forbid"
        arguments.model_rebuild(force=True)
        metadata = tool.fn_metadata.model_copy(update={"arg_model": arguments})
        schema = _compact_schema(arguments.model_json_schema(by_alias=True))
        return cls.model_validate({**dict(tool), "fn_metadata": metadata, "parameters": schema})

    async def run(self, arguments: dict[str, Any], context: ToolCall[Any, Any], convert_result: bool = False) -> Any:
        """Run the tool; raise ToolError with one sentence for invalid arguments."""
        given = self._without_absent(arguments)
        try:
            self.fn_metadata.validate_arguments(given)
        except ValidationError as error:
            invalid = invalid_input_from(error, model=self.fn_metadata.arg_model)
            raise ToolError(f"{invalid.title}: {invalid.detail}") from None
        return await super().run(given, context, convert_result)

    def _without_absent(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """Return the arguments without optional ones that are null, empty or a word for absence."""
        required = self.parameters.get("required", ())
        return {
            name: _without_nulls(value)
            for name, value in arguments.items()
            if name in required
            or not (
                (value in (None, "") if name in _TEXTS else _is_absent(value))
                or (value == [] and not self._takes_list(name))
            )
        }

    def _takes_list(self, name: str) -> bool:
        field = self.parameters["properties"].get(name, {})
        return any(option.get("type") == "array" for option in field.get("anyOf", [field]))


def _is_absent(value: object) -> bool:
    return value is None or value == {} or (isinstance(value, str) and _ABSENT.fullmatch(value) is not None)


def _without_nulls(value: Any) -> Any:
    """Return an object or list without its absent members; any other value unchanged."""
    if isinstance(value, list):
        return [item for item in value if not _is_absent(item)]
    return {key: item for key, item in value.items() if not _is_absent(item)} if isinstance(value, dict) else value


def _compact_schema(schema: dict[str, Any]) -> dict[str, Any]:
    """Return an argument schema without details that models do not need: titles, defaults, null for absence."""

    def compact(field: dict[str, Any]) -> dict[str, Any]:
        options = [option for option in field.get("anyOf", ()) if option.get("type") != "null"]
        if len(options) == 1:
            field = {**options[0], **{key: value for key, value in field.items() if key != "anyOf"}}
        return {key: value for key, value in field.items() if key not in ("title", "default", "additionalProperties")}

    properties = {name: compact(field) for name, field in schema.get("properties", {}).items()}
    required = {"required": schema["required"]} if schema.get("required") else {}
    return {"type": "object", "properties": properties, **required, "additionalProperties": False}


@asynccontextmanager
async def open_tool_client(memory: AsyncClient, user_id: str, *, can_ask: bool = False) -> AsyncIterator[Client]:
    """Open an MCP client with the tools of a user: `instructions`, `list_tools()`, `call_tool(name, arguments)`."""
    connection = UserMemory(memory, user_id)
    async with Client(MemoryServer(lambda _: connection, can_ask=can_ask)) as client:
        yield client


async def run_stdio(memory: AsyncClient, user_id: str, *, can_ask: bool = False) -> None:
    """Serve the tools for one user until standard input ends; standard output carries only the protocol.

    Every request is answered, even invalid JSON or an invalid request. `memory` may open its resources at the first
    call: clients list the tools at once and wait only briefly for a server to start.
    """
    connection = UserMemory(memory, user_id)
    server = MemoryServer(lambda _: connection, can_ask=can_ask)
    lowlevel = server._lowlevel_server
    send, receive = anyio.create_memory_object_stream[SessionMessage | Exception](0)
    async with stdio_server() as (read_stream, write_stream), anyio.create_task_group() as tasks:

        async def relay() -> None:
            async with send:
                async for message in read_stream:
                    if isinstance(message, Exception):
                        for refusal in _refuse(message):
                            await write_stream.send(SessionMessage(refusal))
                    else:
                        await send.send(message)

        tasks.start_soon(relay)
        await lowlevel.run(receive, write_stream, lowlevel.create_initialization_options())


def _refuse(error: Exception) -> list[JSONRPCError]:
    """Return the answers to an invalid line, with the ids of its requests as far as they are readable."""
    problems = error.errors() if isinstance(error, ValidationError) else []
    if not problems:
        return [_refusal(None, PARSE_ERROR, "is not JSON in UTF-8: it cannot be read")]
    first = problems[0]
    if first["type"] == "json_invalid":
        found = _REQUEST_ID.search(first["input"])
        reason = first["ctx"]["error"]
        return [_refusal(json.loads(found[1]) if found else None, PARSE_ERROR, f"is not JSON in UTF-8: {reason}")]
    if first["type"] == "model_type" and isinstance(first["input"], list):  # the whole line is a list
        requests = [one for one in first["input"] if isinstance(one, dict) and "id" in one] or [{}]
        reason = "is a batch: send one request per line"
        return [_refusal(one.get("id"), INVALID_REQUEST, reason) for one in requests]
    given = next((problem["input"] for problem in problems if isinstance(problem["input"], dict)), {})
    return [_refusal(given.get("id"), INVALID_REQUEST, "is no JSON-RPC request")]


def _refusal(request_id: object, code: int, problem: str) -> JSONRPCError:
    known = request_id if isinstance(request_id, int | str) and not isinstance(request_id, bool) else None
    return JSONRPCError(jsonrpc="2.0", id=known, error=ErrorData(code=code, message=f"The message {problem}."))
