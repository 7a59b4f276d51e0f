"""Two batches analysed by a large language model, as recorded: all its proposals pass the guards."""

from __future__ import annotations

import os
import uuid
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from graphmem.consolidation.analysis import ProposalAnalyser
from graphmem.consolidation.models import (
    ConsolidationRun,
    ProposalVerdict,
    RunPhase,
    RunTrigger,
)
from graphmem.memories.memory import Memory, MemoryIn
from graphmem.models.language_model import load_prompts
from graphmem.models.provider_model import ProviderModel
from graphmem.models.replay import ReplayServer
from graphmem.runtime.retries import RetryPolicy
from graphmem.tenants.tenant_settings import InstructionStore
from tests.consolidation.conftest import ConsolidationHarness
from tests.consolidation.test_analysis import batch_of
from tests.consolidation.test_execution import current, entity_id

RECORDINGS = Path(__file__).parent / "recordings"


def person(name: str) -> dict[str, str]:
    return {"name": name, "type": "Person"}


NEW: list[dict[str, Any]] = [
    {"content": "Bob works at Acme", "subject": person("Bob"), "predicate": "WORKS_AT"},
    {"content": "Bob works in the Engineering department", "subject": person("Bob"), "predicate": "WORKS_IN"},
    {"content": "User is vegetarian", "type": "preference"},
    {"content": "User eats no dairy", "type": "preference"},
    {"content": "Bob prefers coffee", "subject": person("Bob"), "type": "preference"},
    {"content": "Alice prefers tea", "subject": person("Alice"), "type": "preference"},
    {"content": "The annual report is due on 30 June 2026", "type": "plan"},
    {"content": "The annual report is due on 15 July 2026", "type": "plan"},
    {"content": "Fred repairs bicycles in Bonn", "subject": person("Fred")},
    {"content": "Frederick, whom everybody calls Fred, sings in a choir", "subject": person("Frederick")},
    {"content": "User plans to visit Rome in May 2026", "type": "plan"},
    {"content": "User is learning Italian for the visit to Rome", "type": "fact"},
    {"content": "User walks with Rex every morning", "type": "behavioral_pattern"},
    {"content": "Rex is a beagle and 4 years old"},
    {"content": "John Smith works at Acme", "subject": person("John Smith")},
    {"content": "John Doe lives next door", "subject": person("John Doe")},
    {"content": "User codes in Python", "domain": "coding"},
    {"content": "User likes Python best of all languages"},
    {"content": "User never takes planes"},
    {"content": "User took a plane to Oslo in 2019"},
]

OLD: list[dict[str, Any]] = [
    {"content": "User liked the museum of clocks in Furtwangen"},
    {"content": "User visited the museum of clocks in Furtwangen in August 2025"},
    {"content": "In August 2025 User went to see the museum of clocks in Furtwangen"},
    {"content": "User repairs old clocks"},
    {"content": "User owns 3 cuckoo clocks from the Black Forest"},
    {"content": "User sold a pendulum clock for 250 euros"},
    {"content": "User bought a pendulum clock for 180 euros"},
]


@asynccontextmanager
async def reading(harness: ConsolidationHarness) -> AsyncIterator[ProposalAnalyser]:
    """The model as recorded, or the one that GRAPHMEM_RECORD_FROM names."""
    if live := os.environ.get("GRAPHMEM_RECORD_FROM"):
        async with ProviderModel(base_url=live, retries=RetryPolicy(timeout=3600)) as model:
            yield ProposalAnalyser(harness.graph, InstructionStore(harness.graph), model, load_prompts(), harness.clock)
        return
    with ReplayServer(RECORDINGS) as replay:
        async with ProviderModel(base_url=replay.base_url, retries=RetryPolicy(attempts=1)) as model:
            yield ProposalAnalyser(harness.graph, InstructionStore(harness.graph), model, load_prompts(), harness.clock)


async def consolidate(
    harness: ConsolidationHarness, given: list[dict[str, Any]], *, old: bool = False
) -> tuple[list[Memory], ConsolidationRun]:
    memories = await harness.save_all([MemoryIn.model_validate(memory) for memory in given])
    async with reading(harness) as analyser:
        analysed = await analyser.analyse(harness.owner, batch_of(memories, old=old))
        assert analyser.verifier is not None
        verified, _ = await analyser.verifier.verify(harness.owner, analysed.proposals)
    assert analysed.invalid_count == 0
    run_id = str(uuid.uuid4())
    await harness.runs.create(
        run_id, harness.owner.tenant, harness.owner, RunTrigger.NIGHTLY, harness.clock(), phase=RunPhase.ANALYSED
    )
    await harness.executor.execute(harness.owner, run_id, verified)
    return memories, await harness.runs.get(harness.owner.tenant, run_id)


def reasons_by_action(run: ConsolidationRun) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for reviewed in run.proposals:
        assert reviewed.verdict is ProposalVerdict.EXECUTED, (reviewed.proposal, reviewed.reason)
        found.setdefault(reviewed.proposal.action, []).append(reviewed.proposal.reason)
    return found


@pytest.mark.req("UMB-11", "UMB-14", "UMB-15", "UMB-16")
@pytest.mark.timeout(7200)
async def test_a_batch_of_new_memories_becomes_smaller_and_better_connected(harness: ConsolidationHarness) -> None:
    memories, run = await consolidate(harness, NEW)
    assert {"MERGE", "ASSOCIATE", "LINK_ENTITIES", "CREATE_ENTITY"} <= reasons_by_action(run).keys()
    found = await current(harness)
    assert "Bob works at Acme in the Engineering department" in found
    assert {"User is vegetarian", "User eats no dairy"} <= found.keys(), "two rules of one diet are not one fact"
    apart = {memory["content"] for memory in NEW[4:8] + NEW[14:20]}
    assert apart <= found.keys(), "other people, dates, scopes and a negation are not merged"
    assert await entity_id(harness, "Fred") == await entity_id(harness, "Frederick")
    assert await entity_id(harness, "John Smith") != await entity_id(harness, "John Doe")
    rome = found["User plans to visit Rome in May 2026"]
    assert rome.associations == [found["User is learning Italian for the visit to Rome"].id]
    assert {memory.content for memory in found.values() if "Rex" in {entity.name for entity in memory.entities}} == {
        memories[12].content,
        memories[13].content,
    }
    before = await harness.graph_state()
    undone = await harness.roll_back(run.id)
    assert {memory["content"] for memory in NEW} == set(await current(harness))
    await harness.roll_back(undone.rollback_id)
    assert (await harness.graph_state()).keys() == before.keys()


@pytest.mark.req("UMB-17")
@pytest.mark.timeout(7200)
async def test_old_related_memories_are_merged_without_losing_a_number(harness: ConsolidationHarness) -> None:
    _, run = await consolidate(harness, OLD, old=True)
    assert "MERGE" in reasons_by_action(run)
    found = await current(harness)
    assert len(found) < len(OLD)
    text = " ".join(found)
    for detail in ("Furtwangen", "August 2025", "3 cuckoo clocks", "Black Forest", "250", "180", "repairs"):
        assert detail in text
