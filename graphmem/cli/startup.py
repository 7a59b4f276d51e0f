"""What a command works with: the operations on a running server, or the services of its own process."""

from __future__ import annotations

import inspect
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import TYPE_CHECKING, Any, cast
from urllib.parse import urlsplit

from graphmem.cli.command import Output, named_as_options, read_settings
from graphmem.cli.progress import start_progress

if TYPE_CHECKING:
    from graphmem.app.bootstrap import Services
    from graphmem.cli.local_server import LocalServer
    from graphmem.client import AsyncClient
    from graphmem.graph_memory import GraphMemory
    from graphmem.runtime.settings import Settings

    Operations = AsyncClient | GraphMemory
    from graphmem.neo4j.embedded.home import ServerInfo


@asynccontextmanager
async def open_services(
    output: Output, *, worker: bool = False, settings: Settings | None = None, demo: bool = False
) -> AsyncIterator[Services]:
    """Open the services as configured; with `worker` this process also runs jobs, for a `demo` no jobs of others."""
    from graphmem.app.bootstrap import Services

    with start_progress(output) as progress:
        async with Services.open(settings or read_settings(), worker=worker, progress=progress, demo=demo) as services:
            yield services


@asynccontextmanager
async def open_operations(output: Output, tenant: str, *, worker: bool = False) -> AsyncIterator[Operations]:
    """Yield the operations of a tenant: of the server that runs on the data folder, else of this process.

    With `worker` this process also runs jobs, unless a server is called: there its own workers do.
    A command is not to import models before: those that it does not use are not built when a server is called.
    """
    from graphmem.cli.local_server import find_local_server

    settings = read_settings()
    use_server = settings.use_server and not output.flags.no_server
    server = find_local_server(settings) if use_server else None
    with named_as_options(output.parameters):
        if server is None:
            async with LazyOperations(output, tenant, settings, worker=worker) as operations:
                yield cast("GraphMemory", operations)
        else:
            async with _make_client(server, tenant) as client:
                yield client


def _make_client(server: LocalServer, tenant: str) -> AsyncClient:
    from pydantic import BaseModel, ConfigDict

    BaseModel.model_config = ConfigDict(defer_build=True)  # halves the time that importing the models takes
    from graphmem.client import AsyncClient
    from graphmem.tenants.access import make_local_token

    return AsyncClient(make_local_token(server.secret, tenant), server.url, attempts=2, trust_env=False)


class LazyOperations:
    """The operations in this process; the services are opened at the first call, after its arguments are validated."""

    def __init__(self, output: Output, tenant: str, settings: Settings, *, worker: bool = False) -> None:
        self._output = output
        self._tenant = tenant
        self._settings = settings
        self._worker = worker
        self._stack = AsyncExitStack()
        self._memory: GraphMemory | None = None

    async def __aenter__(self) -> LazyOperations:
        return self

    async def __aexit__(self, *error: Any) -> None:
        await self._stack.__aexit__(*error)

    def __getattr__(self, name: str) -> Any:
        async def call(*args: Any, **kwargs: Any) -> Any:
            self._validate(name, args, kwargs)
            return await getattr(await self._open(), name)(*args, **kwargs)

        return call

    async def memory(self, user_id: str, memory_id: str) -> Any:
        """Read a memory by its id or the beginning of it."""
        from graphmem.tenants.owners import make_owner

        owner = make_owner(self._tenant, user_id)
        memory = await self._open()
        return await memory.memory(user_id, await memory.services.memories.complete_id(owner, memory_id))

    async def run(self, run_id: str) -> Any:
        """Read a run by its id or the beginning of it."""
        memory = await self._open()
        return await memory.run(await memory.services.consolidations.complete_id(self._tenant, run_id))

    def _validate(self, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """Raise InvalidInput for arguments that cannot be used, before anything is started."""
        from graphmem.client import operations
        from graphmem.tenants.owners import Owner, make_owner

        operation = getattr(operations, name)
        request = operations.accept_user_by_name(operation, args, kwargs)
        user = inspect.signature(operation).parameters.get("user_id")
        if user is not None and user.default is inspect.Parameter.empty:
            make_owner(self._tenant, request.user_id)
        else:
            Owner(self._tenant, "")

    async def _open(self) -> GraphMemory:
        if self._memory is None:
            from graphmem.graph_memory import GraphMemory
            from graphmem.tenants.access import COMMAND_LINE

            services = await self._stack.enter_async_context(
                open_services(self._output, worker=self._worker, settings=self._settings)
            )
            self._memory = GraphMemory(services, self._tenant, actor=COMMAND_LINE)
        return self._memory


async def complete_memory_id(operations: Operations, user: str, given: str) -> str:
    """Return the id of a memory that begins with the text given."""
    from graphmem.memories.listing import FULL_ID_CHARS

    return given if len(given) >= FULL_ID_CHARS else (await operations.memory(user, given)).id


async def complete_run_id(operations: Operations, given: str) -> str:
    """Return the id of a run that begins with the text given."""
    from graphmem.memories.listing import FULL_ID_CHARS

    return given if len(given) >= FULL_ID_CHARS else (await operations.run(given)).id


SEES_ALL_TENANTS = "This login reads and writes the data of every tenant: give it to administrators only."
"""A warning: the Community edition of Neo4j has one role."""


async def start_detached(output: Output, settings: Settings) -> ServerInfo:
    """Start or join the embedded Neo4j and leave it running until `graphmem db stop`."""
    from graphmem.neo4j.embedded.server import EmbeddedNeo4j

    with start_progress(output) as progress:
        server = await EmbeddedNeo4j.start_or_join(
            settings.data_dir,
            settings.cache_dir,
            bolt_port=settings.bolt_port,
            http_port=settings.http_port,
            mirror=settings.jar_mirror,
            progress=progress,
            detached=True,
        )
    await server.stop()
    return server.info


def server_details(info: ServerInfo) -> dict[str, Any]:
    """Return the details of a running server without its password."""
    return {
        "running": True,
        "uri": info.uri,
        "user": info.user,
        "browser_url": info.browser_url,
        "password_file": str(info.password_file),
        "home": str(info.home),
        "pid": info.pid,
        "detached": info.detached,
    }


def browser_login(
    settings: Settings, info: ServerInfo | None, text: str, address: str | None = None
) -> dict[str, object]:
    """Return how to open Neo4j Browser with `text` in its editor; without `info`, that of the configured Neo4j."""
    from graphmem.neo4j.embedded.neo4j_browser import browser_link, setup_commands

    if info is not None:
        link = browser_link(address or info.browser_url, info.uri, info.user, text)
        return {"open": link, "user": info.user, "password in": str(info.password_file)}
    uri = settings.neo4j_uri or ""
    link = browser_link(address or f"http://{urlsplit(uri).hostname}:7474/browser/", uri, settings.neo4j_user, text)
    return {"open": link, "user": settings.neo4j_user, "paste first": f":{setup_commands()[0]}"}
