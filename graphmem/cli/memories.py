"""Memories of one user: add, search, list, correct, and what changed."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from graphmem.cli.command import (
    Cursor,
    Filters,
    KnownAsOf,
    Output,
    Space,
    Spaces,
    Tags,
    Tenant,
    User,
    ValidAsOf,
    command,
    parse_pairs,
)
from graphmem.cli.spaces import given_spaces
from graphmem.cli.startup import complete_memory_id, open_operations
from graphmem.runtime.errors import Conflict, InvalidInput

if TYPE_CHECKING:
    from graphmem.memories.memory import Memory


app = typer.Typer()


@command(app, "add")
async def add(
    output: Output,
    text: Annotated[str, typer.Argument(help="The statement, as one sentence.")],
    user: User,
    tenant: Tenant = "default",
    type: Annotated[str | None, typer.Option(help="preference, fact, plan, feeling, …; absent: fact.")] = None,
    subject: Annotated[str | None, typer.Option(help="Who or what it is about; absent: the user.")] = None,
    predicate: Annotated[str | None, typer.Option(help="The relation, in UPPER_SNAKE_CASE.")] = None,
    object: Annotated[str | None, typer.Option(help="What the subject is related to.")] = None,
    single_valued: Annotated[
        bool, typer.Option("--single-valued", help="The subject has one such object at a time.")
    ] = False,
    valid_at: Annotated[str | None, typer.Option(help="When it becomes true.")] = None,
    invalid_at: Annotated[str | None, typer.Option(help="When it stops being true.")] = None,
    expires_at: Annotated[str | None, typer.Option(help="When it is no longer recalled.")] = None,
    confidence: Annotated[float, typer.Option(help="0 to 1; below 0.5 nothing is stored.")] = 0.9,
    importance: Annotated[float, typer.Option(help="0 to 1.")] = 0.5,
    tag: Tags = None,
    domain: Annotated[str | None, typer.Option(help="The domain it belongs to.")] = None,
    supersedes: Annotated[
        list[str] | None, typer.Option(help="Id of a memory it replaces; repeat for several.")
    ] = None,
    immutable: Annotated[bool, typer.Option("--immutable", help="Nobody may change it.")] = False,
    said_by: Annotated[
        str | None, typer.Option(help="Whose word it is: user, operator, import, document, assistant, tool or web.")
    ] = None,
    speaker: Annotated[str | None, typer.Option(help="The name of who said it.")] = None,
    infer: Annotated[bool, typer.Option("--infer", help="Let a model compare it with what is known.")] = False,
    space: Space = None,
) -> None:
    """Save one statement, without a language model unless --infer is given."""
    from graphmem.cli import render

    statement: dict[str, Any] = {
        "content": text,
        "subject": subject,
        "predicate": predicate,
        "object": object,
        "single_valued": single_valued,
        "valid_at": valid_at,
        "invalid_at": invalid_at,
        "expires_at": expires_at,
        "confidence": confidence,
        "importance": importance,
        "tags": tag or [],
        "domain": domain,
        "immutable": immutable,
        "space": space,
    }
    if type is not None:
        statement["type"] = type
    if said_by or speaker:
        statement["source"] = {"kind": said_by, "speaker": speaker}
    async with open_operations(output, tenant) as operations:
        if supersedes:
            ids = [await complete_memory_id(operations, user, memory_id) for memory_id in supersedes]
            statement["supersedes"] = ids
        results = await operations.add(user, statement, infer=infer)
    output.show(
        {"results": results},
        render.save_results(results),
        *render.undo_hints(user, results),
        *render.related_hints(user, results),
    )


@command(app, "search")
async def search(
    output: Output,
    text: Annotated[str, typer.Argument(help="What to look for.")],
    user: User,
    tenant: Tenant = "default",
    limit: Annotated[int, typer.Option(help="How many, 1 to 100.")] = 10,
    *,
    filters: Filters,
    min_score: Annotated[float | None, typer.Option(help="Least score, 0 to 1; from 0.5 a memory fits.")] = None,
    cut: Annotated[
        Literal["none", "auto"], typer.Option(help="auto: only what fits, possibly nothing; none: up to the limit.")
    ] = "none",
    messages: Annotated[bool, typer.Option("--messages", help="Also search the messages themselves.")] = False,
    explain: Annotated[bool, typer.Option("--explain", help="Show the ranks and factors behind each score.")] = False,
    spaces: Spaces = None,
) -> None:
    """Search memories by meaning, keywords and graph."""
    from graphmem.cli import render

    options: dict[str, Any] = {
        "limit": limit,
        "min_score": min_score,
        "cut": cut,
        "include_messages": messages,
        "explain": explain,
        **filters.as_fields(),
        **given_spaces(spaces),
    }
    async with open_operations(output, tenant) as operations:
        response = await operations.search(user, text, **options)
    message_table = [render.message_hits(response.messages)] if messages else []
    output.show(response, render.search_hits(response.results), *message_table)


@command(app, "entity")
async def entity(
    output: Output,
    text: Annotated[str, typer.Argument(help="A name or alias, or a text that holds some.")],
    user: User,
    tenant: Tenant = "default",
    limit: Annotated[int, typer.Option(help="Most memories of each entity, 1 to 200.")] = 20,
    valid_as_of: ValidAsOf = None,
    known_as_of: KnownAsOf = None,
    spaces: Spaces = None,
) -> None:
    """Look up entities by name and show what is known about them; no model, no embedding."""
    from graphmem.cli import render

    async with open_operations(output, tenant) as operations:
        response = await operations.lookup(
            user, text, limit=limit, valid_as_of=valid_as_of, known_as_of=known_as_of, **given_spaces(spaces)
        )
    output.show(response, *render.lookup_response(response))


@command(app, "history")
async def history(
    output: Output,
    memory_id: Annotated[str, typer.Argument(help="The memory's id, or its beginning.")],
    user: User,
    tenant: Tenant = "default",
) -> None:
    """Show every version of a memory, oldest first, with why it ended."""
    from graphmem.cli import render

    async with open_operations(output, tenant) as operations:
        versions = await operations.history(user, await complete_memory_id(operations, user, memory_id))
    output.show({"items": versions}, render.history(versions))


@command(app, "sessions")
async def sessions(
    output: Output,
    user: User,
    tenant: Tenant = "default",
    limit: Annotated[int, typer.Option(min=1, max=200, help="How many.")] = 50,
    cursor: Cursor = None,
    space: Space = None,
) -> None:
    """List the user's sessions, or those of a space, the latest first."""
    from graphmem.cli import render

    async with open_operations(output, tenant) as operations:
        page = await operations.sessions(user, limit=limit, cursor=cursor, space=space)
    output.show(page, render.sessions(page.items), *render.next_page(page))


