"""The users of a tenant."""

from __future__ import annotations

from typing import Annotated

import typer

from graphmem.cli.command import Cursor, Output, Tenant, command
from graphmem.cli.startup import open_operations

app = typer.Typer()


@command(app, "users")
async def users(
    output: Output,
    query: Annotated[str | None, typer.Argument(help="Part of a user id.")] = None,
    tenant: Tenant = "default",
    limit: Annotated[int, typer.Option(min=1, max=200, help="How many.")] = 50,
    cursor: Cursor = None,
) -> None:
    """List the users of a tenant, with the numbers of their memories and sessions."""
    from graphmem.cli import render

    async with open_operations(output, tenant) as operations:
        page = await operations.users(query=query, limit=limit, cursor=cursor)
    output.show(page, render.users(page.items), *render.next_page(page))
