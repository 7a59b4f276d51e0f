"""Background jobs: retry one that failed."""

from __future__ import annotations

from typing import Annotated

import typer

from graphmem.cli.command import Output, Tenant, command
from graphmem.cli.startup import open_operations

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
    from graphmem.cli.jobs import wait_until_at_rest
    from graphmem.runtime.errors import GraphmemError

    async with open_operations(output, tenant, worker=True) as operations:
        job = await wait_until_at_rest(operations, await operations.retry_job(job_id, fresh=fresh))
    output.show(job, render_admin.jobs([job]))
    if job.status == "failed" or job.waits_until:
        again = "try again once the model answers" if job.waits_until else "give --fresh to start from its messages"
        raise GraphmemError(f"The job is not done ({job.error or job.reason}): {again}.")