PageSize = Annotated[int, typer.Option("--limit", min=1, max=200, help="How many.")]


@command(app, "memories")
async def memories(
    output: Output,
    user: User,
    tenant: Tenant = "default",
    *,
    filters: Filters,
    keyword: Annotated[str | None, typer.Option(help="Only statements that contain this text.")] = None,
    sort: Annotated[
        Literal["created_at", "-created_at", "importance", "-importance", "valid_at", "-valid_at"],
        typer.Option(help="The order; a leading minus: the highest or latest first."),
    ] = "-created_at",
    limit: PageSize = 50,
    cursor: Cursor = None,
    spaces: Spaces = None,
) -> None:
    """List a user's memories by attributes, the latest first; `search` finds them by meaning."""
    from graphmem.cli import render

    shown = {"keyword": keyword, "sort": sort, "limit": limit, "cursor": cursor}
    options = {**filters.as_query(), **shown, **given_spaces(spaces)}
    async with open_operations(output, tenant) as operations:
        page = await operations.memories(user, **options)
    output.show(page, render.memories(page.items), *render.next_page(page))


@command(app, "get")
async def get(
    output: Output,
    memory_id: Annotated[str, typer.Argument(help="The memory's id, or its beginning.")],
    user: User,
    tenant: Tenant = "default",
) -> None:
    """Show one memory with all its fields, deleted or not."""
    from graphmem.cli import render

    async with open_operations(output, tenant) as operations:
        memory = await operations.memory(user, await complete_memory_id(operations, user, memory_id))
    output.show(memory, render.memory(memory))


@command(app, "entities")
async def entities(
    output: Output,
    user: User,
    query: Annotated[str | None, typer.Argument(help="Part of a name or alias.")] = None,
    tenant: Tenant = "default",
    type: Annotated[str | None, typer.Option(help="Only this type, such as Person.")] = None,
    limit: PageSize = 50,
    cursor: Cursor = None,
    spaces: Spaces = None,
) -> None:
    """List the people, places and things that a user's memories are about, by name."""
    from graphmem.cli import render

    async with open_operations(output, tenant) as operations:
        page = await operations.entities(
            user, query=query, type=type, limit=limit, cursor=cursor, **given_spaces(spaces)
        )
    output.show(page, render.entities(page.items), *render.next_page(page))


