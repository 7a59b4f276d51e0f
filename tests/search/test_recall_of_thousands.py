"""Search among thousands of memories of one user; `make bench-scale` measures its speed."""

from __future__ import annotations

import uuid

import pytest

from benches.synthetic_data import SyntheticData
from graphmem.app.bootstrap import Services
from graphmem.search.models import SearchQuery
from graphmem.tenants.owners import Owner

MEMORIES, BATCH = 2_000, 1_000


@pytest.mark.req("QUINN-32")
async def test_each_of_thousands_of_memories_is_found_by_some_of_its_words(memory: Services, owner: Owner) -> None:
    parts = memory.components
    made = SyntheticData(uuid.uuid4().int, parts.embedder.dimension).user(owner, MEMORIES)
    group = {"group_id": owner.group_id}
    await parts.graph.write(lambda transaction: parts.facts.lock_or_create_user(transaction, owner))
    await parts.graph.execute("entities.create_entities", entities=made.entities, **group)
    for start in range(0, MEMORIES, BATCH):
        await parts.graph.execute("import.create_versions", rows=made.facts[start : start + BATCH], **group)
    for wanted in (row["properties"] for row in made.facts[:: MEMORIES // 10]):
        words = wanted["fact"].split()
        answer = await memory.retrieval.search(owner, SearchQuery(query=" ".join(words[:6]), limit=30, reinforce=False))
        assert wanted["fact"] in [hit.memory.content for hit in answer.results]
        looked_up = await memory.retrieval.lookup(owner, " ".join(words[-2:]), reinforce=False)
        assert looked_up.entities
