"""Spaces: memories that users and keys of a tenant share."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from graphmem.cli.command import Output, Tenant, command, confirm_erasure, show_erasure
from graphmem.cli.startup import open_operations

if TYPE_CHECKING:
    from graphmem.tenants.spaces import Space

app = typer.Typer(no_args_is_help=True)

SpaceId = Annotated[str, typer.Argument(metavar="SPACE", help="The space's id, such as team-atlas.")]
MemberId = Annotated[str, typer.Argument(metavar="MEMBER", help="The id of a user or of a key.")]
Role = Annotated[Literal["reader", "writer", "owner"], typer.Option(help="What the member may do.")]
Kind = Annotated[
    Literal["user", "key"] | None,
    typer.Option(help="What the id is of; absent: a key's if there is one, else a user's."),
]


@command(app, "put")
async def put(
    output: Output,
    space: SpaceId,
    title: Annotated[str, typer.Option(help="What it is called, such as 'Team Atlas'.")],
    about: Annotated[str, typer.Option(help="A sentence that says what belongs there; extraction reads it.")] = "",
    owner: Annotated[list[str] | None, typer.Option(help="A user who owns it; repeat for several.")] = None,
    writer: Annotated[list[str] | None, typer.Option(help="A user who writes in it; repeat for several.")] = None,
    reader: Annotated[list[str] | None, typer.Option(help="A user who reads it; repeat for several.")] = None,
    tenant: Tenant = "default",
) -> None:
    """Create a space or change it; without --owner, --writer and --reader its members stay."""
    given = {"owner": owner, "writer": writer, "reader": reader}
    members: list[dict[str, Any]] = [
        {"user": user, "role": role} for role, users in given.items() for user in users or ()
    ]
    async with open_operations(output, tenant) as operations:
        made = await operations.put_space(space, title=title, about=about, members=members or None)
    _show(output, made)


@command(app, "list")
async def list_spaces(output: Output, tenant: Tenant = "default") -> None:
    """List the spaces of a tenant."""
    from graphmem.cli import render_admin

    async with open_operations(output, tenant) as operations:
        spaces = await operations.spaces()
    output.show({"items": spaces}, render_admin.spaces(spaces))


@command(app, "show")
async def show(output: Output, space: SpaceId, tenant: Tenant = "default") -> None:
    """Show a space with its members."""
    async with open_operations(output, tenant) as operations:
        _show(output, await operations.space(space))


@command(app, "grant")
async def grant(
    output: Output,
    space: SpaceId,
    member: MemberId,
    role: Role = "reader",
    kind: Kind = None,
    tenant: Tenant = "default",
) -> None:
    """Give a user or a key a role in a space."""
    async with open_operations(output, tenant) as operations:
        _show(output, await operations.set_space_member(space, member, role=role, kind=kind))


@command(app, "revoke")
async def revoke(
    output: Output, space: SpaceId, member: MemberId, kind: Kind = None, tenant: Tenant = "default"
) -> None:
    """Remove a user or a key from a space, with immediate effect."""
    async with open_operations(output, tenant) as operations:
        await operations.remove_space_member(space, member, kind=kind)
    output.show({}, f"{member} is no member of {space} any more.")


@command(app, "delete")
async def delete(
    output: Output,
    space: SpaceId,
    tenant: Tenant = "default",
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask for confirmation.")] = False,
) -> None:
    """Erase a space with all its data everywhere, then count what is left; this cannot be undone."""
    if not yes:
        confirm_erasure("space", space, tenant)
    async with open_operations(output, tenant) as operations:
        show_erasure(output, "space", await operations.delete_space(space))


def _show(output: Output, space: Space) -> None:
    from graphmem.cli import render_admin

    output.show(space, *render_admin.space(space))


def given_spaces(spaces: Sequence[str] | None) -> dict[str, Any]:
    """Return the option `spaces` of a read as its field; nothing where it was not given."""
    if not spaces:
        return {}
    return {"spaces": spaces[0] if list(spaces) in (["all"], ["none"]) else list(spaces)}
