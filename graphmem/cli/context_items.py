"""Context items of a user: list, add, delete."""

from __future__ import annotations

from typing import Annotated

import typer

from graphmem.cli.command import Output, Tenant, User, command
from graphmem.cli.startup import open_services

app = typer.Typer(no_args_is_help=True)


@command(app, "list")
async def list_items(
    output: Output,
    user: User,
    session: Annotated[str | None, typer.Option(help="Only those of this session.")] = None,
    tenant: Tenant = "default",
) -> None:
    """List what recent messages mention and what was stated, as long as it has not expired."""
    from graphmem.cli import render_learned
    from graphmem.domain.identity import make_owner

    owner = make_owner(tenant, user)
    async with open_services(output) as services:
        items = await services.contexts.list_items(owner, session)
    output.show({"items": items}, render_learned.context_items(items))


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
    from graphmem.cli import render_learned
    from graphmem.domain.context_models import ContextItemIn
    from graphmem.domain.identity import make_owner
    from graphmem.domain.validation import validate_input

    owner = make_owner(tenant, user)
    given = {"type": type, "key": key, "value": value, "relevance": relevance, "ttl": ttl, "session_id": session}
    item_in = validate_input(ContextItemIn, given)
    async with open_services(output) as services:
        item = await services.contexts.add_item(owner, item_in)
    output.show(item, render_learned.context_items([item]))


@command(app, "delete")
async def delete(
    output: Output,
    item_id: Annotated[str, typer.Argument(help="The item's id, or its beginning.")],
    user: User,
    tenant: Tenant = "default",
) -> None:
    """Delete a context item before it expires."""
    from graphmem.domain.identity import make_owner
    from graphmem.domain.short_ids import complete_id

    owner = make_owner(tenant, user)
    async with open_services(output) as services:
        known = [item.id for item in await services.contexts.list_items(owner)]
        item_id = complete_id(item_id, [other for other in known if other.startswith(item_id)])
        await services.contexts.delete_item(owner, item_id)
    output.show({}, f"The context item {item_id} is deleted.")
