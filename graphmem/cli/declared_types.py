"""Declared types of memories and entities: show, set, clear."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Annotated, Any

import typer

from graphmem.cli.command import Output, command
from graphmem.cli.startup import open_operations

if TYPE_CHECKING:
    from graphmem.memories.declared_types import DeclaredTypes

app = typer.Typer(no_args_is_help=True)

Tenant = Annotated[str, typer.Option("--tenant", help="The tenant whose memories may have the types.")]


@command(app, "show")
async def show(output: Output, tenant: Tenant = "default") -> None:
    """Show the types of memories and entities that a tenant declared."""
    async with open_operations(output, tenant) as operations:
        _show(output, await operations.declared_types())


@command(app, "set")
async def set_types(
    output: Output,
    file: Annotated[str, typer.Argument(help="JSON or YAML with memory_types and entity_types; - is standard input.")],
    tenant: Tenant = "default",
) -> None:
    """Declare types of memories and entities, in place of those declared before."""
    from graphmem.cli.command import read_input
    from graphmem.user_data.formats import parse_structured_text

    text = await asyncio.to_thread(read_input, file)
    await _set(output, tenant, parse_structured_text(text.encode()))


@command(app, "clear")
async def clear(output: Output, tenant: Tenant = "default") -> None:
    """Remove the declared types of a tenant; memories that have them keep them."""
    await _set(output, tenant, {})


async def _set(output: Output, tenant: str, document: Any) -> None:
    from graphmem.memories.declared_types import DeclaredTypesIn
    from graphmem.runtime.validation import validate_input

    declared = validate_input(DeclaredTypesIn, document).model_dump(mode="json", exclude_unset=True)
    async with open_operations(output, tenant) as operations:
        _show(output, await operations.set_declared_types(**declared))


def _show(output: Output, types: DeclaredTypes) -> None:
    lines = [
        f"memory type {declared.name} ({declared.base}): {declared.description}" for declared in types.memory_types
    ]
    lines += [f"entity type {declared.name}: {declared.description}" for declared in types.entity_types]
    output.show(types, "\n".join(lines) or "There are no declared types.")
