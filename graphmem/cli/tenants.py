"""Commands for a tenant: users, keys, webhooks, declared types, instructions, trust, spaces and the quarantine."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from graphmem.cli import views
from graphmem.cli.command import Cursor, Output, PageSize, Verbatim, Yes, command, fail_unless_saved, read_input
from graphmem.cli.startup import confirm_erasure, report_erasure
from graphmem.runtime.short_ids import complete_id

if TYPE_CHECKING:
    from graphmem.client import AsyncClient

app = typer.Typer()

OnlyUsers = Annotated[list[str] | None, typer.Option("--user", "-u", help="Bind the key to this user; repeatable.")]


@command(app, "users", views.USERS)
async def users(
    client: AsyncClient,
    query: Annotated[str | None, typer.Argument(help="Part of a user id.")] = None,
    limit: PageSize = 50,
    cursor: Cursor = None,
) -> object:
    """List the users of a tenant with their numbers of memories and sessions."""
    return await client.users(query=query, limit=limit, cursor=cursor)


keys_app = typer.Typer(no_args_is_help=True)


@command(keys_app, "create")
async def create_key(
    client: AsyncClient,
    output: Output,
    name: Annotated[str, typer.Argument(help="What the key is for.")],
    role: Annotated[str, typer.Option(help="agent (reads and writes), analyst (reads) or admin.")] = "agent",
    user: OnlyUsers = None,
    space: Annotated[
        list[str] | None, typer.Option(help="Limit the key to this space of its users; repeatable.")
    ] = None,
    source_kind: Annotated[
        str, typer.Option("--as", help="Source of what the key saves, such as assistant or tool.")
    ] = "user",
    only_key: Annotated[bool, typer.Option("--only-key", help="Print the key and nothing else.")] = False,
) -> None:
    """Create an API key; it is shown once."""
    key = await client.create_key(name, role=role, users=user or None, spaces=space or None, source_kind=source_kind)
    if only_key:
        output.show(key, Verbatim(key.key))
    else:
        output.show(key, *views.KEYS(key), Verbatim(f"Key: {key.key}\nIt is not shown again."))


@command(keys_app, "list", views.KEYS)
async def list_keys(client: AsyncClient) -> object:
    """List a tenant's API keys without their secrets."""
    return await client.keys()


@command(keys_app, "revoke")
async def revoke_key(
    client: AsyncClient, output: Output, key_id: Annotated[str, typer.Argument(help="The key's id.")]
) -> None:
    """Revoke an API key with immediate effect."""
    listed = [key.id for key in await client.keys()]
    key_id = complete_id(key_id, [known for known in listed if known.startswith(key_id)])
    await client.revoke_key(key_id)
    output.show({}, f"The key {key_id} is revoked.")


webhooks_app = typer.Typer(no_args_is_help=True)


@command(webhooks_app, "add")
async def add_webhook(
    client: AsyncClient,
    output: Output,
    url: Annotated[str, typer.Argument(help="Where to deliver changes, such as https://example.com/hooks.")],
    user: OnlyUsers = None,
    kind: Annotated[
        list[str] | None,
        typer.Option(help="Only this kind of change: inserted, superseded, deleted, merged or restored; repeatable."),
    ] = None,
    since: Annotated[str | None, typer.Option(help="Deliver changes from this time on; defaults to now.")] = None,
) -> None:
    """Add a webhook, which receives changes as signed requests; its secret is shown once."""
    webhook = await client.create_webhook(url, users=user or None, kinds=kind or None, since=since)
    output.show(webhook, *views.WEBHOOKS(webhook), Verbatim(f"Secret: {webhook.secret}\nIt is not shown again."))


@command(webhooks_app, "list", views.WEBHOOKS)
async def list_webhooks(client: AsyncClient) -> object:
    """List a tenant's webhooks and the state of their deliveries."""
    return await client.webhooks()


@command(webhooks_app, "remove")
async def remove_webhook(
    client: AsyncClient, output: Output, webhook_id: Annotated[str, typer.Argument(help="The webhook's id.")]
) -> None:
    """Remove a webhook; pending changes are not delivered."""
    listed = [webhook.id for webhook in await client.webhooks()]
    webhook_id = complete_id(webhook_id, [known for known in listed if known.startswith(webhook_id)])
    await client.delete_webhook(webhook_id)
    output.show({}, f"The webhook {webhook_id} is removed.")


types_app = typer.Typer(no_args_is_help=True)


@command(types_app, "show", views.declared_types)
async def show_types(client: AsyncClient) -> object:
    """Show the types of memories and entities that a tenant declared."""
    return await client.declared_types()


@command(types_app, "set", views.declared_types)
async def set_types(
    client: AsyncClient,
    file: Annotated[str, typer.Argument(help="JSON or YAML with memory_types and entity_types; - is standard input.")],
) -> object:
    """Declare types of memories and entities; replaces the earlier declaration."""
    from graphmem.memories.declared_types import DeclaredTypesIn
    from graphmem.runtime.validation import validate_input
    from graphmem.user_data.foreign import parse_structured_text

    document: Any = parse_structured_text((await asyncio.to_thread(read_input, file)).encode())
    declared = validate_input(DeclaredTypesIn, document).model_dump(mode="json", exclude_unset=True)
    return await client.set_declared_types(**declared)


@command(types_app, "clear", views.declared_types)
async def clear_types(client: AsyncClient) -> object:
    """Remove a tenant's declared types; memories keep theirs."""
    return await client.set_declared_types()


instructions_app = typer.Typer(no_args_is_help=True)


@command(instructions_app, "show", views.instructions)
async def show_instructions(client: AsyncClient) -> object:
    """Show what a tenant wants remembered."""
    return await client.instructions()


