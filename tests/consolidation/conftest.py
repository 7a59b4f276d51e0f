"""A user with memories, the parts of consolidation, and the whole state of the user in the graph."""

from __future__ import annotations

import uuid
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from graphmem.consolidation.discovery import Discovery
from graphmem.consolidation.guards import LossLimits
from graphmem.consolidation.models import (
    ConsolidationRun,
    ReviewedProposal,
    RollbackResult,
    RunPhase,
    RunTrigger,
    parse_proposals,
)
from graphmem.consolidation.rollback import RunRollback
from graphmem.consolidation.run_executor import ExecutionResult, RunExecutor
from graphmem.consolidation.run_store import RunStore
from graphmem.consolidation.service import CONSOLIDATION_JOB, NIGHT_JOB, ConsolidationService
from graphmem.jobs.kinds import JobKind
from graphmem.jobs.runner import JobRunner, JobWaiting
from graphmem.jobs.worker import WorkerOptions
from graphmem.memories.entity_store import EntityStore
from graphmem.memories.fact_store import FactStore
from graphmem.memories.memory import Memory, MemoryIn
from graphmem.memories.new_memory import NewMemory
from graphmem.models.embedder import Embedder
from graphmem.neo4j.driver import Graph, Transaction
from graphmem.runtime.field_types import name_key
from graphmem.runtime.settings import Settings
from graphmem.secrets.scanner import SecretPolicy
from graphmem.tenants.owners import Owner
from tests.conftest import FakeClock
from tests.ingestion.conftest import JobDispatcher


@dataclass
class ConsolidationHarness:
    """A user and the parts of consolidation."""

    graph: Graph
    owner: Owner
    clock: FakeClock
    embedder: Embedder
    entities: EntityStore
    facts: FactStore
    runs: RunStore
    executor: RunExecutor
    rollbacks: RunRollback

    async def save(self, *contents: str, **common: Any) -> list[Memory]:
        memories = [MemoryIn(content=content, **common) for content in contents]
        return await self.save_all(memories)

    async def save_all(self, memories: list[MemoryIn]) -> list[Memory]:
        vectors = await self.embedder.embed([memory.content for memory in memories])
        named = {
            name_key(entity.name): entity.name
            for memory in memories
            for entity in (memory.subject, memory.object, *memory.entities)
            if entity
        }
        names = dict(zip(named, await self.embedder.embed(list(named.values())), strict=True)) if named else {}
        statements = [NewMemory(memory, vector) for memory, vector in zip(memories, vectors, strict=True)]
        results = await self.facts.save(self.owner, statements, names, None)
        return [result.memory for result in results if result.memory]

    async def execute(
        self, *proposals: dict[str, Any], dry_run: bool = False, curated: bool = True
    ) -> ConsolidationRun:
        run_id, executed = await self.run_proposals(*proposals, dry_run=dry_run, curated=curated)
        assert executed
        return await self.runs.get(self.owner.tenant, run_id)

    async def run_proposals(
        self, *proposals: dict[str, Any], dry_run: bool = False, curated: bool = True
    ) -> tuple[str, ExecutionResult]:
        run_id, reviewed = await self.propose(*proposals, dry_run=dry_run)
        return run_id, await self.executor.execute(self.owner, run_id, reviewed, dry_run=dry_run, curated=curated)

    async def propose(self, *proposals: dict[str, Any], dry_run: bool = False) -> tuple[str, list[ReviewedProposal]]:
        run_id = str(uuid.uuid4())
        reviewed = await self.executor.attach_versions(self.owner, parse_proposals(proposals))
        await self.runs.create(
            run_id,
            self.owner.tenant,
            self.owner,
            RunTrigger.CURATED,
            self.clock(),
            dry_run=dry_run,
            proposals=reviewed,
            phase=RunPhase.ANALYSED,
        )
        return run_id, reviewed

    def service(self, discovery: Discovery, jobs: JobRunner) -> ConsolidationService:
        """Return the service over a job store."""
        waiting = JobWaiting(self.graph, jobs)
        return ConsolidationService(discovery, self.runs, self.executor, self.rollbacks, jobs, waiting, self.clock)

    async def roll_back(self, run_id: str, *, force: bool = False) -> RollbackResult:
        return await self.rollbacks.roll_back(self.owner.tenant, run_id, force=force, actor="admin")

    async def graph_state(self) -> dict[str, Any]:
        """Every node and relationship of the user with every property but the revision, vectors included."""

        async def work(transaction: Transaction) -> dict[str, Any]:
            nodes, ties = [], []
            for label in ("Entity", "EntityAlias", "Episodic", "Session"):
                nodes += await transaction.run_text(
                    f"MATCH (n:{label} {{group_id: $g}}) "
                    "RETURN coalesce(n.uuid, n.session_id, n.key) AS id, labels(n) AS labels, "
                    "properties(n) AS properties",
                    {"g": self.owner.group_id},
                )
                ties += await transaction.run_text(
                    f"MATCH (a:{label} {{group_id: $g}})-[r]->(b) RETURN type(r) AS type, "
                    "coalesce(a.uuid, a.session_id, a.key) AS source, b.uuid AS target, properties(r) AS properties",
                    {"g": self.owner.group_id},
                )
            for tie in ties:
                properties = tie["properties"]
                own_id = properties.get("uuid") or f"{tie['source']}>{tie['target']} {properties.get('memory_id')}"
                tie["id"] = tie["type"] + own_id
            return {
                row["id"]: (
                    sorted(row.get("labels") or []),
                    row.get("type"),
                    row.get("source"),
                    row.get("target"),
                    {name: value for name, value in row["properties"].items() if name != "revision"},
                )
                for row in [*nodes, *ties]
            }

        return await self.graph.read(work)


@dataclass
class Worker:
    """A job store whose jobs are run by the handlers of the current test: to open one takes longer than most tests."""

    settings: Settings
    jobs: JobRunner
    dispatcher: JobDispatcher


@asynccontextmanager
async def open_worker(data_dir: Path) -> AsyncIterator[Worker]:
    settings, dispatcher = Settings(data_dir=data_dir), JobDispatcher()
    kinds: list[JobKind[Any]] = [CONSOLIDATION_JOB, NIGHT_JOB]
    async with await JobRunner.open(settings) as jobs:
        options = WorkerOptions(retry_delays=(0.01,), model_pauses=())
        await jobs.start_worker(map(dispatcher.handler_for, kinds), options)
        yield Worker(settings, jobs, dispatcher)


@pytest.fixture(scope="module")
async def worker(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Worker]:
    async with open_worker(tmp_path_factory.mktemp("runs")) as worker:
        yield worker


@pytest.fixture
async def harness(graph: Graph, owner: Owner, clock: FakeClock, embedder: Embedder) -> ConsolidationHarness:
    entities = EntityStore(graph)
    facts = FactStore(graph, entities, clock)
    runs = RunStore(graph)
    executor = RunExecutor(graph, facts, entities, runs, embedder, SecretPolicy([]), LossLimits())
    rollbacks = RunRollback(graph, facts, runs, clock, days=30)
    return ConsolidationHarness(graph, owner, clock, embedder, entities, facts, runs, executor, rollbacks)
