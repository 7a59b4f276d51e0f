"""The embedded Neo4j: start, stop, status, migrate, browser."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from graphmem.cli.command import Output, command, read_settings
from graphmem.cli.startup import download_progress
from graphmem.errors import ConfigurationError

if TYPE_CHECKING:
    from graphmem.embedded import ServerInfo
    from graphmem.settings import Settings

app = typer.Typer(no_args_is_help=True)


@command(app, "start")
async def start(output: Output) -> None:
    """Start the embedded Neo4j and leave it running until `graphmem db stop`."""
    info = await _start(output, _embedded_settings())
    output.show(describe_server(info), f"Neo4j runs at {info.uri}; stop it with `graphmem db stop`.")


@command(app, "stop")
async def stop_server(output: Output) -> None:
    """Stop the embedded Neo4j, whoever uses it."""
    from graphmem.embedded import stop

    stopped = await stop(_embedded_settings().data_dir)
    output.show({"stopped": stopped}, "Neo4j is stopped." if stopped else "Neo4j did not run.")


@command(app, "status")
async def status(output: Output) -> None:
    """Tell whether Neo4j runs and how to reach it."""
    from graphmem import embedded
    from graphmem.cli import render

    settings = read_settings()
    if settings.neo4j_uri:
        await _check_connection(settings)
        output.show({"running": True, "uri": settings.neo4j_uri}, f"Neo4j answers at {settings.neo4j_uri}.")
        return
    info = await embedded.status(settings.data_dir)
    if info is None:
        output.show({"running": False}, f"No Neo4j runs in {settings.data_dir}: start it with `graphmem db start`.")
        return
    output.show(describe_server(info), render.name_value_pairs(describe_server(info)))


@command(app, "migrate")
async def migrate(output: Output) -> None:
    """Bring the database to the schema of this version."""
    from graphmem.components import open_graph
    from graphmem.embedding import create_embedder
    from graphmem.store import migrations

    settings = read_settings()
    with download_progress(output) as progress:
        embedder = create_embedder(settings, progress)
        async with open_graph(settings, progress) as graph:
            if not embedder.dimension:
                await embedder.open()
            try:
                done = await migrations.migrate(graph, embedder.model, embedder.dimension)
            finally:
                await embedder.aclose()
    names = ", ".join(f"V{version:04}" for version in done)
    output.show({"migrated": done}, f"Migrated: {names}." if done else "The schema is up to date.")


@command(app, "browser")
async def browser(
    output: Output, open: Annotated[bool, typer.Option(help="Open it in the web browser.")] = True
) -> None:
    """Open Neo4j Browser on the embedded database, and tell how to log in."""
    from graphmem.cli import render

    info = await _start(output, _embedded_settings())
    if open and not output.flags.json:
        typer.launch(info.browser_url)
    output.show(describe_server(info), render.browser_access(info))


async def _start(output: Output, settings: Settings) -> ServerInfo:
    from graphmem.embedded import EmbeddedNeo4j

    with download_progress(output) as progress:
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


def _embedded_settings() -> Settings:
    settings = read_settings()
    if settings.neo4j_uri:
        raise ConfigurationError(
            f"GRAPHMEM_NEO4J_URI names the Neo4j at {settings.neo4j_uri}, so there is no embedded one: "
            "unset it, or use that server's own tools."
        )
    return settings


async def _check_connection(settings: Settings) -> None:
    from graphmem.components import open_graph

    async with open_graph(settings):
        pass


def describe_server(info: ServerInfo) -> dict[str, Any]:
    """Return what may be told about a running server: everything but its password."""
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
