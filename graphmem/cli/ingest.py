"""Ingesting a file of messages or a document, session by session and resumable; closing and summarising sessions."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from graphmem.cli import views
from graphmem.cli.command import (
    EXIT_FAILED,
    STANDARD_STREAM,
    Output,
    Space,
    User,
    command,
    read_bytes,
    read_input,
)
from graphmem.cli.startup import progress_bar
from graphmem.client.waiting import failed_jobs, wait_for_job
from graphmem.runtime.errors import InvalidInput

if TYPE_CHECKING:
    from graphmem.client import AsyncClient
    from graphmem.conversations.session import MessagesIn
    from graphmem.jobs.job import Job
    from graphmem.runtime.progress import ProgressCallback


app = typer.Typer()


@command(app, "ingest", worker=True)
async def ingest(
    client: AsyncClient,
    output: Output,
    file: Annotated[
        str,
        typer.Argument(
            help="Messages, one JSON object per line (- for standard input), or a .md, .txt, .pdf, .html or .eml file."
        ),
    ],
    user: User,
    session: Annotated[
        str | None, typer.Option(help="Session of messages without one; defaults to the file's name.")
    ] = None,
    timezone: Annotated[str | None, typer.Option(help="The user's IANA time zone.")] = None,
    space: Space = None,
) -> None:
    """Store messages or a document and extract memories from them; run again to resume.

    A line is `{"role": "user", "content": "…", "session_id"?, "id"?, "name"?, "timestamp"?, …}`.
    """
    batches = await asyncio.to_thread(_read_file, file, session, timezone)
    batches = [batch.model_copy(update={"space": space}) for batch in batches] if space else batches
    with progress_bar(output, "Ingesting", "messages") as on_progress:
        jobs = await ingest_batches(client, user, batches, on_progress)
    output.show({"jobs": jobs}, *views.INGESTED(jobs))
    if failed := failed_jobs(jobs):
        output.note(
            f"graphmem: {len(failed)} of {len(jobs)} jobs are not done; run the same command again to retry them."
        )
        raise typer.Exit(EXIT_FAILED)


def _read_file(file: str, session: str | None, timezone: str | None) -> list[MessagesIn]:
    """Return the messages of a file; for a document, the parts of its text."""
    from graphmem.ingestion.documents import SUFFIXES

    if file == STANDARD_STREAM or Path(file).suffix.lower() not in SUFFIXES:
        name = "stdin" if file == STANDARD_STREAM else Path(file).stem
        return read_batches(read_input(file), session or name, timezone)
    return read_document_batches(Path(file).name, read_bytes(file), session, timezone)


def read_document_batches(
    name: str, raw: bytes, session: str | None = None, timezone: str | None = None
) -> list[MessagesIn]:
    """Return a document as the messages of one session; the id of each names its page or lines."""
    from graphmem.client.inputs import parse_messages
    from graphmem.conversations.session import split_into_batches
    from graphmem.ingestion.documents import messages_of_document, read_document

    messages = messages_of_document(read_document(name, raw))
    return [
        parse_messages(batch, session_id=session or name, timezone=timezone) for batch in split_into_batches(messages)
    ]


def read_batches(text: str, session_id: str, timezone: str | None = None) -> list[MessagesIn]:
    """Return the messages of a JSONL text; consecutive messages of one session form one batch.

    A message without an id gets one derived from its content and position, so that ids are the same when the text is
    read again. Raises InvalidInput with the number of the first invalid line.
    """
    from graphmem.client.inputs import parse_messages
    from graphmem.conversations.session import split_into_batches

    batches = []
    for session, turns in groupby(_read_lines(text, session_id), key=lambda turn: turn[0]):
        for batch in split_into_batches([message for _, message in turns]):
            batches.append(parse_messages(batch, session_id=session, timezone=timezone))
    if not batches:
        raise InvalidInput("There are no messages: write one JSON object per line.")
    return batches


def _read_lines(text: str, session_id: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the session and the message of each line."""
    from pydantic import ValidationError, create_model

    from graphmem.conversations.session import MessageIn
    from graphmem.runtime.field_types import SessionId
    from graphmem.runtime.validation import describe_field_errors, field_errors
    from graphmem.user_data.foreign import derive_message_id

    line_model = create_model("Line", __base__=MessageIn, session_id=(SessionId, ...))
    occurrences: Counter[str] = Counter()
    for number, line in enumerate(text.split("\n"), 1):
        if not line.strip():
            continue
        try:
            message = json.loads(line)
            if not isinstance(message, dict):
                raise InvalidInput(f"Line {number} is not a JSON object.")
            session = message.pop("session_id", None) or session_id
            line_model.model_validate({**message, "session_id": session})
        except (json.JSONDecodeError, RecursionError) as error:
            raise InvalidInput(f"Line {number} is not JSON: write one message per line.") from error
        except ValidationError as error:
            raise InvalidInput(f"Line {number}: {describe_field_errors(field_errors(error))}.") from error
        if message.get("id") is None:
            message["id"] = derive_message_id(session, message, occurrences)
        yield session, message


async def ingest_batches(
    operations: AsyncClient, user: str, batches: Sequence[MessagesIn], on_progress: ProgressCallback
) -> list[Job]:
    """Send batches one after the other and wait for each job; return the jobs of batches with new messages."""
    from graphmem.jobs.job import Job
    from graphmem.runtime.progress import ProgressCounter

    progress = ProgressCounter(on_progress, sum(len(batch.messages) for batch in batches))
    jobs: list[Job] = []
    for batch in batches:
        accepted = await operations.add_messages(
            user, batch.messages, session_id=batch.session_id, timezone=batch.timezone, space=batch.space
        )
        job_id = accepted.id if isinstance(accepted, Job) else accepted.job_id
        if job_id is not None:
            jobs.append(await wait_for_job(operations, job_id))
        progress.add(len(batch.messages))
    return jobs


SessionId = Annotated[str, typer.Argument(help="The session's id.")]


@command(app, "close")
async def close(client: AsyncClient, output: Output, session: SessionId, user: User, space: Space = None) -> None:
    """Close a session: extract what has not been read yet, and summarise it if it is long."""
    closed = await client.close_session(user, session, space=space)
    note = f"Note: {closed.reason}." if closed.reason else "Its summary is queued."
    output.show(closed, *views.SESSIONS(closed), note)


@command(app, "summarize", worker=True)
async def summarize(client: AsyncClient, output: Output, session: SessionId, user: User, space: Space = None) -> None:
    """Summarise a session and remember the summary and its takeaways."""
    queued = await client.summarize_session(user, session, space=space)
    job = await wait_for_job(client, queued.id)
    output.show(job, *views.INGESTED(job))
    if failed_jobs([job]):
        raise typer.Exit(EXIT_FAILED)


@command(app, "archives", views.ARCHIVES)
async def archives(client: AsyncClient, session: SessionId, user: User, space: Space = None) -> object:
    """List the summaries that replaced old messages of a session."""
    return await client.session_archives(user, session, space=space)
