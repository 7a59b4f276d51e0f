"""A worker killed at each step: nothing is lost or done twice, and no finished model call is repeated."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

import pytest

from graphmem.conversations.episode_store import EpisodeStore
from graphmem.conversations.session import MessagesAccepted, MessagesIn
from graphmem.ingestion.service import Inbox
from graphmem.jobs.job import JobStatus
from graphmem.jobs.runner import JobRunner
from graphmem.memories.entity_store import EntityStore
from graphmem.memories.fact_store import FactStore
from graphmem.memories.memory import MemoryIn
from graphmem.memories.writer import MemoryWriter
from graphmem.models.embedder import Embedder
from graphmem.neo4j.driver import Graph
from graphmem.runtime.settings import Settings
from graphmem.runtime.times import utc_now
from graphmem.secrets.scanner import SecretPolicy
from graphmem.tenants.owners import Owner
from graphmem.tenants.profiles import TenantProfiles
from tests.forks import Fork, start_script
from tests.ingestion.conftest import candidate, decision, extraction, message_at, reconciliation
from tests.model_server import ModelServer
from tests.models.scripted_server import Exchange, ScriptedServer, replies

WORKER = Path(__file__).with_name("ingestion_worker.py")

FIRST = replies(json.dumps(extraction(candidate("User is fond of coffee"), candidate("User has a cat named Pix"))))
SECOND = replies(json.dumps(reconciliation(decision(1, "reinforce", 1), decision(2, "insert"))))


def answer_by_prompt(exchange: Exchange) -> None:
    """Answer each of the two calls with its own completion."""
    (SECOND if "<known_memories>" in exchange.body["messages"][-1]["content"] else FIRST)(exchange)


@contextmanager
def worker(settings: Settings, models: ModelServer, data_dir: Path, address: str, step: str = "") -> Iterator[Fork]:
    assert settings.neo4j_uri
    assert settings.neo4j_password
    environment = {
        **os.environ,
        "GRAPHMEM_NEO4J_URI": settings.neo4j_uri,
        "GRAPHMEM_NEO4J_USER": settings.neo4j_user,
        "GRAPHMEM_NEO4J_PASSWORD": settings.neo4j_password.get_secret_value(),
        **models.environment,
        "MODEL_ADDRESS": address,
    }
    process = start_script(WORKER, str(data_dir), step, environment=environment)
    try:
        yield process
    finally:
        process.kill()
        process.wait()


@pytest.mark.timeout(240)
@pytest.mark.parametrize(
    ("steps", "calls"),
    [
        (("extract 1", "apply 1"), [1, 3, 3]),
        pytest.param(("extract 1", "reconcile 1", "apply 1"), [1, 3, 4, 4], marks=pytest.mark.long),
    ],
)
async def test_a_new_worker_resumes_at_the_step_where_the_one_before_was_killed(
    owner: Owner,
    database: Settings,
    graph: Graph,
    embedder: Embedder,
    models: ModelServer,
    tmp_path: Path,
    steps: tuple[str, ...],
    calls: list[int],
) -> None:
    entities, episodes = EntityStore(graph), EpisodeStore(graph, utc_now)
    facts, policy = FactStore(graph, entities, utc_now), SecretPolicy()
    await MemoryWriter(facts, embedder, policy, TenantProfiles()).save(
        owner, [MemoryIn(content="User loves coffee")], actor=None, kind="user"
    )
    with ScriptedServer(answer_by_prompt) as server:
        async with await JobRunner.open(Settings(data_dir=tmp_path)) as jobs:
            inbox = Inbox(episodes, embedder, policy, jobs)
            message = message_at("2026-05-01", "coffee is my jam, and my cat is Pix", id="m1")
            batch = MessagesIn.model_validate({"session_id": "s1", "messages": [message]})
            accepted: MessagesAccepted = await inbox.add(owner, batch, extract=True)
            assert accepted.job_id
            made = []
            for step in steps:
                with worker(database, models, tmp_path, server.base_url, step) as killed:
                    assert await asyncio.to_thread(killed.wait, 110) == -9
                made.append(len(server.requests))
            with worker(database, models, tmp_path, server.base_url):
                job = await jobs.wait(accepted.job_id, 110)
    assert job.status is JobStatus.SUCCEEDED, job.error
    # A call whose answer was recorded is not repeated; the call of the step that was killed is.
    assert [*made, len(server.requests)] == calls
    stored = await graph.read(
        lambda transaction: transaction.run_text(
            "MATCH ()-[r:RELATES_TO {group_id: $g}]->() RETURN r.fact AS fact ORDER BY fact", {"g": owner.group_id}
        )
    )
    assert [row["fact"] for row in stored] == ["User has a cat named Pix", "User loves coffee"]
    (read,) = await episodes.load_messages(owner, ["m1"])
    assert read.extracted_at
    assert read.extracted_at <= datetime.now(UTC)
