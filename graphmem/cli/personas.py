"""The persona of a user: show, set, clear."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, cast

import typer

from graphmem.cli.command import Output, Tenant, User, command
from graphmem.cli.startup import open_operations

if TYPE_CHECKING:
    from graphmem.search.models import Persona

app = typer.Typer(no_args_is_help=True)


@command(app, "show")
async def show(output: Output, user: User, tenant: Tenant = "default") -> None:
    """Show the weights that the user's searches use when they give none."""
    async with open_operations(output, tenant) as operations:
        _show(output, await operations.persona(user))


@command(app, "set")
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

    await _set(output, user, tenant, parse_pairs(weights, example="preference=2"))


@command(app, "clear")
async def clear(output: Output, user: User, tenant: Tenant = "default") -> None:
    """Remove the weights of a user."""
    await _set(output, user, tenant, {})


async def _set(output: Output, user: str, tenant: str, weights: Mapping[str, str]) -> None:
    async with open_operations(output, tenant) as operations:
        # The model of a persona reads numbers, and says which weight is none.
        _show(output, await operations.set_persona(user, cast("Mapping[str, float]", weights)))


def _show(output: Output, persona: Persona) -> None:
    lines = [f"{name}: {weight:g}" for name, weight in persona.weights.items()]
    output.show(persona, "\n".join(lines) or "There is no persona: all types and tags count alike.")
