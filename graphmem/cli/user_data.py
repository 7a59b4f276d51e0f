"""All data of a user, or of the installation: export, import, backup, restore, forget."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal
from urllib.parse import quote

import typer

from graphmem.cli import views
from graphmem.cli.command import (
    STANDARD_STREAM,
    AnyUser,
    Output,
    Space,
    Tenant,
    User,
    Yes,
    command,
    exit_with_error,
    read_bytes,
    read_settings,
    write_atomically,
)
from graphmem.cli.startup import (
    confirm_erasure,
    describe_target,
    find_target,
    open_operations,
    open_services,
    progress_bar,
    refuse_server,
    report_erasure,
)
from graphmem.client.waiting import failed_jobs, wait_for_job
from graphmem.runtime.errors import ConfigurationError, InvalidInput, NotFound

if TYPE_CHECKING:
    from graphmem.client import AsyncClient
    from graphmem.jobs.job import Job
    from graphmem.tenants.owners import Owner
    from graphmem.user_data.models import ImportFormat, ImportResult, RejectedEntry

app = typer.Typer()


ALL_USERS_SUFFIX = ".json"
"""The suffix of export files in a folder; the rest of the name is the percent-encoded user id."""


@command(app, "export")
async def export(
    output: Output,
    file: Annotated[
        str, typer.Argument(help="The file to write, or without a user the folder; - writes to standard output.")
    ] = STANDARD_STREAM,
    user: AnyUser = None,
    tenant: Tenant = "default",
    format: Annotated[Literal["json", "yaml"], typer.Option(help="json or yaml.")] = "json",
    view: Annotated[
        Literal["full", "records"], typer.Option(help="records: the current memories, to edit and import again.")
    ] = "full",
    space: Space = None,
) -> None:
    """Write all data of a user or of a space, without loss, or the current memories as records.

    Without a user, all data of each user of the tenant is written into a folder, one file each, in JSON.
    """
    from graphmem.tenants.owners import make_owner

    if user is None:
        if file == STANDARD_STREAM or format != "json" or view != "full":
            raise InvalidInput("Without --user, give a folder for the full exports of all users, in JSON.")
        _refuse_remote(output, tenant, "all users are exported")
        await _export_all(output, tenant, Path(file))
        return
    owner = make_owner(tenant, user)
    if find_target(output.flags, read_settings(), tenant).is_remote:
        async with open_operations(output, tenant) as client:
            await _write_export(output, file, _once(await client.export(user, format=format, view=view, space=space)))
        return
    async with open_services(output) as services:
        owner = await services.rights.find_group(owner, None, space)
        with progress_bar(output, "Exporting") as on_progress:
            chunks = services.exports.stream_view(owner, format, view, progress=on_progress)
            await _write_export(output, file, chunks)


async def _write_export(output: Output, file: str, chunks: AsyncIterator[bytes]) -> None:
    """Write an export to a file or to standard output."""
    if file == STANDARD_STREAM:
        async for chunk in chunks:
            sys.stdout.buffer.write(chunk)
        return
    size = await write_atomically(Path(file), chunks)
    output.show({"file": file, "bytes": size}, f"Exported {size} bytes to {file}.")


async def _once(document: bytes) -> AsyncIterator[bytes]:
    yield document


def _refuse_remote(output: Output, tenant: str, action: str) -> None:
    """Raise ConfigurationError if a server and a key are set; `action` only works on this machine's data."""
    target = find_target(output.flags, read_settings(), tenant)
    if target.is_remote:
        raise ConfigurationError(
            f"This command would call {target.place}, and {action} only on the data of this machine: give --no-server."
        )


async def _export_all(output: Output, tenant: str, folder: Path) -> None:
    """Write an export of each user of a tenant to a folder."""
    from graphmem.tenants.users import UserStore

    await asyncio.to_thread(folder.mkdir, parents=True, exist_ok=True)
    async with open_services(output) as services:
        owners: list[Owner] = []
        users = UserStore(services.components.graph)
        while page := await users.list_owners(tenant, after=owners[-1].group_id if owners else ""):
            owners += page
        with progress_bar(output, "Exporting", unit="users") as on_progress:
            for number, owner in enumerate(owners, 1):
                name = f"{quote(owner.user_id, safe='')}{ALL_USERS_SUFFIX}"
                await write_atomically(folder / name, services.exports.stream(owner))
                on_progress(number, len(owners))
    output.show({"folder": str(folder), "users": len(owners)}, f"Exported {len(owners)} users to {folder}.")


