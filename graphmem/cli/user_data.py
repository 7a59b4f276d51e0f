"""`graphmem export`: writing all data of a user."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Literal

import typer

from graphmem.cli.command import Output, Tenant, User, command
from graphmem.cli.files import STANDARD_STREAM, write_atomically
from graphmem.cli.progress import progress_bar
from graphmem.cli.startup import open_services

app = typer.Typer()


@command(app, "export")
async def export(
    output: Output,
    user: User,
    file: Annotated[str, typer.Argument(help="The file to write; - writes to standard output.")] = STANDARD_STREAM,
    tenant: Tenant = "default",
    format: Annotated[Literal["json", "yaml"], typer.Option(help="json or yaml.")] = "json",
    view: Annotated[
        Literal["full", "records"], typer.Option(help="records: the current memories, to read, edit and import again.")
    ] = "full",
) -> None:
    """Write all data of a user, without loss, or their current memories as records."""
    from graphmem.tenants.owners import make_owner

    owner = make_owner(tenant, user)
    async with open_services(output) as services:
        with progress_bar(output, "Exporting") as on_progress:
            chunks = services.exports.stream_view(owner, format, view, progress=on_progress)
            if file == STANDARD_STREAM:
                async for chunk in chunks:
                    sys.stdout.buffer.write(chunk)
                return
            size = await write_atomically(Path(file), chunks)
    output.show({"file": file, "bytes": size}, f"Exported {size} bytes to {file}.")
