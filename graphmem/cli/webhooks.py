"""Webhooks: add, list, remove."""

from __future__ import annotations

from typing import Annotated

import typer

from graphmem.cli.command import Output, command
from graphmem.cli.startup import open_operations

app = typer.Typer(no_args_is_help=True)

Tenant = Annotated[str, typer.Option("--tenant", help="The tenant whose changes are delivered.")]


@command(app, "add")
async def add(
    output: Output,
    url: Annotated[str, typer.Argument(help="Where to deliver changes, such as https://example.com/hooks.")],
    user: Annotated[list[str] | None, typer.Option("--user", "-u", help="Only this user; repeat for several.")] = None,
    kind: Annotated[
        list[str] | None,
        typer.Option(help="Only inserted, superseded, deleted, merged or restored; repeat for several."),
    ] = None,
    since: Annotated[str | None, typer.Option(help="Also changes from this time on; absent: from now on.")] = None,
    tenant: Tenant = "default",
) -> None:
    """Add a webhook, which receives changes as signed requests; its secret is shown once."""
    from rich.text import Text

    from graphmem.cli import render_admin

    async with open_operations(output, tenant) as operations:
        webhook = await operations.create_webhook(url, users=user or None, kinds=kind or None, since=since)
    output.show(
        webhook,
        render_admin.webhooks([webhook]),
        Text(f"Secret: {webhook.secret}\nIt is not shown again.", no_wrap=True),
    )


@command(app, "list")
async def list_webhooks(output: Output, tenant: Tenant = "default") -> None:
    """List a tenant's webhooks and how their deliveries go."""
    from graphmem.cli import render_admin

    async with open_operations(output, tenant) as operations:
        listed = await operations.webhooks()
    output.show({"items": listed}, render_admin.webhooks(listed))


@command(app, "remove")
async def remove(
    output: Output, webhook_id: Annotated[str, typer.Argument(help="The webhook's id.")], tenant: Tenant = "default"
) -> None:
    """Remove a webhook; what it has not received yet is not delivered."""
    from graphmem.runtime.short_ids import complete_id

    async with open_operations(output, tenant) as operations:
        listed = [webhook.id for webhook in await operations.webhooks()]
        webhook_id = complete_id(webhook_id, [known for known in listed if known.startswith(webhook_id)])
        await operations.delete_webhook(webhook_id)
    output.show({}, f"The webhook {webhook_id} is removed.")
