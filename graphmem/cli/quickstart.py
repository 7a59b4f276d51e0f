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
from graphmem.cli.opening import opened

if TYPE_CHECKING:
    from graphmem.bootstrap import GraphMemory
    from graphmem.cli.tour import Tour
    from graphmem.domain.identity import Owner
    from graphmem.embedded import ServerInfo
    from graphmem.settings import Settings

app = typer.Typer()


@dataclass(frozen=True)
class Shown:
    """What the quickstart tells as JSON."""

    completions: str
    tour: Tour
    browser: dict[str, object] = field(default_factory=dict)


@command(app, "quickstart")
async def quickstart(output: Output, tenant: Tenant = "default") -> None:
    """Read a sample conversation, turn it into facts in time, and answer questions from them."""
    from graphmem.cli import sights
    from graphmem.cli.ingest import ingest_batches, read_batches
    from graphmem.cli.progress import progress
    from graphmem.cli.tour import take_tour
    from graphmem.domain.identity import Owner
    from graphmem.sample import FOLDER, USER_ID

    started = time.monotonic()
    owner = Owner(tenant, USER_ID)
    batches = read_batches((FOLDER / "conversation.jsonl").read_text("utf-8"), "sample")
    with completing(read_settings()) as (settings, completions):
        output.note(f"{completions}\nStarting Neo4j and loading the embedding model …")
        async with opened(output, worker=True, settings=settings) as memory:
            with progress(output, "Reading", "messages") as tell:
                await ingest_batches(memory, owner, batches, tell)
            await _refuse_failures(memory, owner)
            tour = await take_tour(memory, owner)
            info = await _keep_running(settings)
    shown = Shown(completions, tour, sights.entrance(settings, info))
    output.show(shown, *sights.tour(tour), *sights.farewell(settings, info, owner, tour))
    output.note(f"Done in {time.monotonic() - started:.0f} s.")


@contextmanager
def completing(settings: Settings) -> Iterator[tuple[Settings, str]]:
    """Give the settings to run with and a sentence on where completions come from: a model, or recordings."""
    from pydantic import SecretStr

    from graphmem.llm.client import DEFAULT_MODEL
    from graphmem.llm.replay import Replay
    from graphmem.openai_server import DEFAULT_ADDRESS
    from graphmem.sample import FOLDER

    if settings.has_model:
        model, address = settings.llm_model or DEFAULT_MODEL, settings.openai_base_url or DEFAULT_ADDRESS
        yield settings, f"Live: completions come from {model} at {address}."
        return
    with Replay(Path(FOLDER / "recordings.jsonl")) as replay:
        changes = {"openai_base_url": replay.base_url, "openai_api_key": SecretStr("recorded")}
        yield (
            settings.model_copy(update=changes),
            "No language model is configured (OPENAI_API_KEY or OPENAI_BASE_URL), so completions are replayed:\n"
            "recorded completions of a large language model for exactly this conversation.\n"
            "Neo4j, the embeddings and the search are real.",
        )


async def _refuse_failures(memory: GraphMemory, owner: Owner) -> None:
    """Raise ModelUnavailable when a part of the conversation could not be read."""
    from graphmem.cli.tour import readings
    from graphmem.errors import ModelUnavailable

    failed = [job for job in await readings(memory, owner) if job.status == "failed"]
    if failed:
        raise ModelUnavailable(
            f"{len(failed)} sessions could not be read ({failed[0].error}). If memories of user {owner.user_id} were "
            f"changed by hand, start anew with `graphmem forget --user {owner.user_id} --yes`; else run this again."
        )


async def _keep_running(settings: Settings) -> ServerInfo | None:
    """Let the embedded Neo4j stay up for Neo4j Browser; None where another one is configured."""
    if settings.neo4j_uri:
        return None
    from graphmem.embedded import EmbeddedNeo4j

    server = await EmbeddedNeo4j.start_or_join(settings.data_dir, settings.cache_dir, detached=True)
    await server.stop()
    return server.info
