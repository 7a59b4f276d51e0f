"""The main job from end to end on a sample conversation: read it, keep what matters, answer from it."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from graphmem.cli.command import Output, Tenant, command, read_settings
from graphmem.cli.startup import open_memory

if TYPE_CHECKING:
    from graphmem.bootstrap import GraphMemory
    from graphmem.cli.quickstart_demo import QuickstartReport
    from graphmem.domain.identity import Owner
    from graphmem.embedded import ServerInfo
    from graphmem.settings import Settings

app = typer.Typer()


@dataclass(frozen=True)
class QuickstartOutput:
    """What the quickstart tells as JSON."""

    completions: str
    report: QuickstartReport
    browser: dict[str, object] = field(default_factory=dict)


@command(app, "quickstart")
async def quickstart(output: Output, tenant: Tenant = "default") -> None:
    """Read a sample conversation, turn it into facts in time, and answer questions from them."""
    from graphmem.cli import quickstart_render
    from graphmem.cli.ingest import ingest_batches, read_batches
    from graphmem.cli.progress import progress_bar
    from graphmem.cli.quickstart_demo import collect_report
    from graphmem.domain.identity import Owner
    from graphmem.sample import SAMPLE_FOLDER, USER_ID

    started = time.monotonic()
    owner = Owner(tenant, USER_ID)
    batches = read_batches((SAMPLE_FOLDER / "conversation.jsonl").read_text("utf-8"), "sample")
    with completion_source(read_settings()) as (settings, completions):
        output.note(f"{completions}\nStarting Neo4j and loading the embedding model …")
        async with open_memory(output, worker=True, settings=settings) as memory:
            with progress_bar(output, "Reading", "messages") as on_progress:
                await ingest_batches(memory, owner, batches, on_progress)
            await _raise_for_failed_jobs(memory, owner)
            report = await collect_report(memory, owner)
            info = await _keep_neo4j_running(settings)
    shown = QuickstartOutput(completions, report, quickstart_render.browser_access(settings, info))
    output.show(
        shown, *quickstart_render.render_report(report), *quickstart_render.next_steps(settings, info, owner, report)
    )
    output.note(f"Done in {time.monotonic() - started:.0f} s.")


@contextmanager
def completion_source(settings: Settings) -> Iterator[tuple[Settings, str]]:
    """Give the settings to run with and a sentence on where completions come from: a model, or recordings."""
    from pydantic import SecretStr

    from graphmem.llm.openai_model import DEFAULT_MODEL
    from graphmem.llm.replay import ReplayServer
    from graphmem.openai_client import DEFAULT_BASE_URL
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


async def _raise_for_failed_jobs(memory: GraphMemory, owner: Owner) -> None:
    """Raise ModelUnavailable when a part of the conversation could not be read."""
    from graphmem.cli.quickstart_demo import extraction_jobs
    from graphmem.errors import ModelUnavailable

    failed = [job for job in await extraction_jobs(memory, owner) if job.status == "failed"]
    if failed:
        raise ModelUnavailable(
            f"{len(failed)} sessions could not be read ({failed[0].error}). If memories of user {owner.user_id} were "
            f"changed by hand, start anew with `graphmem forget --user {owner.user_id} --yes`; else run this again."
        )


async def _keep_neo4j_running(settings: Settings) -> ServerInfo | None:
    """Let the embedded Neo4j stay up for Neo4j Browser; None where another one is configured."""
    if settings.neo4j_uri:
        return None
    from graphmem.embedded import EmbeddedNeo4j

    server = await EmbeddedNeo4j.start_or_join(settings.data_dir, settings.cache_dir, detached=True)
    await server.stop()
    return server.info