@command(app, "messages")
async def messages(
    output: Output,
    session: Annotated[str, typer.Argument(help="The session's id, as `graphmem sessions` lists it.")],
    user: User,
    tenant: Tenant = "default",
    limit: PageSize = 50,
    cursor: Cursor = None,
    space: Space = None,
) -> None:
    """List the messages of a session, oldest first."""
    from graphmem.cli import render

    async with open_operations(output, tenant) as operations:
        page = await operations.session_messages(user, session, limit=limit, cursor=cursor, space=space)
    output.show(page, render.messages(page.items), *render.next_page(page))


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
    from graphmem.runtime.short_ids import shorten_id

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


@command(app, "resolve")
async def resolve(
    output: Output,
    memory_id: Annotated[str, typer.Argument(metavar="ID", help="The contested memory.")],
    user: User,
    holds: Annotated[
        bool, typer.Option("--holds/--does-not-hold", help="Whether it takes the place of what it contests.")
    ],
    tenant: Tenant = "default",
) -> None:
    """Say whether a contested memory holds; `graphmem contradictions` lists them, `graphmem revert` undoes it."""
    from graphmem.cli import render

    async with open_operations(output, tenant) as operations:
        contested = await operations.memory(user, memory_id)
        memory = await operations.resolve(user, contested.id, holds=holds)
    said = "It holds and took the place of what it contested." if holds else "It does not hold, and is retired."
    output.show(memory, render.memories([memory]), said)


@command(app, "revert")
async def revert(
    output: Output,
    memory_id: Annotated[
        str, typer.Argument(metavar="ID", help="The memory that was replaced, or the one that replaced it.")
    ],
    user: User,
    tenant: Tenant = "default",
) -> None:
    """Undo a replacement: the replaced memory holds again, and the one that replaced it holds at no time.

    A contested memory that was resolved is contested again.
    """
    from graphmem.cli import render
    from graphmem.memories.memory import MemoryStatus

    async with open_operations(output, tenant) as operations:
        replaced = _find_replaced(await operations.memory(user, memory_id))
        memory = await operations.revert(user, replaced)
    outcome = "It is contested again" if memory.status is MemoryStatus.CONTESTED else "It holds again"
    output.show(memory, render.memories([memory]), f"{outcome}; `graphmem history` shows what happened.")


def _find_replaced(memory: Memory) -> str:
    """Return the id of the memory to restore, given that memory or the one that replaced it."""
    from graphmem.memories.memory import MemoryStatus
    from graphmem.runtime.short_ids import shorten_id

    if memory.status is MemoryStatus.SUPERSEDED or memory.superseded_by or memory.contests:
        return memory.id
    if len(memory.supersedes) > 1:
        ids = ", ".join(map(shorten_id, memory.supersedes))
        raise Conflict(f"This memory replaced several, so revert one of them: {ids}.")
    if memory.supersedes:
        return memory.supersedes[0]
    if memory.status is MemoryStatus.DELETED:
        raise Conflict("A deleted memory was not replaced: save the statement again with `graphmem add`.")
    raise Conflict("Nothing replaced this memory: correct it with `graphmem update`, or end it with `graphmem delete`.")


@command(app, "diff")
async def diff(
    output: Output,
    user: User,
    tenant: Tenant = "default",
    since: Annotated[str | None, typer.Option(help="From this time on, such as 2025-06-01T12:00:00Z.")] = None,
    until: Annotated[str | None, typer.Option(help="Up to before this time; absent: up to now.")] = None,
    limit: Annotated[int, typer.Option(min=1, max=200, help="How many.")] = 50,
    cursor: Cursor = None,
    space: Space = None,
) -> None:
    """Show what graphmem learned, corrected, merged, deleted and restored between two times, oldest first."""
    from graphmem.cli import render

    async with open_operations(output, tenant) as operations:
        page = await operations.changes(
            user, since=since, until=until, limit=limit, cursor=cursor, **({"space": space} if space else {})
        )
    output.show(page, render.memory_changes(page.items), *render.next_page(page))
