"""Everything of a user out, in again, and gone."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Annotated, Literal

import typer

from graphmem.cli.command import Output, Tenant, User, command, exit_with_error
from graphmem.cli.progress import progress_bar
from graphmem.cli.startup import open_memory
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
    from graphmem.domain.identity import make_owner

    owner = make_owner(tenant, user)
    async with open_memory(output) as memory:
        with progress_bar(output, "Exporting") as advance:
            chunks = memory.transfer.stream_export(owner, format, progress=advance)
            if file == "-":
                async for chunk in chunks:
                    sys.stdout.buffer.write(chunk)
                return
            size = await _write_atomically(Path(file), chunks)
    output.show({"file": file, "bytes": size}, f"Exported {size} bytes to {file}.")


@command(app, "import")
async def import_(
    output: Output,
    user: User,
    file: Annotated[str, typer.Argument(help="An export or a chat log; - reads standard input.")] = "-",
    tenant: Tenant = "default",
    format: Annotated[
        Literal["auto", "graphmem", "mem0", "graphiti", "openai"],
        typer.Option(help="Whose format it has; auto: told by its shape."),
    ] = "auto",
) -> None:
    """Read an export back, or take what one of mem0, of Graphiti or a chat log in OpenAI's form holds.

    The messages of a chat log are read in this process, as with `graphmem ingest`.
    """
    from graphmem.cli import render
    from graphmem.cli.ingest import read_input, wait_for_job
    from graphmem.domain.formats.document import ImportFormat, parse_document
    from graphmem.domain.identity import make_owner

    owner = make_owner(tenant, user)
    text = await asyncio.to_thread(read_input, file)
    form, document = parse_document(text.encode(), ImportFormat(format))
    async with open_memory(output, worker=form is ImportFormat.OPENAI) as memory:
        with progress_bar(output, "Importing") as advance:
            done = await memory.transfer.import_parsed(owner, form, document, actor="cli", progress=advance)
        jobs = [await wait_for_job(memory, job_id) for job_id in done.jobs]
    output.show(done, render.import_result(done), *([render.jobs(jobs)] if jobs else []))
    for each in done.refused:
        output.note(f"not taken: {'.'.join(map(str, each.loc))}: {each.reason}")
    if any(job.status == "failed" for job in jobs):
        exit_with_error("Some of the messages could not be read: run the same command again to retry them.")


@command(app, "forget")
async def forget(
    output: Output,
    user: User,
    tenant: Tenant = "default",
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
) -> None:
    """Erase everything of a user everywhere, then search for residue; this cannot be undone."""
    from graphmem.cli import render
    from graphmem.domain.identity import make_owner

    owner = make_owner(tenant, user)
    if not yes:
        if not sys.stdin.isatty():
            raise InvalidInput("Forgetting cannot be undone: confirm it with --yes.")
        typer.confirm(f"Erase everything of user {user!r} of tenant {tenant!r}?", abort=True, err=True)
    async with open_memory(output) as memory:
        done = await memory.transfer.forget(owner)
    output.show(done, render.forget_result(done))
    if done.residue:
        exit_with_error(f"{done.residue} traces of the user are left: run the same command again.")


async def _write_atomically(path: Path, chunks: AsyncIterator[bytes]) -> int:
    """Put a file into place as a whole, readable by its owner only; return its size in bytes."""
    draft = path.with_name(f".{path.name}.part")
    try:
        draft.touch(mode=0o600)
        with draft.open("wb") as file:
            async for chunk in chunks:
                file.write(chunk)
            size = file.tell()
        draft.replace(path)
    except OSError as error:
        raise InvalidInput(f"{path} cannot be written: {error.strerror or error}.") from error
    finally:
        draft.unlink(missing_ok=True)
    return size
