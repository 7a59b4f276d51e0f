"""A worker that kills itself: `killed_worker.py <data folder> <query> <how many>`.

It does consolidation jobs until this process has run the query that many times, then ends by SIGKILL; with 0 it never
ends itself. The query `commit` means the moment after the run's transaction was committed.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from graphmem.consolidation.analysis import ProposalAnalyser
from graphmem.consolidation.consolidation_job import ConsolidationJob
from graphmem.consolidation.discovery import Discovery
from graphmem.consolidation.guards import LossLimits
from graphmem.consolidation.run_executor import RunExecutor
from graphmem.consolidation.run_store import RunStore
from graphmem.consolidation.service import CONSOLIDATION_JOB
from graphmem.jobs.kinds import JobHandler
from graphmem.jobs.runner import JobRunner
from graphmem.memories.entity_store import EntityStore
from graphmem.memories.fact_store import FactStore
from graphmem.models.embedder import create_embedder
from graphmem.models.language_model import load_prompts
from graphmem.neo4j import driver
from graphmem.neo4j.driver import Graph
from graphmem.runtime.settings import Settings
from graphmem.secrets.scanner import SecretPolicy
from graphmem.tenants.tenant_settings import InstructionStore

DATA, QUERY, TIMES = Path(sys.argv[1]), sys.argv[2], int(sys.argv[3])
NOON = datetime(2026, 6, 1, 12, tzinfo=UTC)


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


class DyingRunExecutor(RunExecutor):
    """Executes a run, and kills the process before the result is returned."""

    async def execute(self, *given: Any, **options: Any) -> Any:
        executed = await super().execute(*given, **options)
        if QUERY == "commit" and TIMES:
            die()
        return executed


def die_at_query() -> None:
    run, left = driver.Transaction.run, [TIMES]

    async def counted(self: driver.Transaction, name: str, **parameters: Any) -> Any:
        answer = await run(self, name, **parameters)
        if name == QUERY:
            left[0] -= 1
            if left[0] == 0:
                die()
        return answer

    driver.Transaction.run = counted  # pyrefly: ignore[method-assign]


async def main() -> None:
    die_at_query()
    settings = Settings(data_dir=DATA)
    graph = Graph(os.environ["KILLED_URI"], os.environ["KILLED_USER"], os.environ["KILLED_PASSWORD"])
    embedder = create_embedder(settings)
    entities = EntityStore(graph)
    facts = FactStore(graph, entities, lambda: NOON)
    runs = RunStore(graph)
    executor = DyingRunExecutor(graph, facts, entities, runs, embedder, SecretPolicy([]), LossLimits())
    discovery = Discovery(graph, batch_size=25, max_batches=400)

    async with await JobRunner.open(settings) as jobs:
        consolidation_job = ConsolidationJob(
            graph,
            runs,
            discovery,
            ProposalAnalyser(graph, InstructionStore(graph), None, load_prompts(), lambda: NOON),
            executor,
            lambda: NOON,
            jobs,
        )
        await jobs.start_worker([JobHandler(CONSOLIDATION_JOB, consolidation_job.handle)])
        await asyncio.Event().wait()


asyncio.run(main())
