"""What changed in a user's memory: diff."""

from __future__ import annotations

from typing import Annotated

import typer

from graphmem.cli.command import Cursor, Output, Tenant, User, command
from graphmem.cli.startup import open_operations

app = typer.Typer()


@command(app, "diff")
async def diff(
    output: Output,
    user: User,
    tenant: Tenant = "default",
    since: Annotated[str | None, typer.Option(help="From this time on, such as 2025-06-01T12:00:00Z.")] = None,
    until: Annotated[str | None, typer.Option(help="Up to before this time; absent: up to now.")] = None,
    limit: Annotated[int, typer.Option(min=1, max=200, help="How many.")] = 50,
    cursor: Cursor = None,
) -> None:
    """Show what graphmem learned, corrected, merged, deleted and restored between two times, oldest first."""
    from graphmem.cli import render

    async with open_operations(output, tenant) as operations:
        page = await operations.changes(user, since=since, until=until, limit=limit, cursor=cursor)
    output.show(page, render.memory_changes(page.items), *render.next_page(page))
