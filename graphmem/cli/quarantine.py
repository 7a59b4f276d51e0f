"""The quarantine: statements of texts that address the assistant instead of informing it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from graphmem.cli.command import Cursor, Output, Tenant, command
from graphmem.cli.startup import open_operations

if TYPE_CHECKING:
    from graphmem.client import AsyncClient

app = typer.Typer(no_args_is_help=True)

StatementId = Annotated[str, typer.Argument(metavar="ID", help="The statement's id, or its beginning.")]


@command(app, "list")
async def list_statements(
    output: Output,
    user: Annotated[str | None, typer.Option("--user", "-u", help="Of one user; absent: of all.")] = None,
    space: Annotated[str | None, typer.Option(help="Of one space.")] = None,
    tenant: Tenant = "default",
    limit: Annotated[int, typer.Option(min=1, max=200, help="How many.")] = 50,
    cursor: Cursor = None,
) -> None:
    """List what is in quarantine, the latest first, with the reason."""
    from graphmem.cli import render, render_admin

    async with open_operations(output, tenant) as operations:
        page = await operations.quarantine(user, space=space, limit=limit, cursor=cursor)
    output.show(page, render_admin.quarantine(page.items), *render.next_page(page))


@command(app, "release")
async def release(output: Output, statement_id: StatementId, tenant: Tenant = "default") -> None:
    """Save a statement as the memory that it would have been."""
    from graphmem.cli import render

    async with open_operations(output, tenant) as operations:
        result = await operations.release_quarantined(await _complete_id(operations, statement_id))
    output.show(result, render.save_results([result]))


@command(app, "drop")
async def drop(output: Output, statement_id: StatementId, tenant: Tenant = "default") -> None:
    """Erase a statement from the quarantine; the message that it is from stays."""
    async with open_operations(output, tenant) as operations:
        await operations.drop_quarantined(await _complete_id(operations, statement_id))
    output.show({}, "The statement is erased.")


async def _complete_id(operations: AsyncClient, given: str) -> str:
    """Return the id of the statement, among the latest of the tenant, whose id begins with a text."""
    from graphmem.runtime.short_ids import complete_id

    page = await operations.quarantine(limit=200)
    return complete_id(given, [statement.id for statement in page.items if statement.id.startswith(given)])