@command(app, "import")
async def import_(
    output: Output,
    file: Annotated[
        str,
        typer.Argument(help="An export or a chat log, or without a user a folder of exports; - reads standard input."),
    ] = STANDARD_STREAM,
    user: AnyUser = None,
    tenant: Tenant = "default",
    format: Annotated[
        Literal["auto", "records", "graphmem", "graphiti", "mem0", "chat"],
        typer.Option(help="The format of the file; auto detects it."),
    ] = "auto",
    from_neo4j: Annotated[
        str,
        typer.Option(
            metavar="URI", help="Instead of a file: the address of a Neo4j with a Graphiti graph, which is only read."
        ),
    ] = "",
    group: Annotated[str, typer.Option(help="With --from-neo4j: the group_id of the facts.")] = "",
    source_user: Annotated[
        str, typer.Option(envvar="SOURCE_NEO4J_USER", help="With --from-neo4j: its user.")
    ] = "neo4j",
    source_password: Annotated[
        str,
        typer.Option(envvar="SOURCE_NEO4J_PASSWORD", help="With --from-neo4j: its password; set the variable."),
    ] = "",
    source_database: Annotated[str, typer.Option(help="With --from-neo4j: its database.")] = "neo4j",
    space: Space = None,
) -> None:
    """Import an export of graphmem, records, an export of mem0 or Graphiti, or a chat log.

    Without --user, each export in a folder is imported for its own user. An export of 64 MB or more is checked and then
    imported in parts; to resume after an interruption, run the command again. Memories are extracted from the messages
    of a chat log in this process, as with `graphmem ingest`.
    """
    from graphmem.tenants.owners import make_owner
    from graphmem.user_data.export_reader import is_export_file
    from graphmem.user_data.models import ImportFormat

    path = Path(file)
    if user is None:
        if not await asyncio.to_thread(path.is_dir):
            raise InvalidInput("Add --user, or give a folder of exports.")
        _refuse_remote(output, tenant, "a folder is imported")
        await _import_folder(output, tenant, path)
        return
    owner = make_owner(tenant, user)
    if find_target(output.flags, read_settings(), tenant).is_remote:
        if from_neo4j:
            _refuse_remote(output, tenant, "a live graph is imported")
        raw = await asyncio.to_thread(read_bytes, file)
        async with open_operations(output, tenant) as client:
            await _report_import(output, client, await client.import_(user, raw, format=format, space=space))
        return
    if not from_neo4j and format in ("auto", "graphmem") and await asyncio.to_thread(is_export_file, path):
        await _import_export(output, owner, space, path)
    elif from_neo4j:
        from graphmem.user_data.graphiti import read_graph

        document = await read_graph(from_neo4j, source_user, source_password, source_database, group)
        await _import_document(output, owner, space, ImportFormat.GRAPHITI, document)
    else:
        from graphmem.user_data.foreign import parse_document

        raw = await asyncio.to_thread(read_bytes, file)
        await _import_document(output, owner, space, *parse_document(raw, ImportFormat(format)))


async def _import_folder(output: Output, tenant: str, folder: Path) -> None:
    """Import each export in a folder for its own user; exit with an error if one failed."""
    async with open_services(output) as services:
        with progress_bar(output, "Importing", unit="users") as on_progress:
            imported = await services.export_imports.import_folder(tenant, folder, progress=on_progress)
    output.show(imported, *views.folder_import(imported))
    for entry in imported.refused:
        _note_refused(output, [entry], f"{entry.file}: ")
    if imported.failed:
        exit_with_error(f"{len(imported.failed)} files were not imported.")


async def _import_export(output: Output, owner: Owner, space: str | None, path: Path) -> None:
    """Import a JSON export; check a large one first, then import it in parts."""
    from graphmem.tenants.spaces import SpaceRole

    async with open_services(output) as services:
        with (
            progress_bar(output, "Checking", unit="bytes") as on_read,
            progress_bar(output, "Importing") as on_progress,
        ):
            group = await services.rights.find_group(owner, None, space, SpaceRole.WRITER)
            result = await services.export_imports.import_file(group, path, on_read=on_read, progress=on_progress)
    _note_refused(output, result.refused)
    output.show(result, *views.import_result(result))


