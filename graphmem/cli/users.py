"""The users of a tenant."""

from __future__ import annotations

from typing import Annotated

import typer

from graphmem.cli.command import Output, Tenant, command
from graphmem.cli.startup import open_services

app = typer.Typer()


@command(app, "users")
async def users(
    output: Output,
    query: Annotated[str | None, typer.Argument(help="Part of a user id.")] = None,
    tenant: Tenant = "default",
    limit: Annotated[int, typer.Option(min=1, max=200, help="How many.")] = 50,
) -> None:
    """List the users of a tenant, with how much is stored of each."""
    from graphmem.cli import render
    from graphmem.domain.requests import UserListQuery

    async with open_services(output) as services:
        page = await services.users.page(tenant, UserListQuery(query=query, limit=limit))
    output.show(page, render.users(page.items))
