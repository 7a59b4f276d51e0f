"""Recall among thousands of memories of one user, and among those of many."""

from __future__ import annotations

from statistics import median

import pytest

from benches.world import World
from graphmem.bootstrap import GraphMemory
from graphmem.domain.identity import Owner
from graphmem.domain.recall import SearchQuery

MEMORIES, BATCH = 5_000, 1_000


@pytest.mark.req("QUINN-32")
async def test_recall_among_five_thousand_memories_takes_less_than_a_tenth_of_a_second(
    memory: GraphMemory, owner: Owner
) -> None:
    parts = memory.parts
    made = World(32, parts.embedder.dimension).user(owner, MEMORIES)
    await parts.graph.execute("entities.create", rows=[{"properties": each} for each in made.entities])
    for start in range(0, MEMORIES, BATCH):
        await parts.graph.execute("facts.create_rows", rows=made.facts[start : start + BATCH])
    await parts.graph.write(lambda transaction: parts.facts.lock(transaction, owner))

    asked = [row["properties"]["fact"] for row in made.facts[:: MEMORIES // 10]]
    searched, looked_up = [], []
    for text in asked:
        query = SearchQuery(query=" ".join(text.split()[:6]), reinforce=False)
        answers = [await memory.retrieval.search(owner, query) for _ in range(3)]
        assert len(answers[0].results) == 10
        searched.append(min(each.took_ms for each in answers))
        found = [await memory.retrieval.lookup(owner, text, reinforce=False) for _ in range(3)]
        assert found[0].entities
        looked_up.append(min(each.took_ms for each in found))
    # The best of three is what it takes when nothing else is at work on the machine.
    assert median(searched) < 100
    assert median(looked_up) < 100
