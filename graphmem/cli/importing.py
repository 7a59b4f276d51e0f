"""`graphmem import`: reading an export, or a document of another format, for a user."""

from __future__ import annotations

import asyncio
from typing import Annotated, Literal

import typer

from graphmem.cli.command import Output, Tenant, User, command, exit_with_error
from graphmem.cli.files import STANDARD_STREAM, read_input
from graphmem.cli.jobs import failed_jobs, wait_for_job
from graphmem.cli.progress import progress_bar
from graphmem.cli.startup import open_services

app = typer.Typer()


@command(app, "import")
async def import_(
    output: Output,
    user: User,
    file: Annotated[str, typer.Argument(help="An export or a chat log; - reads standard input.")] = STANDARD_STREAM,
    tenant: Tenant = "default",
    format: Annotated[
        Literal["auto", "records", "graphmem", "graphiti", "mem0", "chat"],
        typer.Option(help="The format of the file; auto: it is detected."),
    ] = "auto",
    from_neo4j: Annotated[
        str,
        typer.Option(
            metavar="URI", help="Instead of a file: a Neo4j with a live graph of Graphiti, which is only read."
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
) -> None:
    """Import an export of graphmem, records, an export of mem0 or Graphiti, or a chat log.

    Memories are extracted from the messages of a chat log in this process, as with `graphmem ingest`.
    """
    from graphmem.cli import render_admin
    from graphmem.graph_memory import GraphMemory
    from graphmem.tenants.owners import make_owner
    from graphmem.user_data.formats import parse_document
    from graphmem.user_data.import_format import ImportFormat

    owner = make_owner(tenant, user)
    if from_neo4j:
        from graphmem.search.graphiti import read_graph

        detected_format = ImportFormat.GRAPHITI
        document = await read_graph(from_neo4j, source_user, source_password, source_database, group)
    else:
        text = await asyncio.to_thread(read_input, file)
        detected_format, document = parse_document(text.encode(), ImportFormat(format))
    async with open_services(output, worker=detected_format is ImportFormat.CHAT) as services:
        with progress_bar(output, "Importing") as on_progress:
            result = await services.imports.import_parsed(
                owner, detected_format, document, actor="cli", progress=on_progress
            )
        jobs = [await wait_for_job(GraphMemory(services, tenant), job_id) for job_id in result.jobs]
    output.show(result, render_admin.import_result(result), *([render_admin.jobs(jobs)] if jobs else []))
    for entry in result.refused:
        output.note(f"not imported: {'.'.join(map(str, entry.loc))}: {entry.reason}")
    if failed_jobs(jobs):
        exit_with_error("Extraction failed for some of the messages: run the same command again to retry.")
