"""The graphs in which tenants live: their list, adding one, and moving tenants between them."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from graphmem.cli import views
from graphmem.cli.command import Output, command
from graphmem.cli.startup import open_operations
from graphmem.runtime.errors import GraphmemError, InvalidInput

if TYPE_CHECKING:
    from graphmem.client import AsyncClient
    from graphmem.runtime.settings import GraphAddress

app = typer.Typer(no_args_is_help=True)

POLL_SECONDS = 0.5
"""Seconds between two looks at a move."""

PLACEMENTS_FILE = "GRAPHMEM_PLACEMENTS_FILE"
"""The environment variable that names the file of the graphs."""

Wait = Annotated[bool, typer.Option("--wait/--no-wait", help="Wait until the move has ended.")]


@command(app, "list", views.placements)
async def list_placements(client: AsyncClient) -> object:
    """List the graphs, whether they answer, and the tenants that were moved."""
    return await client.placements()


@command(app, "move")
async def move(
    output: Output,
    tenant: Annotated[str, typer.Argument(help="The tenant to move.")],
    graph: Annotated[str, typer.Argument(help="The target: a name of GRAPHMEM_PLACEMENTS, or home.")],
    wait: Wait = True,
) -> None:
    """Move a tenant to another graph while it is in use; run again to resume."""
    async with open_operations(output, tenant, worker=True) as operations:
        job = await operations.move_tenant(graph)
        while wait and not job.is_at_rest:
            await asyncio.sleep(POLL_SECONDS)
            job = await operations.job(job.id)
    if job.status == "failed":
        raise GraphmemError(f"The tenant was not moved: {job.error}")
    done = f"The tenant {tenant} lives in {graph}." if job.status == "succeeded" else f"The job {job.id} moves it."
    output.show(job, done)


@command(app, "drain")
async def drain(
    output: Output,
    graph: Annotated[str, typer.Argument(help="The graph to drain.")],
    to: Annotated[str, typer.Option(help="The target: a name of GRAPHMEM_PLACEMENTS, or home.")] = "home",
    wait: Wait = True,
) -> None:
    """Move all tenants of a graph to another one, so that you can remove it."""
    async with open_operations(output, "default", worker=True) as operations:
        jobs = (await operations.drain_graph(graph, to)).items
        for job in jobs if wait else ():
            while not (await operations.job(job.id)).is_at_rest:  # noqa: ASYNC110 - a worker ends it
                await asyncio.sleep(POLL_SECONDS)
        failed = [job.id for job in jobs if wait and (await operations.job(job.id)).status == "failed"]
        listed = await operations.placements()
    left = [tenant.tenant for tenant in listed.tenants if tenant.graph == graph]
    if failed or (wait and left):
        raise GraphmemError(
            f"Tenants that still live in {graph}: {', '.join(left) or 'none'}; jobs that failed: "
            f"{', '.join(failed) or 'none'}. The log says why; run the command again."
        )
    output.show(listed, f"{len(jobs)} tenants {'moved' if wait else 'move'} from {graph} to {to}.")


@command(app, "add")
async def add(
    output: Output,
    name: Annotated[str, typer.Argument(help="The name of the graph.")],
    uri: Annotated[str, typer.Argument(help="Its Bolt address, such as neo4j+s://host:7687.")],
    user: Annotated[str, typer.Option(help="User name.")] = "neo4j",
    password_file: Annotated[Path | None, typer.Option(help="File with the password.")] = None,
    database: Annotated[str, typer.Option(help="Database name.")] = "neo4j",
) -> None:
    """Add a graph to the file of GRAPHMEM_PLACEMENTS_FILE if it answers; then restart graphmem."""
    from graphmem.neo4j.driver import Graph
    from graphmem.runtime.settings import GraphAddress, Settings

    path = os.environ.get(PLACEMENTS_FILE)
    if not path:
        raise InvalidInput(
            f"Name a file in {PLACEMENTS_FILE} first, for graphmem and for this command; it is created where it is "
            "missing."
        )
    await asyncio.to_thread(_create, Path(path))
    address = GraphAddress(uri=uri, user=user, password_file=password_file, database=database)
    known = Settings().placements
    placements = Settings(placements={**known, name: address}).placements
    graph = Graph(address.uri, address.user, address.read_password(name), address.database)
    try:
        await graph.verify_connectivity()
    finally:
        await graph.close()
    await asyncio.to_thread(_write, Path(path), placements)
    output.show({"name": name, "uri": uri}, f"The graph {name} is added: start graphmem again to move tenants there.")


def _create(path: Path) -> None:
    if not path.exists():
        path.touch(mode=0o600)
        path.write_text("{}\n", "utf-8")


def _write(path: Path, placements: dict[str, GraphAddress]) -> None:
    import json

    from pydantic import SecretStr

    def dump(address: GraphAddress) -> dict[str, str]:
        found = address.model_dump(exclude_defaults=True)
        return {
            key: value.get_secret_value() if isinstance(value, SecretStr) else str(value)
            for key, value in found.items()
        }

    text = json.dumps({name: dump(address) for name, address in placements.items()}, indent=2)
    draft = path.with_name(f"{path.name}.new")
    draft.touch(mode=0o600)
    draft.write_text(f"{text}\n", "utf-8")
    draft.replace(path)
