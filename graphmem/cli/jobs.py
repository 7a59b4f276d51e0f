"""Background jobs: waiting for them, and retrying one that failed."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Annotated

import typer

from graphmem.cli.command import Output, Tenant, command
from graphmem.cli.startup import open_operations
from graphmem.client.waiting import LONGEST_PAUSE, wait_until_at_rest

if TYPE_CHECKING:
    from graphmem.client import AsyncClient
    from graphmem.consolidation.models import ConsolidationRun
    from graphmem.runtime.progress import ProgressCallback


async def wait_for_run(operations: AsyncClient, run_id: str, on_progress: ProgressCallback) -> ConsolidationRun:
    """Wait until the jobs of a run have ended or wait for a model; return the run with its changes.

    The job of one user's run has the id of the run; a run of all users has one job for each of its parts.
    """
    run = await operations.run(run_id)
    for job_id in [run.id] if run.user_id is not None else run.parts:
        while not (await operations.job(job_id)).is_at_rest:
            run = await operations.run(run_id)
            on_progress(run.batches_done, run.batches)
            await asyncio.sleep(LONGEST_PAUSE)
    run = await operations.run(run_id)
    on_progress(run.batches_done, run.batches)
    return run


app = typer.Typer(no_args_is_help=True)


@command(app, "retry")
async def retry(
    output: Output,
    job_id: Annotated[str, typer.Argument(help="The job's id.")],
    fresh: Annotated[
        bool, typer.Option("--fresh", help="Start from the messages: a model that has answered is asked again.")
    ] = False,
    tenant: Tenant = "default",
) -> None:
    """Run a failed job again from the step that failed, or end its wait for a model, and wait for its result."""
    from graphmem.cli import render_admin
    from graphmem.runtime.errors import GraphmemError

    async with open_operations(output, tenant, worker=True) as operations:
        job = await wait_until_at_rest(operations, await operations.retry_job(job_id, fresh=fresh))
    output.show(job, render_admin.jobs([job]))
    if job.status == "failed" or job.waits_until:
        again = "try again once the model answers" if job.waits_until else "give --fresh to start from its messages"
        raise GraphmemError(f"The job is not done ({job.error or job.reason}): {again}.")
