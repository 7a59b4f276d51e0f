"""Administration: consolidation, rollback, maintenance, re-embedding."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

from graphmem.cli.command import EXIT_FAILED, AnyUser, Cursor, Output, Tenant, command, read_json
from graphmem.cli.jobs import wait_for_run
from graphmem.cli.progress import progress_bar
from graphmem.cli.startup import complete_run_id, open_operations, open_services
from graphmem.consolidation.maintenance_tasks import MaintenanceTask
from graphmem.runtime.errors import InvalidInput

if TYPE_CHECKING:
    from graphmem.consolidation.models import RollbackPreview, RollbackResult


app = typer.Typer()


TenantSpace = Annotated[str | None, typer.Option("--space", help="A space of the tenant, instead of a user.")]


@command(app, "consolidate")
async def consolidate(
    output: Output,
    user: AnyUser = None,
    tenant: Tenant = "default",
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Change nothing; show what would change.")] = False,
    proposals: Annotated[
        str | None, typer.Option(help="A JSON file of curated proposals for one user; - reads standard input.")
    ] = None,
    space: TenantSpace = None,
) -> None:
    """Merge and link memories and tidy entities, so that it can be undone.

    A proposal is `{"action": "MERGE", "memory_ids": ["…", "…"], "content": "…", "reason": "…"}`, in a list.
    """
    from graphmem.cli import render_admin
    from graphmem.cli.render_runs import render_changes
    from graphmem.consolidation.models import RunStatus, parse_proposals

    curated = parse_proposals(_read_proposal_list(proposals)) if proposals else None
    async with open_operations(output, tenant, worker=True) as operations:
        run_id = str(await operations.consolidate(user, space=space, dry_run=dry_run, proposals=curated))
        with progress_bar(output, "Analysing", "batches") as on_progress:
            run = await wait_for_run(operations, run_id, on_progress)
    output.show(run, *render_admin.run(run), *render_changes(run.changes))
    if run.status in (RunStatus.FAILED, RunStatus.ABORTED):
        raise typer.Exit(EXIT_FAILED)


def _read_proposal_list(file: str) -> list[Any]:
    document = read_json(file)
    proposals = document.get("proposals") if isinstance(document, dict) else document
    if not isinstance(proposals, list):
        raise InvalidInput(f"{file} holds no list of proposals.")
    return proposals


@command(app, "runs")
async def runs(
    output: Output,
    run_id: Annotated[str | None, typer.Argument(metavar="[RUN]", help="One run, with its changes.")] = None,
    user: AnyUser = None,
    tenant: Tenant = "default",
    limit: Annotated[int, typer.Option(min=1, max=200, help="How many.")] = 20,
    cursor: Cursor = None,
    space: TenantSpace = None,
) -> None:
    """List consolidation runs, the latest first, or show one."""
    from graphmem.cli import render_admin
    from graphmem.cli.render import next_page
    from graphmem.cli.render_runs import render_changes

    async with open_operations(output, tenant) as operations:
        if run_id is not None:
            run = await operations.run(run_id)
            output.show(run, *render_admin.run(run), *render_changes(run.changes))
            return
        page = await operations.runs(user_id=user, space=space, limit=limit, cursor=cursor)
    output.show(page, render_admin.runs(page.items), *next_page(page))


@command(app, "rollback")
async def rollback(
    output: Output,
    run_id: Annotated[str, typer.Argument(metavar="RUN", help="The run to undo.")],
    tenant: Tenant = "default",
    force: Annotated[bool, typer.Option("--force", help="Overwrite later writes to the same memories.")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Change nothing; show what would change.")] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask for confirmation at a terminal.")] = False,
) -> None:
    """Undo a consolidation run: restore exactly what it changed."""
    from rich.text import Text

    from graphmem.cli import render_admin
    from graphmem.cli.render_runs import describe_rollback

    asks = sys.stdin.isatty() and not yes  # a script has decided, and a rollback can be rolled back
    async with open_operations(output, tenant) as operations:
        run_id = await complete_run_id(operations, run_id)
        if dry_run or asks:
            preview = cast("RollbackPreview", await operations.rollback(run_id, dry_run=True))
            if dry_run:
                output.show(preview, *map(Text, describe_rollback(preview)))
                return
            for sentence in describe_rollback(preview):
                output.note(sentence)
            typer.confirm(f"Roll back run {run_id}?", abort=True, err=True)
        result = cast("RollbackResult", await operations.rollback(run_id, force=force))
    output.show(result, *render_admin.rollback(result))


@command(app, "maintain")
async def maintain(
    output: Output,
    tasks: Annotated[
        list[str] | None, typer.Argument(help=f"Any of {', '.join(MaintenanceTask)}; absent: all.")
    ] = None,
    tenant: Tenant = "default",
) -> None:
    """Run maintenance now: decay, compress, prune, expire."""
    from graphmem.cli import render_admin
    from graphmem.consolidation.models import MaintenanceOut

    unknown = [task for task in tasks or () if task not in [*MaintenanceTask]]
    if unknown:
        raise InvalidInput(f"There is no task {unknown[0]!r}: choose from {', '.join(MaintenanceTask)}.")
    chosen = [MaintenanceTask(task) for task in tasks or MaintenanceTask]
    async with open_operations(output, tenant, worker=True) as operations:
        results = await operations.maintain(*chosen)
    shown = {task.value: _format_counts(counts) for task, counts in results.items()}
    output.show(MaintenanceOut(tasks=results), render_admin.name_value_pairs(shown))


def _format_counts(counts: dict[str, int | str]) -> str:
    return ", ".join(f"{name.replace('_', ' ')} {count}" for name, count in counts.items()) or "nothing to do"


_POLL_SECONDS = 0.5
"""Seconds between two looks at the progress."""


@command(app, "reembed")
async def reembed(
    output: Output,
    model: Annotated[
        str | None,
        typer.Argument(metavar="[MODEL]", help="A model of the configured embedder; absent: the configured one."),
    ] = None,
    tenant: Tenant = "default",
) -> None:
    """Replace all vectors by those of another embedding model, while searches go on; run again, it resumes."""
    from graphmem.runtime.errors import GraphmemError

    async with open_services(output, worker=True) as services:
        job = await services.reembedding.start(tenant, model)
        with progress_bar(output, "Embedding", "texts") as on_progress:
            while not job.is_at_rest:
                status = await services.reembedding.status()
                if status.job_id == job.id:
                    on_progress(status.done or 0, status.total or 0)
                job = await services.jobs.wait(job.id, _POLL_SECONDS)
        status = await services.reembedding.status()
    if job.status != "succeeded":
        raise GraphmemError(f"The re-embedding has not ended: {job.error or job.reason}. Run the command again.")
    output.show(job, f"All vectors are of {status.model} ({status.dimension} dimensions).")
