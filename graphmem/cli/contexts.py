"""Answers, contexts for prompts, and their parts: profile, intents, items, persona, learned preferences."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

from graphmem.cli import views
from graphmem.cli.command import (
    KnownAsOf,
    MinTrust,
    Output,
    Spaces,
    User,
    ValidAsOf,
    command,
    given_spaces,
    parse_pairs,
)

if TYPE_CHECKING:
    from graphmem.client import AsyncClient
    from graphmem.tenants.trust import StatedKind


app = typer.Typer()


@command(app, "ask", views.answer)
async def ask(
    client: AsyncClient,
    question: Annotated[str, typer.Argument(help="The question.")],
    user: User,
    session: Annotated[str | None, typer.Option(help="The session of the question.")] = None,
    token_budget: Annotated[int, typer.Option(help="Maximum tokens of question and sources per model call.")] = 2000,
    valid_as_of: ValidAsOf = None,
    known_as_of: KnownAsOf = None,
    min_trust: MinTrust = None,
    spaces: Spaces = None,
    space: Annotated[str | None, typer.Option(help="The space that shares the session.")] = None,
) -> object:
    """Answer a question from memory and cite the sources; needs a language model."""
    return await client.ask(
        user,
        question,
        session_id=session,
        token_budget=token_budget,
        valid_as_of=valid_as_of,
        known_as_of=known_as_of,
        min_trust=cast("StatedKind | None", min_trust),
        space=space,
        **given_spaces(spaces),
    )


@command(app, "context", views.context)
async def context(
    client: AsyncClient,
    user: User,
    question: Annotated[
        str | None,
        typer.Argument(help="The question; without one, the context for the start of a conversation."),
    ] = None,
    session: Annotated[str | None, typer.Option(help="The session of the question.")] = None,
    domain: Annotated[str | None, typer.Option(help="The domain of the question.")] = None,
    tag: Annotated[list[str] | None, typer.Option(help="Only memories with this tag; repeatable.")] = None,
    not_tag: Annotated[list[str] | None, typer.Option(help="Only memories without this tag; repeatable.")] = None,
    token_budget: Annotated[int, typer.Option(help="Maximum tokens of context and question.")] = 2000,
    sources: Annotated[bool, typer.Option("--sources", help="Show when and where each memory was stated.")] = False,
    recent_messages: Annotated[
        bool,
        typer.Option("--recent-messages/--no-recent-messages", help="Include the last messages of the session."),
    ] = True,
    valid_as_of: ValidAsOf = None,
    known_as_of: KnownAsOf = None,
    spaces: Spaces = None,
) -> object:
    """Show the context for the model's prompt, and hints for the reply."""
    return await client.context(
        user,
        question,
        session_id=session,
        domain=domain,
        tags={"all": tag or [], "none": not_tag or []} if tag or not_tag else None,
        token_budget=token_budget,
        sources=sources,
        recent_messages=recent_messages,
        valid_as_of=valid_as_of,
        known_as_of=known_as_of,
        **given_spaces(spaces),
    )


@command(app, "enhance", lambda enhanced: [enhanced.text])
async def enhance(
    client: AsyncClient,
    reply: Annotated[str, typer.Argument(help="The draft of the reply.")],
    user: User,
    session: Annotated[str, typer.Option(help="The session that the reply belongs to.")],
    question: Annotated[str | None, typer.Option(help="The question that the reply answers.")] = None,
    source: Annotated[
        list[str] | None,
        typer.Option(help="A source of the reply: a memory or message id, or other text; repeatable."),
    ] = None,
) -> object:
    """Adapt a draft reply to the user: continuity, style, an example, follow-ups, sources."""
    return await client.enhance(user, session, reply=reply, question=question, sources=source or [])


@command(app, "profile", views.profile)
async def profile(
    client: AsyncClient,
    user: User,
    domain: Annotated[str | None, typer.Option(help="Include memories of this domain.")] = None,
) -> object:
    """Show the user's profile by memory type."""
    return await client.profile(user, domain=domain)


@command(app, "intents", views.INTENTS)
async def intents(client: AsyncClient, user: User) -> object:
    """List the intents learned from feedback, with the database queries that answered them well."""
    return await client.intents(user)


@command(app, "preferences", views.PREFERENCES)
async def preferences(client: AsyncClient, user: User) -> object:
    """List the user's style preferences, as learned from messages and feedback."""
    return await client.preferences(user)


@command(app, "patterns", views.PATTERNS)
async def patterns(client: AsyncClient, user: User) -> object:
    """List the behavioural patterns detected in the user's messages."""
    return await client.patterns(user)


@command(app, "contradictions", views.CONTRADICTIONS)
async def contradictions(client: AsyncClient, user: User) -> object:
    """List the memories that cannot all be true, as consolidation runs reported them."""
    return await client.contradictions(user)


items_app = typer.Typer(no_args_is_help=True)


@command(items_app, "list", views.CONTEXT_ITEMS)
async def list_items(
    client: AsyncClient,
    user: User,
    session: Annotated[str | None, typer.Option(help="Only items of this session.")] = None,
) -> object:
    """List unexpired context items: what recent messages mention, and what was stated."""
    return await client.contexts(user, session_id=session)


@command(items_app, "add", views.CONTEXT_ITEMS)
async def add_item(
    client: AsyncClient,
    type: Annotated[str, typer.Argument(help="topic, preference, goal, or a type of your own.")],
    key: Annotated[str, typer.Argument(help="What it is about; replaces an item of the same type and key.")],
    value: Annotated[str, typer.Argument(help="The text that contexts include.")],
    user: User,
    relevance: Annotated[float, typer.Option(help="0 to 1.")] = 0.8,
    ttl: Annotated[int, typer.Option(help="Seconds until it expires.")] = 7200,
    session: Annotated[
        str | None, typer.Option(help="Only for this session; defaults to all sessions of the user.")
    ] = None,
) -> object:
    """State a topic, preference or goal that contexts use for a time."""
    return await client.add_context(
        user, type=type, key=key, value=value, relevance=relevance, ttl=ttl, session_id=session
    )


@command(items_app, "delete")
async def delete_item(
    client: AsyncClient,
    output: Output,
    item_id: Annotated[str, typer.Argument(help="The item's id, or its beginning.")],
    user: User,
) -> None:
    """Delete a context item before it expires."""
    from graphmem.runtime.short_ids import complete_id

    known = [item.id for item in await client.contexts(user)]
    item_id = complete_id(item_id, [other for other in known if other.startswith(item_id)])
    await client.delete_context(user, item_id)
    output.show({}, f"The context item {item_id} is deleted.")


persona_app = typer.Typer(no_args_is_help=True)


@command(persona_app, "show", views.persona)
async def show_persona(client: AsyncClient, user: User) -> object:
    """Show the weights that the user's searches use when they give none."""
    return await client.persona(user)


@command(persona_app, "set", views.persona)
async def set_weights(
    client: AsyncClient,
    weights: Annotated[
        list[str], typer.Argument(help="TYPE=WEIGHT or TAG=WEIGHT, such as preference=2; 1 is neutral.")
    ],
    user: User,
) -> object:
    """Set the weights by memory type or tag; replaces earlier weights."""
    # `Persona` reads the numbers and reports an invalid weight.
    return await client.set_persona(user, cast("Any", parse_pairs(weights, example="preference=2")))


@command(persona_app, "clear", views.persona)
async def clear_persona(client: AsyncClient, user: User) -> object:
    """Remove the weights of a user."""
    return await client.set_persona(user, {})
