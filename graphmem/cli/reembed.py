"""Changing the embedding model of the database."""

from __future__ import annotations

from typing import Annotated

import typer

from graphmem.cli.command import Output, Tenant, command
from graphmem.cli.progress import progress_bar
from graphmem.cli.startup import open_services

app = typer.Typer()

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