@command(instructions_app, "set", views.instructions)
async def set_instructions(
    client: AsyncClient, file: Annotated[str, typer.Argument(help="A text file; - is standard input.")]
) -> object:
    """Set what a tenant wants remembered."""
    return await client.set_instructions(await asyncio.to_thread(read_input, file))


@command(instructions_app, "clear", views.instructions)
async def clear_instructions(client: AsyncClient) -> object:
    """Remove the instructions of a tenant."""
    return await client.set_instructions("")


trust_app = typer.Typer(no_args_is_help=True)


@command(trust_app, "show", views.trust)
async def show_trust(client: AsyncClient) -> object:
    """Show which sources a tenant trusts more than others."""
    return await client.trust()


@command(trust_app, "set", views.trust)
async def set_trust(
    client: AsyncClient,
    order: Annotated[
        list[str],
        typer.Argument(
            metavar="SOURCE...",
            help="Sources, most trusted first; commas join equally trusted ones: user operator,import web.",
        ),
    ],
) -> object:
    """Set which sources a tenant trusts more than others; the rest follow in the default order."""
    return await client.set_trust([group.split(",") for group in order])


@command(trust_app, "reset", views.trust)
async def reset_trust(client: AsyncClient) -> object:
    """Restore the default order of trust."""
    return await client.set_trust([])


spaces_app = typer.Typer(no_args_is_help=True)

SpaceId = Annotated[str, typer.Argument(metavar="SPACE", help="The space's id, such as team-atlas.")]
MemberId = Annotated[str, typer.Argument(metavar="MEMBER", help="The id of a user or of a key.")]
Role = Annotated[Literal["reader", "writer", "owner"], typer.Option(help="What the member may do.")]
Kind = Annotated[
    Literal["user", "key"] | None,
    typer.Option(help="Whether the id is a key's or a user's; defaults to a key's if there is one."),
]


@command(spaces_app, "put", views.space)
async def put_space(
    client: AsyncClient,
    space: SpaceId,
    title: Annotated[str, typer.Option(help="Title, such as 'Team Atlas'.")],
    about: Annotated[str, typer.Option(help="One sentence that tells extraction what belongs there.")] = "",
    owner: Annotated[list[str] | None, typer.Option(help="A user with the role owner; repeatable.")] = None,
    writer: Annotated[list[str] | None, typer.Option(help="A user with the role writer; repeatable.")] = None,
    reader: Annotated[list[str] | None, typer.Option(help="A user with the role reader; repeatable.")] = None,
) -> object:
    """Create or change a space; without --owner, --writer and --reader, its members stay."""
    given = {"owner": owner, "writer": writer, "reader": reader}
    members: list[dict[str, Any]] = [
        {"user": user, "role": role} for role, users in given.items() for user in users or ()
    ]
    return await client.put_space(space, title=title, about=about, members=members or None)


@command(spaces_app, "list", views.SPACES)
async def list_spaces(client: AsyncClient) -> object:
    """List the spaces of a tenant."""
    return await client.spaces()


@command(spaces_app, "show", views.space)
async def show_space(client: AsyncClient, space: SpaceId) -> object:
    """Show a space with its members."""
    return await client.space(space)


@command(spaces_app, "grant", views.space)
async def grant(
    client: AsyncClient, space: SpaceId, member: MemberId, role: Role = "reader", kind: Kind = None
) -> object:
    """Give a user or a key a role in a space."""
    return await client.set_space_member(space, member, role=role, kind=kind)


@command(spaces_app, "revoke")
async def revoke_membership(
    client: AsyncClient, output: Output, space: SpaceId, member: MemberId, kind: Kind = None
) -> None:
    """Remove a user or a key from a space, with immediate effect."""
    await client.remove_space_member(space, member, kind=kind)
    output.show({}, f"{member} is no longer a member of {space}.")


@command(spaces_app, "delete")
async def delete_space(client: AsyncClient, output: Output, space: SpaceId, yes: Yes = False) -> None:
    """Erase a space with all its data everywhere, then count what is left; this cannot be undone."""
    if not yes:
        await confirm_erasure(client, output, f"space {space!r}")
    report_erasure(output, f"space {space!r}", await client.delete_space(space))


quarantine_app = typer.Typer(no_args_is_help=True)

StatementId = Annotated[str, typer.Argument(metavar="ID", help="The statement's id, or its beginning.")]


@command(quarantine_app, "list", views.QUARANTINE)
async def list_statements(
    client: AsyncClient,
    user: Annotated[str | None, typer.Option("--user", "-u", help="Only jobs of this user.")] = None,
    space: Annotated[str | None, typer.Option(help="Only jobs of this space.")] = None,
    limit: PageSize = 50,
    cursor: Cursor = None,
) -> object:
    """List quarantined statements with the reason, latest first."""
    return await client.quarantine(user, space=space, limit=limit, cursor=cursor)


@command(quarantine_app, "release")
async def release(client: AsyncClient, output: Output, statement_id: StatementId) -> None:
    """Save a quarantined statement as a memory."""
    result = await client.release_quarantined(await _complete_statement_id(client, statement_id))
    output.show(result, *views.SAVES(result))
    fail_unless_saved([result])


@command(quarantine_app, "drop")
async def drop(client: AsyncClient, output: Output, statement_id: StatementId) -> None:
    """Erase a quarantined statement; its message stays."""
    await client.drop_quarantined(await _complete_statement_id(client, statement_id))
    output.show({}, "The statement is erased.")


async def _complete_statement_id(client: AsyncClient, given: str) -> str:
    """Return the id of the statement whose id begins with `given`, among the tenant's latest."""
    page = await client.quarantine(limit=200)
    return complete_id(given, [statement.id for statement in page.items if statement.id.startswith(given)])
