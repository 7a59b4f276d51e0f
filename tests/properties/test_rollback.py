"""Random runs over random memories: rolling them back restores every property, vector, label and relationship."""

from __future__ import annotations

import uuid
from datetime import UTC, datetime
from random import Random
from typing import Any

import pytest
from hypothesis import HealthCheck, assume, event, given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from graphmem.consolidation.guards import LossLimits
from graphmem.consolidation.models import ProposalVerdict
from graphmem.consolidation.rollback import RunRollback
from graphmem.consolidation.run_executor import RunExecutor
from graphmem.consolidation.run_store import RunStore
from graphmem.conversations.episode_store import EpisodeStore
from graphmem.conversations.session import MessageIn, MessageRole
from graphmem.conversations.stored import PreparedMessage
from graphmem.memories.entity_store import EntityStore
from graphmem.memories.fact import RetrievalCount
from graphmem.memories.fact_store import FactStore
from graphmem.memories.memory import MemoryIn, MemorySourceIn
from graphmem.models.embedder import Embedder
from graphmem.neo4j.driver import Graph
from graphmem.secrets.scanner import SecretPolicy
from graphmem.tenants.owners import Owner
from tests.conftest import FakeClock, examples
from tests.consolidation.conftest import ConsolidationHarness
from tests.consolidation.test_execution import current, entity_id
from tests.search.sources import compare_sources, open_copies

NOON = datetime(2026, 6, 1, 12, tzinfo=UTC)
THINGS = ["tea", "jazz", "chess", "rain", "bread", "maps", "rowing", "salt", "moths", "clay"]
QUESTIONS = [f"who likes {thing}?" for thing in THINGS]


@st.composite
def memory_specs(draw: st.DrawFn) -> list[dict[str, Any]]:
    """Random memories about the user or a person; some mention others, some have a source message."""
    size = draw(st.integers(3, 9))
    things = draw(st.permutations(THINGS))[:size]
    return [
        {
            "thing": thing,
            "subject": draw(st.sampled_from([None, "Fred", "Frederick", "Ines"])),
            "object": draw(st.booleans()),
            "mentions": draw(st.lists(st.sampled_from(["Fred", "Ines", "Tomasz"]), max_size=1)),
            "has_message": draw(st.booleans()),
        }
        for thing in things
    ]


runs = st.lists(
    st.lists(
        st.tuples(
            st.sampled_from(["MERGE", "ASSOCIATE", "CREATE_ENTITY", "UPDATE_ENTITY", "LINK_ENTITIES"]),
            st.integers(0, 20),
            st.integers(0, 20),
        ),
        min_size=1,
        max_size=5,
    ),
    min_size=1,
    max_size=3,
)


@pytest.mark.req("UMB-13")
@hypothesis_settings(
    max_examples=examples(0.1), suppress_health_check=list(HealthCheck), derandomize=True, database=None
)
@given(specs=memory_specs(), plan=runs, read=st.booleans())
async def test_rolling_back_runs_in_reverse_restores_the_graph(
    graph: Graph, embedder: Embedder, specs: list[dict[str, Any]], plan: list[list[tuple[str, int, int]]], read: bool
) -> None:
    harness, copies, random = _make_harness(graph, embedder), open_copies(graph), Random(len(specs))
    await _save_memories(harness, specs)
    states, run_ids = [await harness.graph_state()], []
    for steps in plan:
        run = await harness.execute(*await _proposals(harness, steps))
        for judged in run.proposals:
            event(f"{judged.proposal.action} {judged.verdict.value}")
        if run.change_count:
            run_ids.append(run.id)
            states.append(await harness.graph_state())
        await compare_sources(copies, graph, embedder, harness.owner, QUESTIONS, random)
    assume(run_ids)
    if read:
        hits = {memory_id: RetrievalCount(2, harness.clock()) for memory_id in await _current(harness)}
        await harness.facts.reinforce(harness.owner, hits)
    last = states.pop()
    rollback_id = None
    for run_id in reversed(run_ids):
        rollback_id = (await harness.roll_back(run_id)).rollback_id
        await compare_sources(copies, graph, embedder, harness.owner, QUESTIONS, random)
        assert _without_read_counters(await harness.graph_state(), read) == _without_read_counters(states.pop(), read)
        if len(run_ids) == 1:
            await harness.roll_back(rollback_id)
            assert _without_read_counters(await harness.graph_state(), read) == _without_read_counters(last, read)


@pytest.mark.req("UMB-13", "UMB-14")
async def test_a_run_of_all_five_actions_is_rolled_back_exactly(graph: Graph, embedder: Embedder) -> None:
    harness = _make_harness(graph, embedder)
    spec = {"subject": None, "object": True, "mentions": ["Ines"], "has_message": True}
    people = [{**spec, "thing": "maps", "subject": "Fred"}, {**spec, "thing": "salt", "subject": "Frederick"}]
    await _save_memories(harness, [{**spec, "thing": thing} for thing in ("tea", "jazz", "rain")] + people)
    before = await harness.graph_state()
    memories = {memory.content: memory.id for memory in (await current(harness)).values()}
    tea, jazz, rain = (memories[f"likes {thing} and Berlin"] for thing in ("tea", "jazz", "rain"))
    fred, frederick, ines = [await entity_id(harness, name) for name in ("Fred", "Frederick", "Ines")]
    run = await harness.execute(
        {"action": "MERGE", "memory_ids": [tea, jazz], "content": "likes tea and Berlin; likes jazz and Berlin"},
        {"action": "ASSOCIATE", "memory_ids": [jazz, rain]},
        {"action": "CREATE_ENTITY", "name": "Berlin", "type": "City", "memory_ids": [rain]},
        {"action": "UPDATE_ENTITY", "entity_id": ines, "set": {"mood": "calm"}, "add_aliases": ["Nessa"]},
        {"action": "LINK_ENTITIES", "keep_id": frederick, "merge_id": fred},
    )
    assert [proposal.verdict for proposal in run.proposals] == [ProposalVerdict.EXECUTED] * 5
    during = await harness.graph_state()
    undone = await harness.roll_back(run.id)
    assert await harness.graph_state() == before
    await harness.roll_back(undone.rollback_id)
    assert await harness.graph_state() == during


