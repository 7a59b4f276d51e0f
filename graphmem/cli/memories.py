"""Memories of one user: add, search, list, correct, and what changed."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from graphmem.cli import views
from graphmem.cli.command import (
    Cursor,
    Filters,
    KnownAsOf,
    Output,
    PageSize,
    Space,
    Spaces,
    Tags,
    User,
    ValidAsOf,
    command,
    fail_unless_saved,
    given_spaces,
    parse_pairs,
)
from graphmem.cli.startup import complete_memory_id
from graphmem.runtime.errors import Conflict, InvalidInput

if TYPE_CHECKING:
    from graphmem.client import AsyncClient
    from graphmem.memories.memory import Memory


app = typer.Typer()


@command(app, "add")
async def add(
    client: AsyncClient,
    output: Output,
    text: Annotated[str, typer.Argument(help="The statement, as one sentence.")],
    user: User,
    type: Annotated[str | None, typer.Option(help="preference, fact, plan, feeling, …; defaults to fact.")] = None,
    subject: Annotated[str | None, typer.Option(help="Who or what it is about; defaults to the user.")] = None,
    predicate: Annotated[str | None, typer.Option(help="The relation, in UPPER_SNAKE_CASE.")] = None,
    object: Annotated[str | None, typer.Option(help="What the subject is related to.")] = None,
    single_valued: Annotated[
        bool, typer.Option("--single-valued", help="The subject has one such object at a time.")
    ] = False,
    valid_at: Annotated[str | None, typer.Option(help="When it becomes true.")] = None,
    invalid_at: Annotated[str | None, typer.Option(help="When it stops being true.")] = None,
    expires_at: Annotated[str | None, typer.Option(help="When reads stop returning it.")] = None,
    confidence: Annotated[float, typer.Option(help="0 to 1; below 0.5 nothing is stored.")] = 0.9,
    importance: Annotated[float, typer.Option(help="0 to 1.")] = 0.5,
    tag: Tags = None,
    domain: Annotated[str | None, typer.Option(help="Domain that it belongs to.")] = None,
    supersedes: Annotated[list[str] | None, typer.Option(help="Id of a memory that it replaces; repeatable.")] = None,
    immutable: Annotated[bool, typer.Option("--immutable", help="Do not allow changes.")] = False,
    said_by: Annotated[
        str | None, typer.Option(help="Who said it: user, operator, import, document, assistant, tool or web.")
    ] = None,
    speaker: Annotated[str | None, typer.Option(help="The speaker's name.")] = None,
    infer: Annotated[bool, typer.Option("--infer", help="Let a model compare it with what is known.")] = False,
    space: Space = None,
) -> None:
    """Save one statement, without a language model unless --infer is given."""
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
    if supersedes:
        statement["supersedes"] = [await complete_memory_id(client, user, memory_id) for memory_id in supersedes]
    results = await client.add(user, statement, infer=infer)
    output.show(
        {"results": results},
        *views.SAVES(results),
        *views.undo_hints(user, results),
        *views.related_hints(user, results),
    )
    fail_unless_saved(results)


@command(app, "search")
async def search(
    client: AsyncClient,
    output: Output,
    text: Annotated[str, typer.Argument(help="What to look for.")],
    user: User,
    limit: Annotated[int, typer.Option(help="Maximum number of results, 1 to 100.")] = 10,
    *,
    filters: Filters,
    min_score: Annotated[
        float | None, typer.Option(help="Minimum score, 0 to 1; a memory with 0.5 or more is relevant.")
    ] = None,
    cut: Annotated[
        Literal["none", "auto"], typer.Option(help="auto: only relevant results, possibly none; none: up to the limit.")
    ] = "none",
    messages: Annotated[
        bool, typer.Option("--messages", help="Always show messages too, not only if no memory is relevant.")
    ] = False,
    explain: Annotated[bool, typer.Option("--explain", help="Show the ranks and factors behind each score.")] = False,
    spaces: Spaces = None,
) -> None:
    """Search memories by meaning, keywords and graph; if none is relevant, also show messages."""
    options: dict[str, Any] = {**filters.as_fields(), **given_spaces(spaces)}
    response = await client.search(
        user, text, limit=limit, min_score=min_score, cut=cut, include_messages=True, explain=explain, **options
    )
    if not messages and response.has_fitting:
        response = response.model_copy(update={"messages": [], "evidence": []})
    output.show(response, *views.search_response(response, limit))


@command(app, "entity", views.lookup_response)
async def entity(
    client: AsyncClient,
    text: Annotated[str, typer.Argument(help="A name or alias, or a text that contains some.")],
    user: User,
    limit: Annotated[int, typer.Option(help="Maximum memories per entity, 1 to 200.")] = 20,
    valid_as_of: ValidAsOf = None,
    known_as_of: KnownAsOf = None,
    spaces: Spaces = None,
) -> object:
    """Look up entities by name and show what is known about them; no model, no embedding."""
    return await client.lookup(
        user, text, limit=limit, valid_as_of=valid_as_of, known_as_of=known_as_of, **given_spaces(spaces)
    )


MemoryId = Annotated[str, typer.Argument(metavar="ID", help="The memory's id, or its beginning.")]


@command(app, "history", views.VERSIONS)
async def history(client: AsyncClient, memory_id: MemoryId, user: User) -> object:
    """Show every version of a memory, oldest first, and why it ended."""
    return await client.history(user, await complete_memory_id(client, user, memory_id))


@command(app, "sessions", views.SESSIONS)
async def sessions(
    client: AsyncClient, user: User, limit: PageSize = 50, cursor: Cursor = None, space: Space = None
) -> object:
    """List the sessions of a user or a space, latest first."""
    return await client.sessions(user, limit=limit, cursor=cursor, space=space)


@command(app, "memories")
async def memories(
    client: AsyncClient,
    output: Output,
    user: User,
    *,
    filters: Filters,
    keyword: Annotated[str | None, typer.Option(help="Only statements that contain this text.")] = None,
    sort: Annotated[
        Literal["created_at", "-created_at", "importance", "-importance", "valid_at", "-valid_at"],
        typer.Option(help="The order; a leading minus sorts highest or latest first."),
    ] = "-created_at",
    limit: PageSize = 50,
    cursor: Cursor = None,
    spaces: Spaces = None,
) -> None:
    """List a user's memories by attributes, latest first; `search` finds them by meaning."""
    options: dict[str, Any] = {**filters.as_query(), **given_spaces(spaces)}
    page = await client.memories(user, keyword=keyword, sort=sort, limit=limit, cursor=cursor, **options)
    if page.items or keyword or cursor or filters.given or spaces or output.flags.json:
        output.show(page, *views.MEMORIES(page))
        return
    latest = (await client.sessions(user, limit=1)).items
    said = (await client.session_messages(user, latest[0].session_id, limit=limit)).items if latest else []
    output.show(page, *views.only_messages(latest[0].session_id, said) if said else views.MEMORIES(page))


