"""What graphmem learned or reports without being asked: preferences, patterns, contradictions."""

from __future__ import annotations

import typer

from graphmem.cli.command import Output, Tenant, User, command
from graphmem.cli.startup import open_operations

app = typer.Typer()


@command(app, "preferences")
async def preferences(output: Output, user: User, tenant: Tenant = "default") -> None:
    """List how the user likes to be answered, as learned from messages and feedback."""
    from graphmem.cli import render_learned

    async with open_operations(output, tenant) as operations:
        learned = await operations.preferences(user)
    output.show({"items": learned}, render_learned.preferences(learned))


@command(app, "patterns")
async def patterns(output: Output, user: User, tenant: Tenant = "default") -> None:
    """List the behavioural patterns detected in the user's messages."""
    from graphmem.cli import render_learned

    async with open_operations(output, tenant) as operations:
        detected = await operations.patterns(user)
    output.show({"items": detected}, render_learned.patterns(detected))


@command(app, "contradictions")
async def contradictions(output: Output, user: User, tenant: Tenant = "default") -> None:
    """List the memories that cannot all be true, as consolidation runs reported them."""
    from graphmem.cli import render_learned

    async with open_operations(output, tenant) as operations:
        reported = await operations.contradictions(user)
    output.show({"items": reported}, render_learned.contradictions(reported))
