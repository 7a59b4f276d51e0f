"""`graphmem backup` and `graphmem restore`: the whole data folder."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from graphmem.cli.command import Output, command, read_settings

app = typer.Typer()


@command(app, "backup")
async def backup(
    output: Output,
    file: Annotated[Path, typer.Argument(help="The file to write; it must not exist.", show_default=False)],
) -> None:
    """Write all data of the embedded Neo4j and its jobs to a file; Neo4j pauses while its files are copied."""
    import graphmem
    from graphmem.user_data.backup import create_backup

    made = await create_backup(read_settings(), file, graphmem.__version__)
    output.show(made, f"Wrote {made.bytes} bytes to {made.file}.", *_hints(has_jobs=made.has_jobs))


@command(app, "restore")
async def restore(
    output: Output,
    file: Annotated[Path, typer.Argument(help="A file that `graphmem backup` wrote.", show_default=False)],
) -> None:
    """Restore a backup into a data folder that holds no data."""
    from graphmem.user_data.backup import restore_backup

    found = await restore_backup(read_settings(), file)
    forget_again = "Forget the users again whose receipts are later than the backup."
    output.show(found, f"Restored the backup of {found.created_at}. {forget_again}", *_hints(has_jobs=found.has_jobs))


def _hints(*, has_jobs: bool) -> list[str]:
    if has_jobs:
        return []
    return ["The backup has no jobs; if they are in Postgres, back them up and restore them with its own tools."]
