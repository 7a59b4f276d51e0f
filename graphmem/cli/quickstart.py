"""`graphmem quickstart`: extracts memories from a sample conversation, and answers questions from them."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from graphmem.cli.command import Output, Tenant, command, read_settings
from graphmem.cli.startup import browser_login, open_services, progress_bar, start_detached

if TYPE_CHECKING:
    from graphmem.app.bootstrap import Services
    from graphmem.cli.quickstart_demo import QuickstartReport
    from graphmem.runtime.settings import Settings
    from graphmem.tenants.owners import Owner


app = typer.Typer()

REMAINING_JOBS_SECONDS = 10.0
"""Seconds to wait at the end for jobs whose results are not shown."""


@dataclass(frozen=True)
class QuickstartOutput:
    """The result of the quickstart as JSON."""

    completions: str
    report: QuickstartReport
    browser: dict[str, object] = field(default_factory=dict)


@command(app, "quickstart")
async def quickstart(output: Output, tenant: Tenant = "default") -> None:
    """Extract memories from a sample conversation, and answer questions from them."""
    from graphmem.cli.ingest import ingest_batches, read_batches
    from graphmem.cli.quickstart_demo import collect_report, next_steps, render_report
    from graphmem.graph_memory import GraphMemory
    from graphmem.neo4j.embedded.home import DEFAULT_QUERY, read_query
    from graphmem.sample import SAMPLE_FOLDER, USER_ID
    from graphmem.tenants.owners import Owner

    started = time.monotonic()
    owner = Owner(tenant, USER_ID)
    batches = read_batches((SAMPLE_FOLDER / "conversation.jsonl").read_text("utf-8"), "sample")
    with completion_source(read_settings()) as (settings, completions):
        output.note(f"{completions}\nStarting Neo4j and loading the embedding model …")
        async with open_services(output, worker=True, settings=settings, demo=True) as services:
            with progress_bar(output, "Extracting", "messages") as on_progress:
                await ingest_batches(GraphMemory(services, tenant), owner.user_id, batches, on_progress)
            await _raise_for_failed_jobs(services, owner)
            report = await collect_report(services, owner)
            await _wait_for_remaining_jobs(services, owner)
            info = None if settings.neo4j_uri else await start_detached(output, settings)
    access = browser_login(settings, info, read_query(DEFAULT_QUERY, owner.group_id))
    steps = next_steps(access, owner, is_embedded=info is not None)
    output.show(QuickstartOutput(completions, report, access), *render_report(report), *steps)
    output.note(f"Done in {time.monotonic() - started:.0f} s.")


@contextmanager
def completion_source(settings: Settings) -> Iterator[tuple[Settings, str]]:
    """Yield the settings to run with, and a sentence that says whether completions are live or replayed."""
    from pydantic import SecretStr

    from graphmem.models.language_model import DEFAULT_MODEL
    from graphmem.models.openai_api import DEFAULT_BASE_URL
    from graphmem.models.replay import ReplayServer
    from graphmem.sample import SAMPLE_FOLDER

    if settings.has_model:
        model, address = settings.llm_model or DEFAULT_MODEL, settings.openai_base_url or DEFAULT_BASE_URL
        yield settings, f"Live: completions come from {model} at {address}."
        return
    with ReplayServer(Path(SAMPLE_FOLDER / "recordings.jsonl")) as replay:
        changes = {"openai_base_url": replay.base_url, "openai_api_key": SecretStr("recorded")}
        yield (
            settings.model_copy(update=changes),
            "No language model is configured (OPENAI_API_KEY or OPENAI_BASE_URL), so completions are replayed:\n"
            "recorded completions of a large language model for exactly this conversation.\n"
            "Neo4j, the embeddings and the search are real.",
        )


async def _wait_for_remaining_jobs(services: Services, owner: Owner) -> None:
    """Wait briefly for the jobs that follow extraction: no other process runs the demo's jobs."""

    from graphmem.cli.quickstart_demo import MAX_JOBS

    deadline = time.monotonic() + REMAINING_JOBS_SECONDS
    for job in await services.jobs.list(owner.group_id, limit=MAX_JOBS):
        if not job.is_at_rest:
            await services.jobs.wait(job.id, max(0.0, deadline - time.monotonic()))


async def _raise_for_failed_jobs(services: Services, owner: Owner) -> None:
    """Raise ModelUnavailable if extraction failed for a part of the conversation."""
    from graphmem.cli.quickstart_demo import extraction_jobs
    from graphmem.client.waiting import failed_jobs
    from graphmem.runtime.errors import ModelUnavailable

    if failed := failed_jobs(await extraction_jobs(services, owner)):
        first = min(failed, key=lambda job: job.created_at)  # later jobs wait for it
        raise ModelUnavailable(
            f"Extraction failed for {len(failed)} sessions ({first.error or first.reason}). Run this again; if its "
            "memories were changed by hand, run it for another tenant, such as `graphmem quickstart --tenant sample2`."
        )
