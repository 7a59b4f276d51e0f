"""What a command works with: the operations on a running server, or the services of its own process."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from graphmem.cli.command import Output, named_as_options, read_settings
from graphmem.cli.progress import start_progress
from graphmem.runtime.short_ids import FULL_ID_CHARS

if TYPE_CHECKING:
    from graphmem.app.bootstrap import Services
    from graphmem.cli.local_server import LocalServer
    from graphmem.client import AsyncClient
    from graphmem.neo4j.embedded.home import ServerInfo
    from graphmem.runtime.settings import Settings


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
async def open_operations(output: Output, tenant: str, *, worker: bool = False) -> AsyncIterator[AsyncClient]:
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
            from graphmem.cli.lazy_memory import LazyMemory

            async with LazyMemory(output, tenant, settings, worker=worker) as memory:
                yield memory
        else:
            async with _make_client(server, tenant) as client:
                yield client


def _make_client(server: LocalServer, tenant: str) -> AsyncClient:
    from graphmem.client import AsyncClient
    from graphmem.tenants.tokens import make_local_token

    return AsyncClient(make_local_token(server.secret, tenant), server.url, attempts=2, trust_env=False)


async def complete_memory_id(operations: AsyncClient, user: str, given: str) -> str:
    """Return the id of a memory that begins with the text given."""
    return given if len(given) >= FULL_ID_CHARS else (await operations.memory(user, given)).id


async def complete_run_id(operations: AsyncClient, given: str) -> str:
    """Return the id of a run that begins with the text given."""
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