def _make_harness(graph: Graph, embedder: Embedder) -> ConsolidationHarness:
    clock = FakeClock(NOON)
    entities = EntityStore(graph)
    facts = FactStore(graph, entities, clock)
    stored = RunStore(graph)
    limits = LossLimits(max_ended_share=1.0, min_text_share=0.0)
    executor = RunExecutor(graph, facts, entities, stored, embedder, SecretPolicy([]), limits)
    rollbacks = RunRollback(graph, facts, stored, clock, days=30)
    owner = Owner("property", uuid.uuid4().hex)
    return ConsolidationHarness(graph, owner, clock, embedder, entities, facts, stored, executor, rollbacks)


async def _save_memories(harness: ConsolidationHarness, specs: list[dict[str, Any]]) -> None:
    turns = [
        PreparedMessage(
            MessageIn(id=f"m-{spec['thing']}", role=MessageRole.USER, content=f"On {spec['thing']}"), [0.1] * 384
        )
        for spec in specs
        if spec["has_message"]
    ]
    if turns:
        await EpisodeStore(harness.graph, harness.clock).append_messages(harness.owner, "s", turns)
    await harness.save_all(
        [
            MemoryIn(
                content=f"likes {spec['thing']} and Berlin",
                subject={"name": spec["subject"], "type": "Person"} if spec["subject"] else None,
                object={"name": spec["thing"], "type": "Interest"} if spec["object"] else None,
                entities=[{"name": name, "type": "Person"} for name in spec["mentions"] if name != spec["subject"]],
                source=MemorySourceIn(message_ids=[f"m-{spec['thing']}"]) if spec["has_message"] else None,
                tags=[spec["thing"]],
            )
            for spec in specs
        ]
    )


async def _current(harness: ConsolidationHarness) -> list[str]:
    rows = await harness.graph.fetch(
        "consolidation.fetch_discovery_candidates", group_id=harness.owner.group_id, now=harness.clock()
    )
    return sorted(row["memory_id"] for row in rows)


async def _proposals(harness: ConsolidationHarness, steps: list[tuple[str, int, int]]) -> list[dict[str, Any]]:
    rows = await harness.graph.fetch(
        "consolidation.fetch_discovery_candidates", group_id=harness.owner.group_id, now=harness.clock()
    )
    rows.sort(key=lambda row: (row["subject_id"], row["memory_id"]))
    page, _ = await harness.entities.list_page(harness.owner, text=None, type=None, after=None, limit=100)
    entities = sorted(page, key=lambda entity: entity.name)
    found: list[dict[str, Any]] = []
    given: dict[str, Any]
    for action, one, other in steps:
        first = rows[one % len(rows)]
        same_subject = [row for row in rows if row["subject_id"] == first["subject_id"] and row != first]
        second = same_subject[other % len(same_subject)] if same_subject else first
        entity, another = entities[one % len(entities)], entities[other % len(entities)]
        ids = [first["memory_id"], second["memory_id"]]
        if action == "MERGE":
            texts = [(await harness.facts.get(harness.owner, key)).content for key in ids]
            given = {"memory_ids": ids, "content": "; ".join(texts)}
        elif action == "ASSOCIATE":
            given = {"memory_ids": ids}
        elif action == "CREATE_ENTITY":
            given = {"name": "Berlin", "type": "City", "memory_ids": ids}
        elif action == "UPDATE_ENTITY":
            known = {"mood": f"m{other}", "summary": "Seen."}
            given = {"entity_id": entity.id, "set": known, "add_aliases": [f"N{one}"]}
        else:
            pair = {known.name: known.id for known in entities if known.name in ("Fred", "Frederick")}
            names = list(pair.values()) if len(pair) == 2 else [entity.id, another.id]
            given = {"keep_id": names[0], "merge_id": names[1]}
        if action in ("MERGE", "ASSOCIATE") and ids[0] == ids[1]:
            continue
        if action == "LINK_ENTITIES" and given["keep_id"] == given["merge_id"]:
            continue
        found.append({"action": action, **given})
    fallback = {"action": "CREATE_ENTITY", "name": "Atlantis", "type": "City", "memory_ids": [rows[0]["memory_id"]]}
    return found or [fallback]


def _without_read_counters(everything: dict[str, Any], read: bool) -> dict[str, Any]:
    """Return the state without the properties that a retrieval changes, if there was one."""
    if not read:
        return everything
    counters = {"access_count", "last_accessed_at", "strength", "confidence"}
    return {
        key: (*rest, {name: value for name, value in properties.items() if name not in counters})
        for key, (*rest, properties) in everything.items()
    }
