"""`graphmem forget`: erasing a user."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from graphmem.cli.command import Output, Tenant, User, command, exit_with_error
from graphmem.cli.startup import open_operations
from graphmem.runtime.errors import InvalidInput

app = typer.Typer()


@command(app, "forget")
async def forget(
    output: Output,
    user: User,
    tenant: Tenant = "default",
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask for confirmation.")] = False,
) -> None:
    """Erase all data of a user everywhere, then count what is left; this cannot be undone."""
    from graphmem.cli import render_admin

    if not yes:
        if not sys.stdin.isatty():
            raise InvalidInput("Erasing a user cannot be undone: confirm it with --yes.")
        typer.confirm(f"Erase all data of user {user!r} of tenant {tenant!r}?", abort=True, err=True)
    async with open_operations(output, tenant) as operations:
        result = await operations.forget(user)
    output.show(result, render_admin.erasure_result(result))
    if result.residue:
        exit_with_error(f"{result.residue} items of the user are left: run the same command again.")
