"""Memories of one user: add, search, entity, history, sessions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Literal

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

if TYPE_CHECKING:
    from graphmem.client.inputs import SearchOptions

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
    infer: Annotated[bool, typer.Option("--infer", help="Let a model compare it with what is known.")] = False,
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
    }
    if type is not None:
        statement["type"] = type
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
    type: OnlyTypes = None,
    subtype: OnlySubtype = None,
    tag: Tags = None,
    domain: OnlyDomain = None,
    scope: OnlyScope = None,
    entity: AboutEntity = None,
    min_confidence: MinConfidence = None,
    min_importance: MinImportance = None,
    min_score: Annotated[float | None, typer.Option(help="Least score, 0 to 1; from 0.5 a memory fits.")] = None,
    cut: Annotated[
        Literal["none", "auto"], typer.Option(help="auto: only what fits, possibly nothing; none: up to the limit.")
    ] = "none",
    metadata: Metadata = None,
    valid_as_of: ValidAsOf = None,
    known_as_of: KnownAsOf = None,
    include_superseded: IncludeSuperseded = False,
    messages: Annotated[bool, typer.Option("--messages", help="Also search the messages themselves.")] = False,
    explain: Annotated[bool, typer.Option("--explain", help="Show the ranks and factors behind each score.")] = False,
) -> None:
    """Search memories by meaning, keywords and graph."""
    from graphmem.cli import render

    options: SearchOptions = {
        "limit": limit,
        "types": type,
        "subtype": subtype,
        "tags": {"all": tag} if tag else None,
        "domain": domain,
        "scope": scope,
        "entity": entity,
        "min_confidence": min_confidence,
        "min_importance": min_importance,
        "valid_as_of": valid_as_of,
        "known_as_of": known_as_of,
        "min_score": min_score,
        "cut": cut,
        "metadata": parse_pairs(metadata or [], example="--metadata file=plan.md"),
        "include_superseded": include_superseded,
        "include_messages": messages,
        "explain": explain,
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
) -> None:
    """Look up entities by name and show what is known about them; no model, no embedding."""
    from graphmem.cli import render

    async with open_operations(output, tenant) as operations:
        response = await operations.lookup(user, text, limit=limit, valid_as_of=valid_as_of, known_as_of=known_as_of)
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
) -> None:
    """List the user's sessions, the latest first."""
    from graphmem.cli import render

    async with open_operations(output, tenant) as operations:
        page = await operations.sessions(user, limit=limit, cursor=cursor)
    output.show(page, render.sessions(page.items), *render.next_page(page))
