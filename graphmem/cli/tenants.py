"""What belongs to a tenant: users, API keys, webhooks, declared types, instructions, trust."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Annotated, Any

import typer

from graphmem.cli.command import Cursor, Output, Tenant, command
from graphmem.cli.startup import open_operations

if TYPE_CHECKING:
    from graphmem.memories.declared_types import DeclaredTypes
    from graphmem.tenants.instructions import Instructions
    from graphmem.tenants.trust import Trust


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


keys_app = typer.Typer(no_args_is_help=True)

KeyTenant = Annotated[str, typer.Option("--tenant", help="The tenant that the key belongs to.")]


@command(keys_app, "create")
async def create_key(
    output: Output,
    name: Annotated[str, typer.Argument(help="What the key is for.")],
    role: Annotated[str, typer.Option(help="agent (reads and writes), analyst (reads) or admin.")] = "agent",
    user: Annotated[list[str] | None, typer.Option("--user", "-u", help="Only this user; repeat for several.")] = None,
    space: Annotated[
        list[str] | None, typer.Option(help="Of the spaces of its users only this one; repeat for several.")
    ] = None,
    source_kind: Annotated[
        str, typer.Option("--as", help="Whose word it is what the key saves, such as assistant or tool.")
    ] = "user",
    tenant: KeyTenant = "default",
    only_key: Annotated[bool, typer.Option("--only-key", help="Print the key and nothing else.")] = False,
) -> None:
    """Create an API key; it is shown once."""
    from rich.text import Text

    from graphmem.cli import render_admin

    async with open_operations(output, tenant) as operations:
        key = await operations.create_key(
            name, role=role, users=user or None, spaces=space or None, source_kind=source_kind
        )
    if only_key:
        output.show(key, Text(key.key, no_wrap=True))
    else:
        output.show(key, render_admin.keys([key]), Text(f"Key: {key.key}\nIt is not shown again.", no_wrap=True))


@command(keys_app, "list")
async def list_keys(output: Output, tenant: KeyTenant = "default") -> None:
    """List a tenant's API keys without their secrets."""
    from graphmem.cli import render_admin

    async with open_operations(output, tenant) as operations:
        keys = await operations.keys()
    output.show({"items": keys}, render_admin.keys(keys))


@command(keys_app, "revoke")
async def revoke_key(
    output: Output, key_id: Annotated[str, typer.Argument(help="The key's id.")], tenant: KeyTenant = "default"
) -> None:
    """Revoke an API key with immediate effect."""
    from graphmem.runtime.short_ids import complete_id

    async with open_operations(output, tenant) as operations:
        listed = [key.id for key in await operations.keys()]
        key_id = complete_id(key_id, [known for known in listed if known.startswith(key_id)])
        await operations.revoke_key(key_id)
    output.show({}, f"The key {key_id} is revoked.")


webhooks_app = typer.Typer(no_args_is_help=True)

HookTenant = Annotated[str, typer.Option("--tenant", help="The tenant whose changes are delivered.")]


