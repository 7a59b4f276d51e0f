"""The module of each command, so that a command does not wait for all others to be imported and built."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from typing import Annotated

import typer

from graphmem.cli.command import DebugFlag, Flags, GroupWithJsonErrors, JsonFlag, NoServerFlag

FAMILIES = {
    "quickstart": ("quickstart",),
    "init": ("init",),
    "memories": (
        *("add", "search", "entity", "history", "sessions", "memories", "get", "entities", "messages"),
        *("update", "delete", "resolve", "revert", "diff"),
    ),
    "contexts": ("ask", "context", "enhance", "profile", "intents", "preferences", "patterns", "contradictions"),
    "tenants": ("users",),
    "ingest": ("ingest", "close", "summarize", "archives"),
    "serve": ("serve", "open", "mcp", "worker"),
    "admin": ("consolidate", "runs", "rollback", "maintain", "reembed"),
    "user_data": ("export", "import", "backup", "restore", "forget"),
    "evaluate": ("evaluate",),
    "doctor": ("doctor",),
}
"""The modules of top-level commands in the order of the help, and their commands."""

GROUPS = {
    "db": ("db", "app", "The embedded Neo4j."),
    "spaces": ("tenants", "spaces_app", "Memories that users and keys of a tenant share."),
    "quarantine": ("tenants", "quarantine_app", "Statements that must not become memories without review."),
    "keys": ("tenants", "keys_app", "API keys."),
    "hooks": ("hooks", "app", "Memory for coding agents through their hooks."),
    "jobs": ("admin", "jobs_app", "Background jobs."),
    "webhooks": ("tenants", "webhooks_app", "Addresses that receive the changes of a tenant's users."),
    "types": ("tenants", "types_app", "Types of memories and entities that a tenant declares."),
    "persona": ("contexts", "persona_app", "Search weights of a user by memory type or tag."),
    "contexts": ("contexts", "items_app", "Topics, goals and mentions that contexts use for a time."),
    "instructions": ("tenants", "instructions_app", "What a tenant wants remembered."),
    "placement": ("admin", "placement_app", "The graphs that tenants are stored in."),
    "trust": ("tenants", "trust_app", "Which sources a tenant trusts more than others."),
}
"""The command groups by name: module, attribute, and help."""

FAMILY_OF = {command: family for family, commands in FAMILIES.items() for command in commands}


def add_all(root: typer.Typer) -> None:
    """Add every command."""
    for family in FAMILIES:
        root.add_typer(_load(family))
    for name in GROUPS:
        _add_group(root, name)


def add_named(root: typer.Typer, arguments: Sequence[str]) -> None:
    """Add the family or group of the command in the arguments; without one, add every command."""
    first = next((argument for argument in arguments if argument not in ("--json", "--debug", "--no-server")), "")
    if first in FAMILY_OF:
        root.add_typer(_load(FAMILY_OF[first]))
    elif first in GROUPS:
        _add_group(root, first)
    else:
        add_all(root)


def _add_group(root: typer.Typer, name: str) -> None:
    module, attribute, text = GROUPS[name]
    root.add_typer(_load(module, attribute), name=name, help=text)


def _load(module: str, attribute: str = "app") -> typer.Typer:
    commands: typer.Typer = getattr(import_module(f"graphmem.cli.{module}"), attribute)
    return commands


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
