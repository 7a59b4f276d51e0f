"""10,000 memories of one user: discovery, analysis without a model, execution, and undoing it.

    python -m benches.bench_consolidation [memories]

Runs on the database of the settings (GRAPHMEM_NEO4J_URI …, else the embedded one). Statements are made up, vectors are
random around shared centres, so that every fourth memory has near twins; every tenth pair is merged besides.
"""

from __future__ import annotations

import json
import random
import sys
import time
import uuid
from typing import Any

import numpy as np

from graphmem import eventloop
from graphmem.bootstrap import GraphMemory
from graphmem.components import Components
from graphmem.consolidation.analysis import ProposalAnalyser
from graphmem.consolidation.discovery import Discovery
from graphmem.consolidation.execution import RunExecutor
from graphmem.consolidation.rollback import RunRollback
from graphmem.consolidation.run_transaction import LossLimits
from graphmem.domain.consolidation_models import RunPhase, RunTrigger, parse_proposals
from graphmem.domain.identity import Owner
from graphmem.domain.memory import MemoryIn
from graphmem.domain.new_memory import NewMemory
from graphmem.domain.policy import SecretPolicy
from graphmem.domain.times import utc_now
from graphmem.llm.prompts import load_prompts
from graphmem.settings import Settings
from graphmem.store.facts import FactStore
from graphmem.store.runs import RunStore
from graphmem.store.snapshots import SnapshotStore
from graphmem.store.transfer import TransferStore

TEXTS = ["User keeps a note about thing {}", "User filed paper {} upstairs"]


async def fill(facts: FactStore, owner: Owner, size: int, dimension: int) -> list[str]:
    """Save made-up memories and return their ids in order."""
    noise = np.random.default_rng(7)
    centre = noise.normal(size=dimension)
    ids: list[str] = []
    statements = []
    for number in range(size):
        if number % 4 == 0:
            centre = noise.normal(size=dimension)
        vector = centre + noise.normal(size=dimension) * (0.1 if number % 4 < 2 else 2.0)
        memory = MemoryIn(content=TEXTS[number % 2].format(number), predicate="NOTES")
        statements.append(NewMemory(memory, vector.tolist()))
    for start in range(0, size, 500):
        results = await facts.save(owner, statements[start : start + 500], {}, None)
        ids += [result.memory.id for result in results if result.memory]
    return ids


def make_merge_proposals(ids: list[str]) -> list[dict[str, Any]]:
    """Return curated merges of every tenth pair."""
    pairs = [(first, second) for first, second in zip(ids[::2], ids[1::2], strict=False)][::10]
    numbers = {key: number for number, key in enumerate(ids)}
    return [
        {
            "action": "MERGE",
            "memory_ids": [first, second],
            "content": "; ".join(TEXTS[numbers[key] % 2].format(numbers[key]) for key in (first, second)),
        }
        for first, second in pairs
    ]


async def main(size: int) -> None:
    random.seed(7)
    async with GraphMemory.open(Settings(), worker=False) as memory:
        await measure(memory.components, Owner("bench", uuid.uuid4().hex), size)


async def measure(components: Components, owner: Owner, size: int) -> None:
    """Fill, consolidate, undo, print the seconds of each, erase."""
    graph, facts, snapshots = components.graph, components.facts, SnapshotStore()
    runs = RunStore(graph, snapshots)
    executor = RunExecutor(
        graph, facts, components.entities, snapshots, runs, components.embedder, SecretPolicy([]), LossLimits()
    )
    rollbacks = RunRollback(graph, facts, snapshots, runs, utc_now, days=30)
    figures: dict[str, float] = {}

    def note(name: str, started: float) -> None:
        figures[name] = round(time.perf_counter() - started, 2)

    try:
        ids = await fill(facts, owner, size, components.embedder.dimension)
        started = time.perf_counter()
        batches = (await Discovery(graph, batch_size=25, max_batches=400).find_batches(owner, utc_now())).batches
        note("discovery_s", started)
        analyser, step = ProposalAnalyser(graph, None, load_prompts()), time.perf_counter()
        reviewed = [
            each
            for batch in batches
            for each in (await analyser.analyse(owner, batch.memory_ids, old=batch.old)).reviewed
        ]
        reviewed += await executor.attach_versions(owner, parse_proposals(make_merge_proposals(ids)))
        note("analysis_s", step)
        step, run_id = time.perf_counter(), str(uuid.uuid4())
        await runs.create(run_id, owner.tenant, owner, RunTrigger.ON_DEMAND, utc_now(), phase=RunPhase.ANALYSED)
        considered = [key for batch in batches for key in batch.memory_ids]
        executed = await executor.execute(owner, run_id, reviewed, considered=considered)
        note("execution_s", step)
        note("all_s", started)
        verdicts = [each.verdict.value for each in executed.reviewed]
        step = time.perf_counter()
        await rollbacks.roll_back(owner.tenant, run_id)
        note("rollback_s", step)
        found = {"memories": size, "batches": len(batches), "changes": executed.change_count}
        counts = {name: verdicts.count(name) for name in sorted(set(verdicts))}
        print(json.dumps({**found, **counts, **figures}))
    finally:
        transfer = TransferStore(graph, facts, utc_now)
        await graph.write(lambda inside: snapshots.erase_user(inside, owner))
        await graph.write(lambda inside: transfer.erase_user(inside, owner))


if __name__ == "__main__":
    eventloop.run(main(int(sys.argv[1]) if len(sys.argv) > 1 else 10_000))
