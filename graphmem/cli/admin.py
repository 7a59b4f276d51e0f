"""Administration: consolidation and its undoing, maintenance."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Annotated, Any

import typer

from graphmem.cli.command import AnyUser, Output, Tenant, command
from graphmem.cli.ingest import read_input
from graphmem.cli.startup import open_memory
from graphmem.errors import InvalidInput

app = typer.Typer()

MAINTENANCE_TASKS = ("decay", "compress", "prune", "expire")


@command(app, "consolidate")
async def consolidate(
    output: Output,
    user: AnyUser = None,
    tenant: Tenant = "default",
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Change nothing; show what would change.")] = False,
    proposals: Annotated[
        str | None, typer.Option(help="A JSON file of proposals curated by hand, for one user; - reads standard input.")
    ] = None,
) -> None:
    """Merge, link and tidy what has been learned, and keep how to undo it."""
    from graphmem.cli import render
    from graphmem.cli.diff import render_changes
    from graphmem.domain.consolidation_models import RunStatus, parse_proposals

    curated = parse_proposals(_read_proposal_list(proposals)) if proposals else None
    async with open_memory(output, worker=True) as memory:
        consolidations = memory.consolidations
        run_id = str(await consolidations.start(tenant, user_id=user, dry_run=dry_run, proposals=curated, actor="cli"))
        with _analysis_progress(output) as show:
            async for each in consolidations.follow(tenant, run_id):
                show(each.batches_done, each.batches)
        run = await consolidations.get(tenant, run_id)
    output.show(run, *render.run(run), *render_changes(run.changes))
    if run.status in (RunStatus.FAILED, RunStatus.ABORTED):
        raise typer.Exit(1)


@contextmanager
def _analysis_progress(output: Output) -> Iterator[Callable[[int, int], None]]:
    """Draw a bar of the batches analysed; the callback takes how many are done of how many there are."""
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (TextColumn("Analysing"), BarColumn(), MofNCompleteColumn(), TextColumn("batches"), TimeElapsedColumn())
    with Progress(*columns, console=output.stderr) as bar:
        task = bar.add_task("batches", total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)


def _read_proposal_list(file: str) -> list[Any]:
    try:
        given = json.loads(read_input(file))
    except (json.JSONDecodeError, RecursionError) as error:
        raise InvalidInput(f"{file} is not JSON.") from error
    given = given.get("proposals") if isinstance(given, dict) else given
    if not isinstance(given, list):
        raise InvalidInput(f"{file} holds no list of proposals.")
    return given


@command(app, "runs")
async def runs(
    output: Output,
    run_id: Annotated[str | None, typer.Argument(metavar="[RUN]", help="One run, with its changes.")] = None,
    user: AnyUser = None,
    tenant: Tenant = "default",
    limit: Annotated[int, typer.Option(min=1, max=200, help="How many.")] = 20,
) -> None:
    """List consolidation runs, the latest first, or show one."""
    from graphmem.cli import render
    from graphmem.cli.diff import render_changes

    async with open_memory(output) as memory:
        if run_id is not None:
            run = await memory.consolidations.get(tenant, run_id)
            output.show(run, *render.run(run), *render_changes(run.changes))
            return
        page = await memory.consolidations.page(tenant, user_id=user, limit=limit, cursor=None)
    output.show(page, render.runs(page.items))


@command(app, "rollback")
async def rollback(
    output: Output,
    run_id: Annotated[str, typer.Argument(metavar="RUN", help="The run to undo.")],
    tenant: Tenant = "default",
    force: Annotated[bool, typer.Option("--force", help="Also where later writes touched the same things.")] = False,
) -> None:
    """Undo a consolidation run: restore exactly what it changed."""
    from graphmem.cli import render

    async with open_memory(output) as memory:
        undone = await memory.consolidations.rollback(tenant, run_id, force=force, actor="cli")
    output.show(undone, *render.rollback(undone))


@command(app, "maintain")
async def maintain(
    output: Output,
    tasks: Annotated[list[str] | None, typer.Argument(help=f"Of {', '.join(MAINTENANCE_TASKS)}; absent: all.")] = None,
    tenant: Tenant = "default",
) -> None:
    """Run maintenance now: decay, compress, prune, expire."""
    from graphmem.cli import render

    unknown = [task for task in tasks or () if task not in MAINTENANCE_TASKS]
    if unknown:
        raise InvalidInput(f"There is no task {unknown[0]!r}: choose of {', '.join(MAINTENANCE_TASKS)}.")
    async with open_memory(output, worker=True) as memory:
        done = await memory.maintenance.run(tenant, list(tasks or MAINTENANCE_TASKS))
    output.show(
        {"tasks": done}, render.name_value_pairs({task: _format_counts(counts) for task, counts in done.items()})
    )


def _format_counts(counts: dict[str, Any]) -> str:
    return ", ".join(f"{name.replace('_', ' ')} {count}" for name, count in counts.items()) or "nothing to do"
