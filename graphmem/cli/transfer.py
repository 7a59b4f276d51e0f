"""Everything of a user out, in again, and gone."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from typing import Annotated, Literal

import typer

from graphmem.cli.command import Output, Tenant, User, command, stop
from graphmem.cli.opening import opened
from graphmem.errors import InvalidInput

app = typer.Typer()


@command(app, "export")
async def export(
    output: Output,
    user: User,
    file: Annotated[str, typer.Argument(help="The file to write; - writes to standard output.")] = "-",
    tenant: Tenant = "default",
    format: Annotated[Literal["json", "yaml"], typer.Option(help="json or yaml.")] = "json",
) -> None:
    """Write everything of a user, losslessly."""
    from graphmem.domain.identity import owner_of

    owner = owner_of(tenant, user)
    async with opened(output) as memory:
        raw = await memory.transfer.export(owner, format)
    if file == "-":
        sys.stdout.buffer.write(raw)
        return
    await asyncio.to_thread(_write, Path(file), raw)
    output.show({"file": file, "bytes": len(raw)}, f"Exported {len(raw)} bytes to {file}.")


@command(app, "import")
async def import_(
    output: Output,
    user: User,
    file: Annotated[str, typer.Argument(help="An export; - reads standard input.")] = "-",
    tenant: Tenant = "default",
) -> None:
    """Read an export back; ids stay when they are free."""
    from graphmem.cli import render
    from graphmem.cli.ingest import read_input
    from graphmem.domain.identity import owner_of

    owner = owner_of(tenant, user)
    text = await asyncio.to_thread(read_input, file)
    async with opened(output) as memory:
        done = await memory.transfer.import_(owner, text.encode(), actor="cli")
    output.show(done, render.imported(done))


@command(app, "forget")
async def forget(
    output: Output,
    user: User,
    tenant: Tenant = "default",
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
) -> None:
    """Erase everything of a user everywhere, then search for residue; this cannot be undone."""
    from graphmem.cli import render
    from graphmem.domain.identity import owner_of

    owner = owner_of(tenant, user)
    if not yes:
        if not sys.stdin.isatty():
            raise InvalidInput("Forgetting cannot be undone: confirm it with --yes.")
        typer.confirm(f"Erase everything of user {user!r} of tenant {tenant!r}?", abort=True, err=True)
    async with opened(output) as memory:
        done = await memory.transfer.forget(owner)
    output.show(done, render.forgotten(done))
    if done.residue:
        stop(f"{done.residue} traces of the user are left: run the same command again.")


def _write(path: Path, raw: bytes) -> None:
    """Put a file into place as a whole, readable by its owner only."""
    draft = path.with_name(f".{path.name}.part")
    try:
        draft.touch(mode=0o600)
        draft.write_bytes(raw)
        draft.replace(path)
    except OSError as error:
        draft.unlink(missing_ok=True)
        raise InvalidInput(f"{path} cannot be written: {error.strerror or error}.") from error
