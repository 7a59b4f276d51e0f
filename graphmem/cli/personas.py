"""The persona of a user: show, set, clear."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from graphmem.cli.command import Output, Tenant, User, command
from graphmem.cli.startup import open_services

if TYPE_CHECKING:
    from graphmem.domain.search_models import Persona

app = typer.Typer(no_args_is_help=True)


@command(app, "show")
async def show(output: Output, user: User, tenant: Tenant = "default") -> None:
    """Show the weights that the user's searches use when they give none."""
    from graphmem.domain.identity import make_owner

    owner = make_owner(tenant, user)
    async with open_services(output) as services:
        _show(output, await services.retrieval.get_persona(owner))


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
    from graphmem.cli.key_values import parse_pairs

    await _set(output, user, tenant, parse_pairs(weights, example="preference=2"))


@command(app, "clear")
async def clear(output: Output, user: User, tenant: Tenant = "default") -> None:
    """Remove the weights of a user."""
    await _set(output, user, tenant, {})


async def _set(output: Output, user: str, tenant: str, weights: dict[str, str]) -> None:
    from graphmem.domain.identity import make_owner
    from graphmem.domain.search_models import Persona
    from graphmem.domain.validation import validate_input

    owner = make_owner(tenant, user)
    persona = validate_input(Persona, {"weights": weights})
    async with open_services(output) as services:
        _show(output, await services.retrieval.set_persona(owner, persona))


def _show(output: Output, persona: Persona) -> None:
    lines = [f"{name}: {weight:g}" for name, weight in persona.weights.items()]
    output.show(persona, "\n".join(lines) or "There is no persona: all types and tags count alike.")
