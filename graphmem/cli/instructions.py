"""Custom instructions: show, set, clear."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Annotated

import typer

from graphmem.cli.command import Output, command
from graphmem.cli.startup import open_operations

if TYPE_CHECKING:
    from graphmem.tenants.owners import Instructions

app = typer.Typer(no_args_is_help=True)

Tenant = Annotated[str, typer.Option("--tenant", help="The tenant whose memories the instructions are for.")]


@command(app, "show")
async def show(output: Output, tenant: Tenant = "default") -> None:
    """Show what a tenant wants remembered, and what not."""
    async with open_operations(output, tenant) as operations:
        _show(output, await operations.instructions())


@command(app, "set")
async def set_text(
    output: Output,
    file: Annotated[str, typer.Argument(help="A text file; - is standard input.")],
    tenant: Tenant = "default",
) -> None:
    """Set what a tenant wants remembered, and what not."""
    from graphmem.cli.command import read_input

    await _set(output, tenant, await asyncio.to_thread(read_input, file))


@command(app, "clear")
async def clear(output: Output, tenant: Tenant = "default") -> None:
    """Remove the instructions of a tenant."""
    await _set(output, tenant, "")


async def _set(output: Output, tenant: str, text: str) -> None:
    async with open_operations(output, tenant) as operations:
        _show(output, await operations.set_instructions(text))


def _show(output: Output, instructions: Instructions) -> None:
    output.show(instructions, instructions.text or "There are no custom instructions.")
