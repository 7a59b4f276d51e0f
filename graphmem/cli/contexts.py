"""Answers, contexts for prompts, and what they are made of: profile, intents, items, persona, what was learned."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, cast

import typer

from graphmem.cli.command import KnownAsOf, MinTrust, Output, Spaces, Tenant, User, ValidAsOf, command
from graphmem.cli.spaces import given_spaces
from graphmem.cli.startup import open_operations

if TYPE_CHECKING:
    from graphmem.search.models import Persona
    from graphmem.tenants.trust import StatedKind


app = typer.Typer()


@command(app, "ask")
async def ask(
    output: Output,
    question: Annotated[str, typer.Argument(help="The question.")],
    user: User,
    tenant: Tenant = "default",
    session: Annotated[str | None, typer.Option(help="The session of the question.")] = None,
    token_budget: Annotated[
        int, typer.Option(help="Most tokens of the question and of what the model is shown at once.")
    ] = 2000,
    valid_as_of: ValidAsOf = None,
    known_as_of: KnownAsOf = None,
    min_trust: MinTrust = None,
    spaces: Spaces = None,
    space: Annotated[str | None, typer.Option(help="The space that shares the session.")] = None,
) -> None:
    """Answer a question from memory and cite the sources; needs a language model."""
    from graphmem.cli import render

    async with open_operations(output, tenant) as operations:
        response = await operations.ask(
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
    output.show(response, *render.answer(response))


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
    spaces: Spaces = None,
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
            **given_spaces(spaces),
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


items_app = typer.Typer(no_args_is_help=True)


@command(items_app, "list")
async def list_items(
    output: Output,
    user: User,
    session: Annotated[str | None, typer.Option(help="Only those of this session.")] = None,
    tenant: Tenant = "default",
) -> None:
    """List what recent messages mention and what was stated, as long as it has not expired."""
    from graphmem.cli import render

    async with open_operations(output, tenant) as operations:
        items = await operations.contexts(user, session_id=session)
    output.show({"items": items}, render.context_items(items))


@command(items_app, "add")
async def add_item(
    output: Output,
    type: Annotated[str, typer.Argument(help="topic, preference, goal, or a type of your own.")],
    key: Annotated[str, typer.Argument(help="What it is about; it replaces one of the same type and key.")],
    value: Annotated[str, typer.Argument(help="What contexts are to say.")],
    user: User,
    relevance: Annotated[float, typer.Option(help="0 to 1.")] = 0.8,
    ttl: Annotated[int, typer.Option(help="Seconds until it expires.")] = 7200,
    session: Annotated[str | None, typer.Option(help="Only for this session; absent: for all of the user.")] = None,
    tenant: Tenant = "default",
) -> None:
    """State a topic, preference or goal that contexts use for a time."""
    from graphmem.cli import render

    async with open_operations(output, tenant) as operations:
        item = await operations.add_context(
            user, type=type, key=key, value=value, relevance=relevance, ttl=ttl, session_id=session
        )
    output.show(item, render.context_items([item]))


@command(items_app, "delete")
async def delete_item(
    output: Output,
    item_id: Annotated[str, typer.Argument(help="The item's id, or its beginning.")],
    user: User,
    tenant: Tenant = "default",
) -> None:
    """Delete a context item before it expires."""
    from graphmem.runtime.short_ids import complete_id

    async with open_operations(output, tenant) as operations:
        known = [item.id for item in await operations.contexts(user)]
        item_id = complete_id(item_id, [other for other in known if other.startswith(item_id)])
        await operations.delete_context(user, item_id)
    output.show({}, f"The context item {item_id} is deleted.")


persona_app = typer.Typer(no_args_is_help=True)


@command(persona_app, "show")
async def show_persona(output: Output, user: User, tenant: Tenant = "default") -> None:
    """Show the weights that the user's searches use when they give none."""
    async with open_operations(output, tenant) as operations:
        _show_persona(output, await operations.persona(user))


@command(persona_app, "set")
async def set_weights(
    output: Output,
    weights: Annotated[
        list[str], typer.Argument(help="TYPE=WEIGHT or TAG=WEIGHT, such as preference=2; 1 is neutral.")
    ],
    user: User,
    tenant: Tenant = "default",
) -> None:
    """Set the weights by memory type or tag, in place of those set before."""
    from graphmem.cli.command import parse_pairs

    await _set_persona(output, user, tenant, parse_pairs(weights, example="preference=2"))


@command(persona_app, "clear")
async def clear_persona(output: Output, user: User, tenant: Tenant = "default") -> None:
    """Remove the weights of a user."""
    await _set_persona(output, user, tenant, {})


async def _set_persona(output: Output, user: str, tenant: str, weights: Mapping[str, str]) -> None:
    async with open_operations(output, tenant) as operations:
        # The model of a persona reads numbers, and says which weight is none.
        _show_persona(output, await operations.set_persona(user, cast("Mapping[str, float]", weights)))


def _show_persona(output: Output, persona: Persona) -> None:
    lines = [f"{name}: {weight:g}" for name, weight in persona.weights.items()]
    output.show(persona, "\n".join(lines) or "There is no persona: all types and tags count alike.")
