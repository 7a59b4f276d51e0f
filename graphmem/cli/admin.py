"""Administration: consolidation, rollback, maintenance, re-embedding, background jobs, and the graphs of tenants."""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

from graphmem.cli import views
from graphmem.cli.command import EXIT_FAILED, AnyUser, Cursor, Output, PageSize, command, read_json
from graphmem.cli.startup import complete_run_id, open_operations, progress_bar
from graphmem.client.waiting import LONGEST_PAUSE, wait_until_at_rest
from graphmem.runtime.errors import GraphmemError, InvalidInput

if TYPE_CHECKING:
    from graphmem.client import AsyncClient
    from graphmem.consolidation.models import ConsolidationRun, RollbackPreview, RollbackResult
    from graphmem.runtime.progress import ProgressCallback
    from graphmem.runtime.settings import GraphAddress


app = typer.Typer()


TenantSpace = Annotated[str | None, typer.Option("--space", help="A space of the tenant, instead of a user.")]


@command(app, "consolidate", worker=True)
async def consolidate(
    client: AsyncClient,
    output: Output,
    user: AnyUser = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Change nothing; show what would change.")] = False,
    proposals: Annotated[
        str | None, typer.Option(help="A JSON file of curated proposals for one user; - reads standard input.")
    ] = None,
    space: TenantSpace = None,
) -> None:
    """Merge and link memories and tidy entities; `graphmem rollback` undoes it.

    A proposal is `{"action": "MERGE", "memory_ids": ["…", "…"], "content": "…", "reason": "…"}`, in a list.
    """
    from graphmem.consolidation.models import RunStatus, parse_proposals

    curated = parse_proposals(_read_proposal_list(proposals)) if proposals else None
    run_id = str(await client.consolidate(user, space=space, dry_run=dry_run, proposals=curated))
    with progress_bar(output, "Analysing", "batches") as on_progress:
        run = await _wait_for_run(client, run_id, on_progress)
    output.show(run, *views.consolidation_run(run))
    if run.status in (RunStatus.FAILED, RunStatus.ABORTED):
        raise typer.Exit(EXIT_FAILED)


def _read_proposal_list(file: str) -> list[Any]:
    document = read_json(file)
    proposals = document.get("proposals") if isinstance(document, dict) else document
    if not isinstance(proposals, list):
        raise InvalidInput(f"{file} does not contain a list of proposals.")
    return proposals


@command(app, "runs")
async def runs(
    client: AsyncClient,
    output: Output,
    run_id: Annotated[str | None, typer.Argument(metavar="[RUN]", help="One run, with its changes.")] = None,
    user: AnyUser = None,
    limit: PageSize = 20,
    cursor: Cursor = None,
    space: TenantSpace = None,
) -> None:
    """List consolidation runs, latest first, or show one."""
    if run_id is not None:
        run = await client.run(run_id)
        output.show(run, *views.consolidation_run(run))
        return
    page = await client.runs(user_id=user, space=space, limit=limit, cursor=cursor)
    output.show(page, *views.RUNS(page))


@command(app, "rollback")
async def rollback(
    client: AsyncClient,
    output: Output,
    run_id: Annotated[str, typer.Argument(metavar="RUN", help="The run to undo.")],
    force: Annotated[bool, typer.Option("--force", help="Overwrite later writes to the same memories.")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Change nothing; show what would change.")] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask for confirmation at a terminal.")] = False,
) -> None:
    """Undo a consolidation run and restore exactly what it changed."""
    asks = sys.stdin.isatty() and not yes  # a script has already decided, and a rollback can be rolled back
    run_id = await complete_run_id(client, run_id)
    if dry_run or asks:
        preview = cast("RollbackPreview", await client.rollback(run_id, dry_run=True))
        if dry_run:
            output.show(preview, *views.describe_rollback(preview))
            return
        for sentence in views.describe_rollback(preview):
            output.note(sentence)
        typer.confirm(f"Roll back run {run_id}?", abort=True, err=True)
    result = cast("RollbackResult", await client.rollback(run_id, force=force))
    output.show(result, *views.rollback(result))