@command(app, "get", views.memory_details)
async def get(client: AsyncClient, memory_id: MemoryId, user: User) -> object:
    """Show one memory with all its fields, deleted or not."""
    return await client.memory(user, await complete_memory_id(client, user, memory_id))


@command(app, "entities", views.ENTITIES)
async def entities(
    client: AsyncClient,
    user: User,
    query: Annotated[str | None, typer.Argument(help="Part of a name or alias.")] = None,
    type: Annotated[str | None, typer.Option(help="Only this type, such as Person.")] = None,
    limit: PageSize = 50,
    cursor: Cursor = None,
    spaces: Spaces = None,
) -> object:
    """List the people, places and things that a user's memories are about, by name."""
    return await client.entities(user, query=query, type=type, limit=limit, cursor=cursor, **given_spaces(spaces))


@command(app, "messages", views.MESSAGES)
async def messages(
    client: AsyncClient,
    session: Annotated[str, typer.Argument(help="The session's id, as `graphmem sessions` lists it.")],
    user: User,
    limit: PageSize = 50,
    cursor: Cursor = None,
    space: Space = None,
) -> object:
    """List the messages of a session, oldest first."""
    return await client.session_messages(user, session, limit=limit, cursor=cursor, space=space)


NO_VALUE = "none"
"""The option value for an absent time or domain."""


