"""The command `graphmem` and its subcommands, which import what they need when they run."""

from __future__ import annotations

from typing import Annotated

import typer

from graphmem.cli import (
    admin,
    backup,
    changes,
    context_items,
    contexts,
    corrections,
    db,
    declared_types,
    doctor,
    export,
    forget,
    hooks,
    importing,
    ingest,
    instructions,
    keys,
    learned,
    listing,
    memories,
    personas,
    quickstart,
    reembed,
    serve,
    summaries,
    users,
    webhooks,
)
from graphmem.cli.command import DebugFlag, Flags, JsonFlag, NoServerFlag
from graphmem.cli.failures import GroupWithJsonErrors

app = typer.Typer(
    name="graphmem",
    cls=GroupWithJsonErrors,
    help="An agent's memory as a graph over time. Start with `graphmem quickstart`.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _print_version(is_given: bool) -> None:
    if is_given:
        import graphmem

        typer.echo(f"graphmem {graphmem.__version__}")
        raise typer.Exit


@app.callback()
def common(
    context: typer.Context,
    json: JsonFlag = False,
    debug: DebugFlag = False,
    no_server: NoServerFlag = False,
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Store the flags given before the command."""
    context.obj = Flags(json, debug, no_server)


FAMILIES = (
    quickstart, memories, listing, corrections, changes, contexts, learned, users, ingest, summaries, serve, admin,
    reembed, export, importing, backup, forget, doctor,
)  # fmt: skip
"""The modules whose commands stand at the top level."""

for family in FAMILIES:
    app.add_typer(family.app)
app.add_typer(db.app, name="db", help="The embedded Neo4j.")
app.add_typer(keys.app, name="keys", help="API keys.")
app.add_typer(hooks.app, name="hooks", help="Memory for coding agents, by their hooks.")
app.add_typer(webhooks.app, name="webhooks", help="Addresses that receive the changes of a tenant's users.")
app.add_typer(declared_types.app, name="types", help="Types of memories and entities that a tenant declares.")
app.add_typer(personas.app, name="persona", help="Weights of a user's searches by memory type or tag.")
app.add_typer(context_items.app, name="contexts", help="Topics, goals and mentions that contexts use for a time.")
app.add_typer(instructions.app, name="instructions", help="What a tenant wants remembered, and what not.")
