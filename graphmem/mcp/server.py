"""The MCP server: the tools with instructions on their use, over standard input and output, or in the same process."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from typing import TYPE_CHECKING, Any, Protocol

from mcp import Client
from mcp.server.context import CallNext, HandlerResult, ServerRequestContext
from mcp.server.mcpserver import Context as ToolCall
from mcp.server.mcpserver import MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from mcp.server.mcpserver.tools import Tool
from mcp.types import ToolAnnotations
from pydantic import ValidationError, create_model

import graphmem
from graphmem.app.bootstrap import Services
from graphmem.app.warm_up import REQUEST
from graphmem.mcp.arguments import Connection
from graphmem.mcp.tools import ConversationTools, MemoryTools
from graphmem.runtime.errors import GraphmemError
from graphmem.runtime.progress import StartProgress
from graphmem.runtime.settings import Settings
from graphmem.runtime.times import MIN_TIME
from graphmem.runtime.validation import invalid_input_from, validate_input
from graphmem.tenants.access import ApiKey, ApiKeyIn, KeyRole
from graphmem.tenants.owners import DEFAULT_TENANT, Owner, make_owner

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


ToolOfServer = tuple[Callable[..., Any], str, ToolAnnotations]
"""A function, the title of its tool, and what clients may assume of it."""


def make_server(
    get_services: Callable[[], Awaitable[Services]],
    get_connection: Callable[[ToolCall], Connection],
    lifespan: Callable[[MCPServer[Any]], AbstractAsyncContextManager[Any]] | None = None,
    *,
    can_ask: bool = False,
    always_offers_spaces: bool = False,
) -> MCPServer[Any]:
    """Return a server of the tools; `get_connection` names the user of each tool call.

    With `can_ask` it has the tool that answers questions, which calls the language model of the settings. The tools are
    listed without the arguments about spaces to a user who has none, since these cost tokens at each request, unless
    the server `always_offers_spaces`: it does not ask the services when tools are listed.
    """
    tools = MemoryTools(get_services, get_connection)
    conversation = ConversationTools(get_services, get_connection)
    offered: list[ToolOfServer] = [
        (tools.search_memory, "Search memory", _READ_ONLY),
        *([(conversation.ask_memory, "Ask memory", _READ_ONLY)] if can_ask else []),
        (conversation.get_context, "Get context", _READ_ONLY),
        (tools.lookup_entity, "Look up names", _READ_ONLY),
        (tools.memory_history, "Read the history of a memory", _READ_ONLY),
        (conversation.enhance_reply, "Enhance a reply", _READ_ONLY),
        (conversation.summarize_session, "Sum up a conversation", _ADDITIVE),
        (conversation.rate_answer, "Rate an answer", _ADDITIVE),
        (tools.save_memory, "Remember", _ADDITIVE),
        (tools.upsert_memories, "Save what was learned", _ADDITIVE),
        (tools.update_memory, "Correct a memory", _ADDITIVE),
        (tools.delete_memory, "End a memory", _DESTRUCTIVE),
    ]
    return MCPServer(
        SERVER_NAME,
        title=SERVER_TITLE,
        version=graphmem.__version__,
        instructions=INSTRUCTIONS,
        lifespan=lifespan,
        subscriptions=False,
        middleware=[] if always_offers_spaces else [SpaceArguments(get_services, get_connection)],
        tools=[MemoryTool.strict(function, title, hints) for function, title, hints in offered],
    )


SPACE_ARGUMENTS = frozenset({"space", "spaces"})
"""Arguments of tools that mean something only to members of spaces."""


class SpaceArguments:
    """Leaves the arguments about spaces out of the list of tools for a user who has none."""

    def __init__(
        self, get_services: Callable[[], Awaitable[Services]], get_connection: Callable[[ToolCall], Connection]
    ) -> None:
        self._get_services = get_services
        self._get_connection = get_connection

    async def __call__(self, ctx: ServerRequestContext[Any, Any], call_next: CallNext) -> HandlerResult:
        """Answer a request as its handler does, a list of tools in the form for its user."""
        result = await call_next(ctx)
        if ctx.method != "tools/list" or not isinstance(result, dict):
            return result
        services, connection = await self._get_services(), self._get_connection(ToolCall(request_context=ctx))
        scope = await services.rights.read_scope(connection.owner, connection.key)
        if scope.spaces:
            return result
        return {**result, "tools": [_without_space_arguments(tool) for tool in result["tools"]]}


def _without_space_arguments(tool: dict[str, Any]) -> dict[str, Any]:
    """Return a listed tool, in the form in which it is sent, without the arguments about spaces."""
    schema = tool["inputSchema"]
    kept = {name: argument for name, argument in schema["properties"].items() if name not in SPACE_ARGUMENTS}
    return {**tool, "inputSchema": {**schema, "properties": kept}}


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


class InProcessMemory(Protocol):
    """The memory of a tenant in this process, as `GraphMemory` is."""

    services: Services
    tenant: str


@asynccontextmanager
async def open_tool_client(memory: InProcessMemory, user_id: str) -> AsyncIterator[Client]:
    """Open an MCP client with the tools of a user: `instructions`, `list_tools()`, `call_tool(name, arguments)`."""
    connection = Connection(make_owner(memory.tenant, user_id), actor=SERVER_NAME)

    async def get_services() -> Services:
        return memory.services

    can_ask = memory.services.answers.has_model
    async with Client(make_server(get_services, lambda _: connection, can_ask=can_ask)) as client:
        yield client


async def run_stdio(settings: Settings, user_id: str, tenant: str = DEFAULT_TENANT, source_kind: str = "user") -> None:
    """Serve the tools for one user until standard input ends; only the protocol is written to standard output.

    What they save is the word of `source_kind`, as with a key that is bound to it. The services are opened in the
    background, because clients wait only briefly for a server to start. When opening fails, tool calls report the error
    and the next call tries again. Raises InvalidInput for an unusable user id and for an unknown source.
    """
    connection = _make_local_connection(make_owner(tenant, user_id), source_kind)
    lazy_services = LazyServices(settings, connection.owner)
    # Clients list the tools at once and wait only briefly: not until the services are open.
    server = make_server(
        lazy_services.get,
        lambda _: connection,
        lazy_services.lifespan,
        can_ask=settings.has_model,
        always_offers_spaces=True,
    )
    await server.run_stdio_async()


def _make_local_connection(owner: Owner, source_kind: str) -> Connection:
    """Return the connection of this machine to a user: with a key of its own where it does not speak for the user."""
    given = validate_input(ApiKeyIn, {"name": SERVER_NAME, "role": KeyRole.AGENT, "source_kind": source_kind})
    if given.source_kind == "user":
        return Connection(owner, actor=SERVER_NAME)
    key = ApiKey(**given.model_dump(), id=SERVER_NAME, created_at=MIN_TIME, tenant=owner.tenant)
    return Connection(owner, actor=SERVER_NAME, key=key)


class LazyServices:
    """Services that are opened and warmed up for one user in the background."""

    def __init__(self, settings: Settings, owner: Owner) -> None:
        self._settings = settings
        self._owner = owner
        self._closing = asyncio.Event()
        self._opening: _Opening | None = None

    @asynccontextmanager
    async def lifespan(self, _: MCPServer[Any]) -> AsyncIterator[None]:
        """Open the services while a server runs, and close them after it."""
        self._opening = self._start()
        try:
            yield
        finally:
            self._closing.set()
            await self._opening.stop()

    async def get(self) -> Services:
        """Return the services once they are open; raise the error that prevented it."""
        if self._opening is None or self._opening.has_failed:
            self._opening = self._start()
        return await self._opening.wait()

    def _start(self) -> _Opening:
        return _Opening(self._settings, self._owner, self._closing)


class _Opening:
    """One attempt to open the services; one task opens them and, when `closing` is set, closes them."""

    def __init__(self, settings: Settings, owner: Owner, closing: asyncio.Event) -> None:
        self._settings = settings
        self._owner = owner
        self._closing = closing
        self._services: asyncio.Future[Services] = asyncio.get_running_loop().create_future()
        self._task = asyncio.create_task(self._hold_open())

    @property
    def has_failed(self) -> bool:
        """Whether the task has ended, which it does before `closing` only on an error."""
        return self._task.done()

    async def wait(self) -> Services:
        """Return the services once they are open; raise the error that prevented it."""
        return await asyncio.shield(self._services)

    async def stop(self) -> None:
        """Wait until the services are closed, or cancel opening them."""
        if not self._services.done():
            self._task.cancel()
        with suppress(asyncio.CancelledError):
            await self._task

    async def _hold_open(self) -> None:
        try:
            async with Services.open(
                self._settings, worker=False, progress=StartProgress.on_standard_error()
            ) as services:
                self._services.set_result(services)
                with suppress(GraphmemError):
                    await services.contexts.build(self._owner, REQUEST, reinforce=False)
                await self._closing.wait()
        except Exception as error:
            if self._services.done():
                raise
            self._services.set_exception(error)
            # Retrieve the error, so that asyncio does not log it when no tool is called.
            self._services.exception()