async def _import_document(
    output: Output, owner: Owner, space: str | None, source_format: ImportFormat, document: Any
) -> None:
    """Import a document and wait for the extraction of its messages; exit with an error if some failed."""
    from graphmem.graph_memory import GraphMemory
    from graphmem.tenants.spaces import SpaceRole
    from graphmem.user_data.models import ImportFormat

    async with open_services(output, worker=source_format is ImportFormat.CHAT) as services:
        group = await services.rights.find_group(owner, None, space, SpaceRole.WRITER)
        with progress_bar(output, "Importing") as on_progress:
            result = await services.imports.import_parsed(
                group, source_format, document, actor="cli", progress=on_progress
            )
        await _report_import(output, GraphMemory(services, owner.tenant), result)


async def _report_import(output: Output, client: AsyncClient, result: ImportResult) -> None:
    """Wait for the extraction of imported messages; exit with an error if it failed or nothing was imported."""
    _note_refused(output, result.refused)
    jobs = await _wait_for_jobs(output, client, result.jobs) if result.jobs else []
    output.show(result, *views.import_result(result), *(views.INGESTED(jobs) if jobs else ()))
    if failed_jobs(jobs):
        exit_with_error("Extraction failed for some of the messages: run the same command again to retry.")
    if result.refused and not any([*result.imported.values(), *result.unchanged.values()]):
        exit_with_error("Nothing was imported.")


async def _wait_for_jobs(output: Output, client: AsyncClient, job_ids: Sequence[str]) -> list[Job]:
    """Return the jobs that extract from stored messages, once they have ended or wait for a model."""
    jobs: list[Job] = []
    with progress_bar(output, "Extracting", "batches") as on_progress:
        for job_id in job_ids:
            on_progress(len(jobs), len(job_ids))
            jobs.append(await wait_for_job(client, job_id))
        on_progress(len(jobs), len(job_ids))
    return jobs


def _note_refused(output: Output, refused: Iterable[RejectedEntry], place: str = "") -> None:
    for entry in refused:
        output.note(f"not imported: {place}{'.'.join(map(str, entry.loc))}: {entry.reason}")


@command(app, "backup")
async def backup(
    output: Output,
    file: Annotated[Path, typer.Argument(help="The file to write; it must not exist.", show_default=False)],
) -> None:
    """Write all data of the embedded Neo4j and its jobs to a file; Neo4j pauses while its files are copied."""
    import graphmem
    from graphmem.user_data.backup import create_backup

    settings = read_settings()
    refuse_server(output, settings, "`graphmem backup` works")
    made = await create_backup(settings, file, graphmem.__version__)
    output.show(made, f"Wrote {made.bytes} bytes to {made.file}.", *_hints(has_jobs=made.has_jobs))


@command(app, "restore")
async def restore(
    output: Output,
    file: Annotated[Path, typer.Argument(help="A file that `graphmem backup` wrote.", show_default=False)],
) -> None:
    """Restore a backup into a data folder that holds no data."""
    from graphmem.user_data.backup import restore_backup

    settings = read_settings()
    refuse_server(output, settings, "`graphmem restore` works")
    found = await restore_backup(settings, file)
    forget_again = "Forget the users again whose receipts are later than the backup."
    output.show(found, f"Restored the backup of {found.created_at}. {forget_again}", *_hints(has_jobs=found.has_jobs))


def _hints(*, has_jobs: bool) -> list[str]:
    if has_jobs:
        return []
    return ["The backup has no jobs; if they are in Postgres, back them up and restore them with its own tools."]


@command(app, "forget")
async def forget(client: AsyncClient, output: Output, user: User, yes: Yes = False) -> None:
    """Erase all data of a user everywhere, then count what is left; this cannot be undone."""
    if not yes:
        await confirm_erasure(client, output, f"user {user!r}")
    where = await describe_target(client, output)
    result = await client.forget(user)
    erased = any(count for kind, count in result.erased.items() if kind != "IdempotentRequest")
    if not (erased or result.residue):  # a request for a user is recorded even if there is none
        raise NotFound(f"There is no user {user!r} {where}: nothing was erased.")
    report_erasure(output, f"user {user!r}", result, where)
