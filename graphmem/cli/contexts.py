"""Context for the model's prompt, and what it is made of: profile, intents, what was learned."""

from __future__ import annotations

from typing import Annotated

import typer

from graphmem.cli.command import KnownAsOf, Output, Tenant, User, ValidAsOf, command
from graphmem.cli.startup import open_operations

app = typer.Typer()


@command(app, "context")
async def context(
    output: Output,
    user: User,
    question: Annotated[
        str | None,
        typer.Argument(help="The question that the model is to answer; absent: the start of a conversation."),
    ] = None,
    tenant: Tenant = "default",
    session: Annotated[str | None, typer.Option(help="The session of the question.")] = None,
    domain: Annotated[str | None, typer.Option(help="The domain of the question.")] = None,
    token_budget: Annotated[int, typer.Option(help="Most tokens of context and question.")] = 2000,
    sources: Annotated[bool, typer.Option("--sources", help="Show when and where each memory was said.")] = False,
    recent_messages: Annotated[
        bool,
        typer.Option(
            "--recent-messages/--no-recent-messages", help="Add the last messages of the session, or leave them out."
        ),
    ] = True,
    valid_as_of: ValidAsOf = None,
    known_as_of: KnownAsOf = None,
) -> None:
    """Show the context for the model's prompt, and hints for the reply."""
    from rich.text import Text

    from graphmem.cli import render

    async with open_operations(output, tenant) as operations:
        response = await operations.context(
            user,
            question,
            session_id=session,
            domain=domain,
            token_budget=token_budget,
            sources=sources,
            recent_messages=recent_messages,
            valid_as_of=valid_as_of,
            known_as_of=known_as_of,
        )
    tokens = Text(f"({response.token_count} tokens)", style="dim")
    output.show(response, Text(response.preamble), tokens, *render.hints(response.personalization_hints))


@command(app, "enhance")
async def enhance(
    output: Output,
    reply: Annotated[str, typer.Argument(help="The draft of the reply.")],
    user: User,
    session: Annotated[str, typer.Option(help="The session that the reply belongs to.")],
    tenant: Tenant = "default",
    question: Annotated[str | None, typer.Option(help="The question that the reply answers.")] = None,
    source: Annotated[
        list[str] | None,
        typer.Option(help="What it rests on: an id of a memory or message, or another source; repeat for several."),
    ] = None,
) -> None:
    """Adapt a draft reply to the user: continuity, style, an example, follow-ups, sources."""
    from rich.text import Text

    async with open_operations(output, tenant) as operations:
        enhanced = await operations.enhance(user, session, reply=reply, question=question, sources=source or [])
    output.show(enhanced, Text(enhanced.text))


@command(app, "profile")
async def profile(
    output: Output,
    user: User,
    tenant: Tenant = "default",
    domain: Annotated[str | None, typer.Option(help="Also the memories of this domain.")] = None,
) -> None:
    """Show the user's profile by type of memory, without search."""
    from graphmem.cli import render

    async with open_operations(output, tenant) as operations:
        found = await operations.profile(user, domain=domain)
    output.show(found, *render.profile(found))


@command(app, "intents")
async def intents(output: Output, user: User, tenant: Tenant = "default") -> None:
    """List the intents learned from feedback, with the database queries that answered each well."""
    from graphmem.cli import render

    async with open_operations(output, tenant) as operations:
        learned = await operations.intents(user)
    output.show({"items": learned}, render.intents(learned))


@command(app, "preferences")
async def preferences(output: Output, user: User, tenant: Tenant = "default") -> None:
    """List how the user likes to be answered, as learned from messages and feedback."""
    from graphmem.cli import render

    async with open_operations(output, tenant) as operations:
        learned = await operations.preferences(user)
    output.show({"items": learned}, render.preferences(learned))


@command(app, "patterns")
async def patterns(output: Output, user: User, tenant: Tenant = "default") -> None:
    """List the behavioural patterns detected in the user's messages."""
    from graphmem.cli import render

    async with open_operations(output, tenant) as operations:
        detected = await operations.patterns(user)
    output.show({"items": detected}, render.patterns(detected))


@command(app, "contradictions")
async def contradictions(output: Output, user: User, tenant: Tenant = "default") -> None:
    """List the memories that cannot all be true, as consolidation runs reported them."""
    from graphmem.cli import render

    async with open_operations(output, tenant) as operations:
        reported = await operations.contradictions(user)
    output.show({"items": reported}, render.contradictions(reported))
