"""What is stored of one user, without search: memories, get, entities, messages."""

from __future__ import annotations

from typing import Annotated, Literal

import typer

from graphmem.cli.command import (
    AboutEntity,
    Cursor,
    IncludeSuperseded,
    KnownAsOf,
    Metadata,
    MinConfidence,
    MinImportance,
    OnlyDomain,
    OnlyScope,
    OnlySubtype,
    OnlyTypes,
    Output,
    Tags,
    Tenant,
    User,
    ValidAsOf,
    command,
)
from graphmem.cli.key_values import parse_pairs
from graphmem.cli.startup import complete_memory_id, open_operations

app = typer.Typer()

PageSize = Annotated[int, typer.Option("--limit", min=1, max=200, help="How many.")]


@command(app, "memories")
async def memories(
    output: Output,
    user: User,
    tenant: Tenant = "default",
    type: OnlyTypes = None,
    subtype: OnlySubtype = None,
    tag: Tags = None,
    not_tag: Annotated[list[str] | None, typer.Option(help="None with this tag; repeat for several.")] = None,
    metadata: Metadata = None,
    domain: OnlyDomain = None,
    scope: OnlyScope = None,
    entity: AboutEntity = None,
    keyword: Annotated[str | None, typer.Option(help="Only statements that contain this text.")] = None,
    session: Annotated[str | None, typer.Option(help="Only from this session.")] = None,
    min_confidence: MinConfidence = None,
    min_importance: MinImportance = None,
    created_after: Annotated[str | None, typer.Option(help="Only those first saved after this time.")] = None,
    created_before: Annotated[str | None, typer.Option(help="Only those first saved before this time.")] = None,
    valid_as_of: ValidAsOf = None,
    known_as_of: KnownAsOf = None,
    include_superseded: IncludeSuperseded = False,
    sort: Annotated[
        Literal["created_at", "-created_at", "importance", "-importance", "valid_at", "-valid_at"],
        typer.Option(help="The order; a leading minus: the highest or latest first."),
    ] = "-created_at",
    limit: PageSize = 50,
    cursor: Cursor = None,
) -> None:
    """List a user's memories by attributes, the latest first; `search` finds them by meaning."""
    from graphmem.cli import render

    async with open_operations(output, tenant) as operations:
        page = await operations.memories(
            user,
            type=type or [],
            subtype=subtype,
            tag=tag or [],
            not_tag=not_tag or [],
            metadata=parse_pairs(metadata or [], example="--metadata file=plan.md"),
            domain=domain,
            scope=scope,
            entity=entity,
            keyword=keyword,
            session_id=session,
            min_confidence=min_confidence,
            min_importance=min_importance,
            created_after=created_after,
            created_before=created_before,
            valid_as_of=valid_as_of,
            known_as_of=known_as_of,
            include_superseded=include_superseded,
            sort=sort,
            limit=limit,
            cursor=cursor,
        )
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
) -> None:
    """List the people, places and things that a user's memories are about, by name."""
    from graphmem.cli import render

    async with open_operations(output, tenant) as operations:
        page = await operations.entities(user, query=query, type=type, limit=limit, cursor=cursor)
    output.show(page, render.entities(page.items), *render.next_page(page))


@command(app, "messages")
async def messages(
    output: Output,
    session: Annotated[str, typer.Argument(help="The session's id, as `graphmem sessions` lists it.")],
    user: User,
    tenant: Tenant = "default",
    limit: PageSize = 50,
    cursor: Cursor = None,
) -> None:
    """List the messages of a session, oldest first."""
    from graphmem.cli import render

    async with open_operations(output, tenant) as operations:
        page = await operations.session_messages(user, session, limit=limit, cursor=cursor)
    output.show(page, render.messages(page.items), *render.next_page(page))
