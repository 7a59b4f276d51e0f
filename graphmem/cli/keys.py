"""API keys: create, list, revoke."""

from __future__ import annotations

from typing import Annotated

import typer

from graphmem.cli.command import Output, command
from graphmem.cli.startup import open_operations

app = typer.Typer(no_args_is_help=True)

Tenant = Annotated[str, typer.Option("--tenant", help="The tenant that the key belongs to.")]


@command(app, "create")
async def create(
    output: Output,
    name: Annotated[str, typer.Argument(help="What the key is for.")],
    role: Annotated[str, typer.Option(help="agent (reads and writes), analyst (reads) or admin.")] = "agent",
    user: Annotated[list[str] | None, typer.Option("--user", "-u", help="Only this user; repeat for several.")] = None,
    tenant: Tenant = "default",
) -> None:
    """Create an API key; it is shown once."""
    from rich.text import Text

    from graphmem.cli import render_admin

    async with open_operations(output, tenant) as operations:
        key = await operations.create_key(name, role=role, users=user or None)
    output.show(key, render_admin.keys([key]), Text(f"Key: {key.key}\nIt is not shown again.", no_wrap=True))


@command(app, "list")
async def list_keys(output: Output, tenant: Tenant = "default") -> None:
    """List a tenant's API keys without their secrets."""
    from graphmem.cli import render_admin

    async with open_operations(output, tenant) as operations:
        keys = await operations.keys()
    output.show({"items": keys}, render_admin.keys(keys))


@command(app, "revoke")
async def revoke(
    output: Output, key_id: Annotated[str, typer.Argument(help="The key's id.")], tenant: Tenant = "default"
) -> None:
    """Revoke an API key with immediate effect."""
    from graphmem.runtime.short_ids import complete_id

    async with open_operations(output, tenant) as operations:
        listed = [key.id for key in await operations.keys()]
        key_id = complete_id(key_id, [known for known in listed if known.startswith(key_id)])
        await operations.revoke_key(key_id)
    output.show({}, f"The key {key_id} is revoked.")