@command(app, "update")
async def update(
    client: AsyncClient,
    output: Output,
    memory_id: MemoryId,
    user: User,
    text: Annotated[str | None, typer.Argument(help="The corrected statement.")] = None,
    type: Annotated[str | None, typer.Option(help="preference, fact, plan, feeling, …")] = None,
    tag: Tags = None,
    metadata: Annotated[list[str] | None, typer.Option(help="KEY=VALUE; replaces the metadata; repeatable.")] = None,
    valid_at: Annotated[str | None, typer.Option(help="When it became true; none for unknown.")] = None,
    invalid_at: Annotated[str | None, typer.Option(help="When it stopped being true; none if it still is.")] = None,
    expires_at: Annotated[str | None, typer.Option(help="When reads stop returning it; none for never.")] = None,
    confidence: Annotated[float | None, typer.Option(help="0 to 1.")] = None,
    importance: Annotated[float | None, typer.Option(help="0 to 1.")] = None,
    domain: Annotated[str | None, typer.Option(help="Domain that it belongs to; none for the profile.")] = None,
    scope: Annotated[str | None, typer.Option(help="profile, domain or episodic.")] = None,
    if_version: Annotated[int | None, typer.Option(help="Change it only if this is its latest version.", min=1)] = None,
) -> None:
    """Correct a memory; the previous version stays in its history."""
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
    memory_id = await complete_memory_id(client, user, memory_id)
    memory = await client.update(user, memory_id, if_version=if_version, **changes)
    output.show(memory, *views.MEMORIES(memory), f"This is version {memory.version}.")


@command(app, "delete")
async def delete(
    client: AsyncClient,
    output: Output,
    memory_id: MemoryId,
    user: User,
    hard: Annotated[
        bool, typer.Option("--hard", help="Erase every version everywhere; this cannot be undone.")
    ] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="With --hard: do not ask for confirmation.")] = False,
) -> None:
    """Delete a memory and keep its history, or erase it with --hard."""
    from graphmem.runtime.short_ids import shorten_id

    if hard and not yes and not sys.stdin.isatty():
        raise InvalidInput("Erasing a memory cannot be undone: confirm it with --yes.")
    if not hard:
        ended = await client.delete(user, await complete_memory_id(client, user, memory_id))
        output.show(ended, f"The memory {shorten_id(ended.id)} is deleted; its history stays.")
        return
    memory = await client.memory(user, memory_id)
    if not yes:
        typer.confirm(f"Erase every version of {memory.content!r}?", abort=True, err=True)
    count = await client.erase_memory(user, memory.id)
    versions = "1 version" if count == 1 else f"{count} versions"
    output.show({"id": memory.id, "erased": count}, f"The memory {shorten_id(memory.id)} is erased: {versions}.")


@command(app, "resolve")
async def resolve(
    client: AsyncClient,
    output: Output,
    memory_id: Annotated[str, typer.Argument(metavar="ID", help="The contested memory.")],
    user: User,
    holds: Annotated[
        bool, typer.Option("--holds/--does-not-hold", help="Accept it: it replaces the memory that it contradicts.")
    ],
) -> None:
    """Accept or reject a contested memory; `graphmem contradictions` lists them, `graphmem revert` undoes it."""
    contested = await client.memory(user, memory_id)
    memory = await client.resolve(user, contested.id, holds=holds)
    said = "Accepted: it replaced the memory that it contradicts." if holds else "Rejected: it is retired."
    output.show(memory, *views.MEMORIES(memory), said)


@command(app, "revert")
async def revert(
    client: AsyncClient,
    output: Output,
    memory_id: Annotated[
        str, typer.Argument(metavar="ID", help="The memory that was replaced, or the one that replaced it.")
    ],
    user: User,
) -> None:
    """Undo a replacement: the replaced memory is current again, and its replacement is retired.

    A contested memory that was resolved is contested again.
    """
    from graphmem.memories.memory import MemoryStatus

    replaced = _find_replaced(await client.memory(user, memory_id))
    memory = await client.revert(user, replaced)
    outcome = "It is contested again" if memory.status is MemoryStatus.CONTESTED else "It is current again"
    output.show(memory, *views.MEMORIES(memory), f"{outcome}; `graphmem history` shows what happened.")


def _find_replaced(memory: Memory) -> str:
    """Return the id of the memory to restore, given it or its replacement."""
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


@command(app, "diff", views.CHANGES)
async def diff(
    client: AsyncClient,
    user: User,
    since: Annotated[str | None, typer.Option(help="Start time, such as 2025-06-01T12:00:00Z.")] = None,
    until: Annotated[str | None, typer.Option(help="End time, exclusive; defaults to now.")] = None,
    limit: PageSize = 50,
    cursor: Cursor = None,
    space: Space = None,
) -> object:
    """Show what graphmem learned, corrected, merged, deleted and restored between two times, oldest first."""
    return await client.changes(user, since=since, until=until, limit=limit, cursor=cursor, space=space)
