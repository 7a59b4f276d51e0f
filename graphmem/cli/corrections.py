"""Changes of one memory: update, delete, revert."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated, Any

import typer

from graphmem.cli.command import Output, Tags, Tenant, User, command
from graphmem.cli.key_values import parse_pairs
from graphmem.cli.startup import complete_memory_id, open_operations
from graphmem.runtime.errors import Conflict, InvalidInput

if TYPE_CHECKING:
    from graphmem.memories.memory import Memory

app = typer.Typer()

MemoryId = Annotated[str, typer.Argument(metavar="ID", help="The memory's id, or its beginning.")]

NO_VALUE = "none"
"""What stands for an absent time or domain."""


@command(app, "update")
async def update(
    output: Output,
    memory_id: MemoryId,
    user: User,
    text: Annotated[str | None, typer.Argument(help="The right statement; absent: it stays.")] = None,
    tenant: Tenant = "default",
    type: Annotated[str | None, typer.Option(help="preference, fact, plan, feeling, …")] = None,
    tag: Tags = None,
    metadata: Annotated[
        list[str] | None, typer.Option(help="KEY=VALUE in place of the present metadata; repeat for several.")
    ] = None,
    valid_at: Annotated[str | None, typer.Option(help="When it became true; none: unknown.")] = None,
    invalid_at: Annotated[str | None, typer.Option(help="When it stopped being true; none: it still is.")] = None,
    expires_at: Annotated[str | None, typer.Option(help="When it is no longer recalled; none: never.")] = None,
    confidence: Annotated[float | None, typer.Option(help="0 to 1.")] = None,
    importance: Annotated[float | None, typer.Option(help="0 to 1.")] = None,
    domain: Annotated[str | None, typer.Option(help="The domain it belongs to; none: the profile.")] = None,
    scope: Annotated[str | None, typer.Option(help="profile, domain or episodic.")] = None,
    if_version: Annotated[int | None, typer.Option(help="Change it only if this is its latest version.", min=1)] = None,
) -> None:
    """Correct a memory in a new version; the version before stays in its history."""
    from graphmem.cli import render

    given: dict[str, Any] = {
        "content": text,
        "type": type,
        "tags": tag,
        "metadata": parse_pairs(metadata, example="--metadata file=plan.md") if metadata else None,
        "confidence": confidence,
        "importance": importance,
        "scope": scope,
    }
    changes = {name: value for name, value in given.items() if value is not None}
    clearable = {"valid_at": valid_at, "invalid_at": invalid_at, "expires_at": expires_at, "domain": domain}
    for name, value in clearable.items():
        if value is not None:
            changes[name] = None if value == NO_VALUE else value
    if not changes:
        raise InvalidInput("There is nothing to change: give the right statement, or an option such as --invalid-at.")
    async with open_operations(output, tenant) as operations:
        memory_id = await complete_memory_id(operations, user, memory_id)
        memory = await operations.update(user, memory_id, if_version=if_version, **changes)
    output.show(memory, render.memories([memory]), f"This is version {memory.version}.")


@command(app, "delete")
async def delete(
    output: Output,
    memory_id: MemoryId,
    user: User,
    tenant: Tenant = "default",
    hard: Annotated[
        bool, typer.Option("--hard", help="Erase every version everywhere; this cannot be undone.")
    ] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="With --hard: do not ask for confirmation.")] = False,
) -> None:
    """End a memory: it is no longer recalled, and stays in its history unless it is erased with --hard."""
    from graphmem.memories.short_ids import shorten_id

    if hard and not yes and not sys.stdin.isatty():
        raise InvalidInput("Erasing a memory cannot be undone: confirm it with --yes.")
    async with open_operations(output, tenant) as operations:
        if not hard:
            memory_id = await complete_memory_id(operations, user, memory_id)
            ended = await operations.delete(user, memory_id)
            output.show(ended, f"The memory {shorten_id(ended.id)} is deleted; its history stays.")
            return
        memory = await operations.memory(user, memory_id)
        if not yes:
            typer.confirm(f"Erase every version of {memory.content!r}?", abort=True, err=True)
        count = await operations.erase_memory(user, memory.id)
    versions = "1 version" if count == 1 else f"{count} versions"
    output.show({"id": memory.id, "erased": count}, f"The memory {shorten_id(memory.id)} is erased: {versions}.")


@command(app, "revert")
async def revert(
    output: Output,
    memory_id: Annotated[
        str, typer.Argument(metavar="ID", help="The memory that was replaced, or the one that replaced it.")
    ],
    user: User,
    tenant: Tenant = "default",
) -> None:
    """Undo a replacement: the replaced memory holds again, and the one that replaced it holds at no time."""
    from graphmem.cli import render

    async with open_operations(output, tenant) as operations:
        replaced = _find_replaced(await operations.memory(user, memory_id))
        memory = await operations.revert(user, replaced)
    output.show(memory, render.memories([memory]), "It holds again; `graphmem history` shows what happened.")


def _find_replaced(memory: Memory) -> str:
    """Return the id of the memory to restore, given that memory or the one that replaced it."""
    from graphmem.memories.memory import MemoryStatus
    from graphmem.memories.short_ids import shorten_id

    if memory.status is MemoryStatus.SUPERSEDED or memory.superseded_by:
        return memory.id
    if len(memory.supersedes) > 1:
        ids = ", ".join(map(shorten_id, memory.supersedes))
        raise Conflict(f"This memory replaced several, so revert one of them: {ids}.")
    if memory.supersedes:
        return memory.supersedes[0]
    if memory.status is MemoryStatus.DELETED:
        raise Conflict("A deleted memory was not replaced: save the statement again with `graphmem add`.")
    raise Conflict("Nothing replaced this memory: correct it with `graphmem update`, or end it with `graphmem delete`.")
