"""The end and the summaries of sessions: close, summarize, archives."""

from __future__ import annotations

from typing import Annotated

import typer

from graphmem.cli.command import Output, Tenant, User, command
from graphmem.cli.failures import EXIT_FAILED
from graphmem.cli.jobs import failed_jobs, wait_for_job
from graphmem.cli.startup import open_operations

app = typer.Typer()


@command(app, "close")
async def close(
    output: Output,
    session: Annotated[str, typer.Argument(help="The session's id.")],
    user: User,
    tenant: Tenant = "default",
) -> None:
    """Close a session: what is unread is extracted, what matters outlives it, and a long one is summarised."""
    from graphmem.cli import render

    async with open_operations(output, tenant) as operations:
        closed = await operations.close_session(user, session)
    note = f"Note: {closed.reason}." if closed.reason else "Its summary is queued."
    output.show(closed, render.sessions([closed]), note)


@command(app, "summarize")
async def summarize(
    output: Output,
    session: Annotated[str, typer.Argument(help="The session's id.")],
    user: User,
    tenant: Tenant = "default",
) -> None:
    """Summarise a session and remember the summary and its takeaways."""
    from graphmem.cli import render_admin

    async with open_operations(output, tenant, worker=True) as operations:
        queued = await operations.summarize_session(user, session)
        job = await wait_for_job(operations, queued.id)
    output.show(job, render_admin.jobs([job]))
    if failed_jobs([job]):
        raise typer.Exit(EXIT_FAILED)


@command(app, "archives")
async def archives(
    output: Output,
    session: Annotated[str, typer.Argument(help="The session's id.")],
    user: User,
    tenant: Tenant = "default",
) -> None:
    """List the summaries that replaced old messages of a session."""
    from graphmem.cli import render_learned

    async with open_operations(output, tenant) as operations:
        stored = await operations.session_archives(user, session)
    output.show({"items": stored}, render_learned.archives(stored))