@command(webhooks_app, "add")
async def add_webhook(
    output: Output,
    url: Annotated[str, typer.Argument(help="Where to deliver changes, such as https://example.com/hooks.")],
    user: Annotated[list[str] | None, typer.Option("--user", "-u", help="Only this user; repeat for several.")] = None,
    kind: Annotated[
        list[str] | None,
        typer.Option(help="Only inserted, superseded, deleted, merged or restored; repeat for several."),
    ] = None,
    since: Annotated[str | None, typer.Option(help="Also changes from this time on; absent: from now on.")] = None,
    tenant: HookTenant = "default",
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


@command(webhooks_app, "list")
async def list_webhooks(output: Output, tenant: HookTenant = "default") -> None:
    """List a tenant's webhooks and how their deliveries go."""
    from graphmem.cli import render_admin

    async with open_operations(output, tenant) as operations:
        listed = await operations.webhooks()
    output.show({"items": listed}, render_admin.webhooks(listed))


@command(webhooks_app, "remove")
async def remove_webhook(
    output: Output,
    webhook_id: Annotated[str, typer.Argument(help="The webhook's id.")],
    tenant: HookTenant = "default",
) -> None:
    """Remove a webhook; what it has not received yet is not delivered."""
    from graphmem.runtime.short_ids import complete_id

    async with open_operations(output, tenant) as operations:
        listed = [webhook.id for webhook in await operations.webhooks()]
        webhook_id = complete_id(webhook_id, [known for known in listed if known.startswith(webhook_id)])
        await operations.delete_webhook(webhook_id)
    output.show({}, f"The webhook {webhook_id} is removed.")


types_app = typer.Typer(no_args_is_help=True)

TypesTenant = Annotated[str, typer.Option("--tenant", help="The tenant whose memories may have the types.")]


@command(types_app, "show")
async def show_types(output: Output, tenant: TypesTenant = "default") -> None:
    """Show the types of memories and entities that a tenant declared."""
    async with open_operations(output, tenant) as operations:
        _show_types(output, await operations.declared_types())


@command(types_app, "set")
async def set_types(
    output: Output,
    file: Annotated[str, typer.Argument(help="JSON or YAML with memory_types and entity_types; - is standard input.")],
    tenant: TypesTenant = "default",
) -> None:
    """Declare types of memories and entities, in place of those declared before."""
    from graphmem.cli.command import read_input
    from graphmem.user_data.foreign import parse_structured_text

    text = await asyncio.to_thread(read_input, file)
    await _set_types(output, tenant, parse_structured_text(text.encode()))


@command(types_app, "clear")
async def clear_types(output: Output, tenant: TypesTenant = "default") -> None:
    """Remove the declared types of a tenant; memories that have them keep them."""
    await _set_types(output, tenant, {})


async def _set_types(output: Output, tenant: str, document: Any) -> None:
    from graphmem.memories.declared_types import DeclaredTypesIn
    from graphmem.runtime.validation import validate_input

    declared = validate_input(DeclaredTypesIn, document).model_dump(mode="json", exclude_unset=True)
    async with open_operations(output, tenant) as operations:
        _show_types(output, await operations.set_declared_types(**declared))


def _show_types(output: Output, types: DeclaredTypes) -> None:
    lines = [
        f"memory type {declared.name} ({declared.base}): {declared.description}" for declared in types.memory_types
    ]
    lines += [f"entity type {declared.name}: {declared.description}" for declared in types.entity_types]
    output.show(types, "\n".join(lines) or "There are no declared types.")


instructions_app = typer.Typer(no_args_is_help=True)

InstructionsTenant = Annotated[
    str, typer.Option("--tenant", help="The tenant whose memories the instructions are for.")
]


@command(instructions_app, "show")
async def show_instructions(output: Output, tenant: InstructionsTenant = "default") -> None:
    """Show what a tenant wants remembered, and what not."""
    async with open_operations(output, tenant) as operations:
        _show_instructions(output, await operations.instructions())


@command(instructions_app, "set")
async def set_instructions(
    output: Output,
    file: Annotated[str, typer.Argument(help="A text file; - is standard input.")],
    tenant: InstructionsTenant = "default",
) -> None:
    """Set what a tenant wants remembered, and what not."""
    from graphmem.cli.command import read_input

    await _set_instructions(output, tenant, await asyncio.to_thread(read_input, file))


@command(instructions_app, "clear")
async def clear_instructions(output: Output, tenant: InstructionsTenant = "default") -> None:
    """Remove the instructions of a tenant."""
    await _set_instructions(output, tenant, "")


async def _set_instructions(output: Output, tenant: str, text: str) -> None:
    async with open_operations(output, tenant) as operations:
        _show_instructions(output, await operations.set_instructions(text))


def _show_instructions(output: Output, instructions: Instructions) -> None:
    output.show(instructions, instructions.text or "There are no custom instructions.")


trust_app = typer.Typer(no_args_is_help=True)

TrustTenant = Annotated[str, typer.Option("--tenant", help="The tenant whose memories the order is for.")]


@command(trust_app, "show")
async def show_trust(output: Output, tenant: TrustTenant = "default") -> None:
    """Show which sources a tenant trusts more than others."""
    async with open_operations(output, tenant) as operations:
        _show_trust(output, await operations.trust())


@command(trust_app, "set")
async def set_trust(
    output: Output,
    order: Annotated[
        list[str],
        typer.Argument(
            metavar="SOURCE...",
            help="Sources, the most trusted first; those joined by commas are trusted alike: user operator,import web.",
        ),
    ],
    tenant: TrustTenant = "default",
) -> None:
    """Set which sources a tenant trusts more than others; those left out follow in the default order."""
    async with open_operations(output, tenant) as operations:
        _show_trust(output, await operations.set_trust([group.split(",") for group in order]))


@command(trust_app, "reset")
async def reset_trust(output: Output, tenant: TrustTenant = "default") -> None:
    """Set the default order of trust again."""
    async with open_operations(output, tenant) as operations:
        _show_trust(output, await operations.set_trust([]))


def _show_trust(output: Output, trust: Trust) -> None:
    output.show(trust, " > ".join(", ".join(group) for group in trust.order))
