"""The embedded Neo4j: start, stop, status, migrate, browser."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from graphmem.cli.command import Open, Output, Tenant, Verbatim, command, read_settings
from graphmem.cli.startup import server_details, start_detached, start_progress
from graphmem.neo4j.embedded.home import DEFAULT_QUERY, USERS_QUERY
from graphmem.runtime.errors import ConfigurationError, InvalidInput

if TYPE_CHECKING:
    from graphmem.runtime.settings import Settings

app = typer.Typer(no_args_is_help=True)


@command(app, "start")
async def start(output: Output) -> None:
    """Start the embedded Neo4j and leave it running until `graphmem db stop`."""
    info = await start_detached(output, _embedded_settings())
    output.show(server_details(info), f"Neo4j runs at {info.uri}; stop it with `graphmem db stop`.")


@command(app, "stop")
async def stop_server(output: Output) -> None:
    """Stop the embedded Neo4j, even if it is in use."""
    from graphmem.neo4j.embedded import server

    stopped = await server.stop_server(_embedded_settings().data_dir)
    output.show({"stopped": stopped}, "Neo4j is stopped." if stopped else "Neo4j was not running.")


@command(app, "status")
async def status(output: Output) -> None:
    """Show whether Neo4j runs and how to reach it."""
    from graphmem.app.components import open_graph
    from graphmem.cli.tables import name_value_pairs
    from graphmem.neo4j.embedded.server import find_server, find_server_process

    settings = read_settings()
    if settings.neo4j_uri:
        async with open_graph(settings):
            pass
        output.show({"running": True, "uri": settings.neo4j_uri}, f"Neo4j answers at {settings.neo4j_uri}.")
        return
    info = await find_server(settings.data_dir)
    if info is None and find_server_process(settings.data_dir):
        sentence = f"Neo4j is starting in {settings.data_dir} and does not answer yet: `graphmem doctor` says more."
        output.show({"running": False}, sentence)
        return
    if info is None:
        sentence = f"Neo4j is not running in {settings.data_dir}: start it with `graphmem db start`."
        output.show({"running": False}, sentence)
        return
    output.show(server_details(info), name_value_pairs(server_details(info)))


@command(app, "migrate")
async def migrate(output: Output) -> None:
    """Migrate the database schema to this version."""
    from graphmem.app.components import open_graph
    from graphmem.models.embedder import create_embedder, describe_model
    from graphmem.neo4j import migrations

    settings = read_settings()
    with start_progress(output) as progress:
        embedder = create_embedder(settings, progress.download)
        async with open_graph(settings, progress) as graph:
            if not embedder.dimension:
                await embedder.open()
            try:
                done = await migrations.migrate(graph, describe_model(embedder, settings), progress=progress)
            finally:
                await embedder.aclose()
    names = ", ".join(f"V{version:04}" for version in done)
    output.show({"migrated": done}, f"Migrated: {names}." if done else "The schema is up to date.")


@command(app, "browser")
async def browser(
    output: Output,
    user: Annotated[
        str | None, typer.Option("--user", "-u", help="Show this user's graph; defaults to the list of users.")
    ] = None,
    tenant: Tenant = "default",
    query: Annotated[
        str | None, typer.Option(help="The prepared query to open; an unknown name lists all queries.")
    ] = None,
    address: Annotated[
        str | None, typer.Option(help="Address of Neo4j Browser; defaults to port 7474 of the Neo4j in use.")
    ] = None,
    open: Open = True,
) -> None:
    """Open Neo4j Browser with a prepared query, and print the login."""
    from graphmem.cli.startup import SEES_ALL_TENANTS, browser_login
    from graphmem.neo4j.embedded.home import TENANT_QUERIES, read_query
    from graphmem.tenants.owners import Owner, make_owner

    query = query or (DEFAULT_QUERY if user else USERS_QUERY)
    owner = make_owner(tenant, user) if user else Owner(tenant, "")
    text = read_query(query, owner.group_id)
    if user is None and query not in TENANT_QUERIES:
        raise InvalidInput(f"The query {query} needs a user: add --user; `graphmem users` lists them.")
    settings = read_settings()
    info = None if settings.neo4j_uri else await start_detached(output, settings)
    access = browser_login(settings, info, text, address)
    if open and not output.flags.json:
        typer.launch(str(access["open"]))
    shown = {**(server_details(info) if info else {}), **access}
    lines = [Verbatim(f"{name}: {value}") for name, value in access.items()]
    output.show(shown, *lines, "", Verbatim(text))
    if info and not output.flags.json:
        output.note(f"Password to paste: {info.password}")
    output.note(SEES_ALL_TENANTS)


def _embedded_settings() -> Settings:
    """Return the settings; raise ConfigurationError if they name an external Neo4j."""
    settings = read_settings()
    if settings.neo4j_uri:
        raise ConfigurationError(
            f"GRAPHMEM_NEO4J_URI names the Neo4j at {settings.neo4j_uri}, so there is no embedded one: "
            "unset it, or use that server's own tools."
        )
    return settings
