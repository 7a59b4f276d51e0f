"""Context items of a user: list, add, delete."""

from __future__ import annotations

from typing import Annotated

import typer

from graphmem.cli.command import Output, Tenant, User, command
from graphmem.cli.startup import open_operations

app = typer.Typer(no_args_is_help=True)


@command(app, "list")
async def list_items(
    output: Output,
    user: User,
    session: Annotated[str | None, typer.Option(help="Only those of this session.")] = None,
    tenant: Tenant = "default",
) -> None:
    """List what recent messages mention and what was stated, as long as it has not expired."""
    from graphmem.cli import render

    async with open_operations(output, tenant) as operations:
        items = await operations.contexts(user, session_id=session)
    output.show({"items": items}, render.context_items(items))


@command(app, "add")
async def add(
    output: Output,
    type: Annotated[str, typer.Argument(help="topic, preference, goal, or a type of your own.")],
    key: Annotated[str, typer.Argument(help="What it is about; it replaces one of the same type and key.")],
    value: Annotated[str, typer.Argument(help="What contexts are to say.")],
    user: User,
    relevance: Annotated[float, typer.Option(help="0 to 1.")] = 0.8,
    ttl: Annotated[int, typer.Option(help="Seconds until it expires.")] = 7200,
    session: Annotated[str | None, typer.Option(help="Only for this session; absent: for all of the user.")] = None,
    tenant: Tenant = "default",
) -> None:
    """State a topic, preference or goal that contexts use for a time."""
    from graphmem.cli import render

    async with open_operations(output, tenant) as operations:
        item = await operations.add_context(
            user, type=type, key=key, value=value, relevance=relevance, ttl=ttl, session_id=session
        )
    output.show(item, render.context_items([item]))


@command(app, "delete")
async def delete(
    output: Output,
    item_id: Annotated[str, typer.Argument(help="The item's id, or its beginning.")],
    user: User,
    tenant: Tenant = "default",
) -> None:
    """Delete a context item before it expires."""
    from graphmem.runtime.short_ids import complete_id

    async with open_operations(output, tenant) as operations:
        known = [item.id for item in await operations.contexts(user)]
        item_id = complete_id(item_id, [other for other in known if other.startswith(item_id)])
        await operations.delete_context(user, item_id)
    output.show({}, f"The context item {item_id} is deleted.")
