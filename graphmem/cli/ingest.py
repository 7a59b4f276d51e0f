"""Ingesting a file of messages: checked as a whole, sent session by session, going on where it stopped."""

from __future__ import annotations

import asyncio
import json
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from graphmem.cli.command import Output, Tenant, User, command, describe_validation_error
from graphmem.cli.progress import progress_bar
from graphmem.cli.startup import open_memory
from graphmem.errors import InvalidInput

if TYPE_CHECKING:
    from graphmem.bootstrap import GraphMemory
    from graphmem.domain.identity import Owner
    from graphmem.domain.job import Job
    from graphmem.domain.progress import ProgressCallback
    from graphmem.domain.session import MessagesIn

app = typer.Typer()

_POLL_SECONDS = 60.0


@command(app, "ingest")
async def ingest(
    output: Output,
    file: Annotated[str, typer.Argument(help="A file with one message a line as JSON; - reads standard input.")],
    user: User,
    tenant: Tenant = "default",
    session: Annotated[
        str | None, typer.Option(help="Session of messages that name none; absent: the file's name.")
    ] = None,
    timezone: Annotated[str | None, typer.Option(help="The user's IANA time zone.")] = None,
) -> None:
    """Store messages and extract memories from them; run again, it goes on where it stopped.

    A line is `{"role": "user", "content": "…", "session_id"?, "id"?, "name"?, "timestamp"?, …}`.
    """
    from graphmem.cli import render
    from graphmem.domain.identity import make_owner

    owner = make_owner(tenant, user)
    text = await asyncio.to_thread(read_input, file)
    batches = read_batches(text, session or (Path(file).stem if file != "-" else "stdin"), timezone)
    async with open_memory(output, worker=True) as memory:
        with progress_bar(output, "Ingesting", "messages") as on_progress:
            jobs = await ingest_batches(memory, owner, batches, on_progress)
    output.show({"jobs": jobs}, render.jobs(jobs))
    failed = [job for job in jobs if job.status == "failed"]
    if failed:
        output.note(f"graphmem: {len(failed)} of {len(jobs)} jobs failed; run the same command again to retry them.")
        raise typer.Exit(1)


def read_input(file: str) -> str:
    """Return the text of a file, or of standard input; raise InvalidInput when there is none to read."""
    try:
        raw = sys.stdin.buffer.read() if file == "-" else Path(file).read_bytes()
    except OSError as error:
        raise InvalidInput(f"{file} cannot be read: {error.strerror or error}.") from error
    return raw.decode("utf-8-sig")


def read_batches(text: str, session_id: str, timezone: str | None = None) -> list[MessagesIn]:
    """Return the messages of a JSONL text, those of one session that follow one another as one batch.

    Messages without an id get one made of what they say and where, so that the same text again is known again. Raises
    InvalidInput naming the first line that cannot be used, before anything is stored.
    """
    from graphmem.domain.session import MAX_BATCH_SIZE, MessagesIn

    batches = []
    for session, turns in groupby(_read_lines(text, session_id), key=lambda turn: turn[0]):
        messages = [message for _, message in turns]
        for start in range(0, len(messages), MAX_BATCH_SIZE):
            given = {"session_id": session, "messages": messages[start : start + MAX_BATCH_SIZE], "timezone": timezone}
            batches.append(MessagesIn.model_validate(given))
    if not batches:
        raise InvalidInput("There are no messages: give one JSON object a line.")
    return batches


def _read_lines(text: str, session_id: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the session and the message of each line."""
    from pydantic import ValidationError

    from graphmem.domain.formats.chat import derive_message_id
    from graphmem.domain.session import MessageIn

    said: Counter[str] = Counter()
    for number, line in enumerate(text.split("\n"), 1):
        if not line.strip():
            continue
        try:
            message = json.loads(line)
            if not isinstance(message, dict):
                raise InvalidInput(f"Line {number} is no JSON object.")
            session = message.pop("session_id", None) or session_id
            if not isinstance(session, str):
                raise InvalidInput(f"Line {number}: session_id must be text.")
            MessageIn.model_validate(message)
        except (json.JSONDecodeError, RecursionError) as error:
            raise InvalidInput(f"Line {number} is not JSON; give one message a line.") from error
        except ValidationError as error:
            raise InvalidInput(f"Line {number}: {describe_validation_error(error)}.") from error
        if message.get("id") is None:
            message["id"] = derive_message_id(session, message, said)
        yield session, message


async def ingest_batches(
    memory: GraphMemory, owner: Owner, batches: Sequence[MessagesIn], on_progress: ProgressCallback
) -> list[Job]:
    """Send batches one after the other and wait for each job; return the jobs, without those of known messages."""
    from graphmem.domain.job import Job
    from graphmem.domain.progress import ProgressCounter

    tally = ProgressCounter(on_progress, sum(len(batch.messages) for batch in batches))
    jobs: list[Job] = []
    for batch in batches:
        accepted = await memory.messages.add(owner, batch)
        job_id = accepted.id if isinstance(accepted, Job) else accepted.job_id
        if job_id is not None:
            jobs.append(await wait_for_job(memory, job_id))
        tally.add(len(batch.messages))
    return jobs


async def wait_for_job(memory: GraphMemory, job_id: str) -> Job:
    """Wait for a job; one that failed in an earlier run is tried once more."""
    job = await memory.jobs.wait(job_id, 0)
    if job.status == "failed":
        job = await memory.jobs.retry(job_id)
    while not job.status.is_final:
        job = await memory.jobs.wait(job_id, _POLL_SECONDS)
    return job
