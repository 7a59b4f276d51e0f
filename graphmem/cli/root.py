"""The command `graphmem` without its subcommands: its help and the flags that may precede a command."""

from __future__ import annotations

from typing import Annotated

import typer

from graphmem.cli.command import DebugFlag, Flags, JsonFlag, NoServerFlag
from graphmem.cli.failures import GroupWithJsonErrors


def _print_version(is_given: bool) -> None:
    if is_given:
        import graphmem

        typer.echo(f"graphmem {graphmem.__version__}")
        raise typer.Exit


def make_root() -> typer.Typer:
    """Return the command line without any command."""
    root = typer.Typer(
        name="graphmem",
        cls=GroupWithJsonErrors,
        help="An agent's memory as a graph over time. Start with `graphmem quickstart`.",
        no_args_is_help=True,
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    root.callback()(_store_flags)
    return root


def _store_flags(
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
