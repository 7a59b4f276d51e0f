"""The command `graphmem` and its families; what a command needs is imported when it runs."""

from __future__ import annotations

from typing import Annotated

import typer

from graphmem.cli import admin, db, doctor, ingest, keys, memories, quickstart, serve, transfer
from graphmem.cli.command import DebugFlag, Flags, JsonFlag

app = typer.Typer(
    name="graphmem",
    help="The memory of an agent, kept as a graph in time. Start with `graphmem quickstart`.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _print_version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import version

        typer.echo(f"graphmem {version('graphmem')}")
        raise typer.Exit


@app.callback()
def common(
    context: typer.Context,
    json: JsonFlag = False,
    debug: DebugFlag = False,
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Keep the options given before the command."""
    context.obj = Flags(json, debug)


for family in (quickstart, memories, ingest, serve, admin, transfer, doctor):
    app.add_typer(family.app)
app.add_typer(db.app, name="db", help="The embedded Neo4j.")
app.add_typer(keys.app, name="keys", help="API keys.")
