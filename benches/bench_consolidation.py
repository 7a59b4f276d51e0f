"""Measures the consolidation of 10,000 memories of one user without a model, and its rollback.

    python -m benches.bench_consolidation [memories]

Runs on the database of the settings (GRAPHMEM_NEO4J_URI …, else the embedded one). Statements are synthetic. Vectors
are random around shared centres: two of every four memories are similar. Curated proposals merge every tenth pair.
"""

from __future__ import annotations

import json
import random
import sys
import time
import uuid
from typing import Any

import numpy as np

from graphmem.app.bootstrap import Services
from graphmem.app.components import Components
from graphmem.consolidation.analysis import ProposalAnalyser
from graphmem.consolidation.discovery import Discovery
from graphmem.consolidation.guards import LossLimits
from graphmem.consolidation.models import RunPhase, RunTrigger, parse_proposals
from graphmem.consolidation.rollback import RunRollback
from graphmem.consolidation.run_executor import RunExecutor
from graphmem.consolidation.run_store import RunStore
from graphmem.memories.fact_store import FactStore
from graphmem.memories.memory import MemoryIn
from graphmem.memories.new_memory import NewMemory
from graphmem.models.language_model import load_prompts
from graphmem.runtime import process
from graphmem.runtime.settings import Settings
from graphmem.runtime.times import utc_now
from graphmem.secrets.scanner import SecretPolicy
from graphmem.tenants.owners import Owner
from graphmem.tenants.tenant_settings import InstructionStore
from graphmem.user_data.forget import ForgetStore

TEXTS = ["User keeps a note about thing {}", "User filed paper {} upstairs"]
"""Texts of the memories, in turn."""


async def fill(facts: FactStore, owner: Owner, size: int, dimension: int) -> list[str]:
    """Save synthetic memories and return their ids in order."""
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
    async with Services.open(Settings(), worker=False) as memory:
        await measure(memory.components, Owner("bench", uuid.uuid4().hex), size)


async def measure(components: Components, owner: Owner, size: int) -> None:
    """Save, consolidate and roll back memories, print the seconds of each stage, and erase them."""
    graph, facts, runs = components.graph, components.facts, RunStore(components.graph)
    executor = RunExecutor(graph, facts, components.entities, runs, components.embedder, SecretPolicy([]), LossLimits())
    rollbacks = RunRollback(graph, facts, runs, utc_now, days=30)
    seconds: dict[str, float] = {}

    def record(name: str, started: float) -> None:
        seconds[name] = round(time.perf_counter() - started, 2)

    try:
        ids = await fill(facts, owner, size, components.embedder.dimension)
        started = time.perf_counter()
        batches = (await Discovery(graph, batch_size=25, max_batches=400).find_batches(owner, utc_now())).batches
        record("discovery_s", started)
        analyser, step = (
            ProposalAnalyser(graph, InstructionStore(graph), None, load_prompts(), utc_now),
            time.perf_counter(),
        )
        proposals = [proposal for batch in batches for proposal in (await analyser.analyse(owner, batch)).proposals]
        proposals += await executor.attach_versions(owner, parse_proposals(make_merge_proposals(ids)))
        record("analysis_s", step)
        step, run_id = time.perf_counter(), str(uuid.uuid4())
        await runs.create(run_id, owner.tenant, owner, RunTrigger.ON_DEMAND, utc_now(), phase=RunPhase.ANALYSED)
        considered = [key for batch in batches for key in batch.memory_ids]
        result = await executor.execute(owner, run_id, proposals, considered=considered)
        record("execution_s", step)
        record("all_s", started)
        verdicts = [proposal.verdict.value for proposal in result.proposals]
        step = time.perf_counter()
        await rollbacks.roll_back(owner.tenant, run_id)
        record("rollback_s", step)
        sizes = {"memories": size, "batches": len(batches), "changes": result.change_count}
        counts = {name: verdicts.count(name) for name in sorted(set(verdicts))}
        print(json.dumps({**sizes, **counts, **seconds}))
    finally:
        erasure = await ForgetStore(graph, utc_now).begin(owner)
        await erasure.end()


if __name__ == "__main__":
    process.run(main(int(sys.argv[1]) if len(sys.argv) > 1 else 10_000))