@command(app, "maintain", worker=True)
async def maintain(
    client: AsyncClient,
    output: Output,
    tasks: Annotated[list[str] | None, typer.Argument(help="The tasks to run; defaults to all.")] = None,
) -> None:
    """Run maintenance now: decay, compress, prune, expire."""
    from graphmem.cli.tables import name_value_pairs
    from graphmem.consolidation.models import MaintenanceOut, MaintenanceTask

    unknown = [task for task in tasks or () if task not in [*MaintenanceTask]]
    if unknown:
        raise InvalidInput(f"There is no task {unknown[0]!r}: choose from {', '.join(MaintenanceTask)}.")
    chosen = [MaintenanceTask(task) for task in tasks or MaintenanceTask]
    results = await client.maintain(*chosen)
    shown = {task.value: _format_counts(counts) for task, counts in results.items()}
    output.show(MaintenanceOut(tasks=results), name_value_pairs(shown))


def _format_counts(counts: dict[str, int | str]) -> str:
    return ", ".join(f"{name.replace('_', ' ')} {count}" for name, count in counts.items()) or "nothing to do"


_POLL_SECONDS = 0.5
"""Seconds between two checks of the progress."""


@command(app, "reembed", worker=True)
async def reembed(
    client: AsyncClient,
    output: Output,
    model: Annotated[
        str | None,
        typer.Argument(metavar="[MODEL]", help="A model of the configured embedder; defaults to the configured one."),
    ] = None,
) -> None:
    """Replace all vectors by those of another embedding model while searches continue; run again to resume."""
    job = await client.reembed(model)
    with progress_bar(output, "Embedding", "texts") as on_progress:
        while not job.is_at_rest:
            status = await client.embedding()
            if status.job_id == job.id:
                on_progress(status.done or 0, status.total or 0)
            await asyncio.sleep(LONGEST_PAUSE)
            job = await client.job(job.id)
    if job.status != "succeeded":
        raise GraphmemError(f"The re-embedding has not ended: {job.error or job.reason}. Run the command again.")
    status = await client.embedding()
    output.show(job, f"All vectors are of {status.model} ({status.dimension} dimensions).")


async def _wait_for_run(client: AsyncClient, run_id: str, on_progress: ProgressCallback) -> ConsolidationRun:
    """Wait until the jobs of a run have ended or wait for a model; return the run with its changes.

    The job of a single user's run has the id of the run; a run of all users has one job per part.
    """
    run = await client.run(run_id)
    for job_id in [run.id] if run.user_id is not None else run.parts:
        while not (await client.job(job_id)).is_at_rest:
            run = await client.run(run_id)
            on_progress(run.batches_done, run.batches)
            await asyncio.sleep(LONGEST_PAUSE)
    run = await client.run(run_id)
    on_progress(run.batches_done, run.batches)
    return run


jobs_app = typer.Typer(no_args_is_help=True)


@command(jobs_app, "list", views.JOBS)
async def list_jobs(
    client: AsyncClient,
    user: Annotated[str | None, typer.Option("--user", "-u", help="Only jobs of this user.")] = None,
    space: Annotated[str | None, typer.Option(help="Only jobs of this space.")] = None,
    status: Annotated[
        str | None, typer.Option(help="Only jobs with this status: queued, running, succeeded, skipped or failed.")
    ] = None,
    limit: PageSize = 50,
    cursor: Cursor = None,
) -> object:
    """List background jobs, latest first."""
    return await client.jobs(user, space=space, status=status, limit=limit, cursor=cursor)


@command(jobs_app, "retry", worker=True)
async def retry(
    client: AsyncClient,
    output: Output,
    job_id: Annotated[str, typer.Argument(help="The job's id.")],
    fresh: Annotated[bool, typer.Option("--fresh", help="Start from the messages and ask the model again.")] = False,
) -> None:
    """Retry a failed job from the failed step, or end its wait for a model, and wait for the result."""
    job = await wait_until_at_rest(client, await client.retry_job(job_id, fresh=fresh))
    output.show(job, *views.INGESTED(job))
    if job.status == "failed" or job.waits_until:
        again = "try again once the model answers" if job.waits_until else "give --fresh to start from its messages"
        raise GraphmemError(f"The job is not done ({job.error or job.reason}): {again}.")


placement_app = typer.Typer(no_args_is_help=True)

POLL_SECONDS = 0.5
"""Seconds between two checks of a move."""

PLACEMENTS_FILE = "GRAPHMEM_PLACEMENTS_FILE"
"""The environment variable that names the file of the graphs."""

Wait = Annotated[bool, typer.Option("--wait/--no-wait", help="Wait until the move has ended.")]


@command(placement_app, "list", views.placements)
async def list_placements(client: AsyncClient) -> object:
    """List the graphs, whether they answer, and the tenants that were moved."""
    return await client.placements()


@command(placement_app, "move")
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


@command(placement_app, "drain")
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


@command(placement_app, "add")
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
