"""Similarities that are computed from vectors in memory."""

from __future__ import annotations

import pytest

from graphmem.app.bootstrap import Services
from graphmem.conversations.session import MessagesIn
from graphmem.memories.memory import MemoryIn
from graphmem.memories.vectors import StoredVectors
from graphmem.search.models import SearchQuery
from graphmem.tenants.owners import Owner

TEXTS = ("Mara is allergic to hazelnuts", "Bob plays the cello")


async def save(services: Services, owner: Owner) -> dict[str, str]:
    """Save the texts as memories; return the uuids of their versions by text."""
    results = await services.memories.save(owner, [MemoryIn(content=text) for text in TEXTS])
    rows = await services.components.graph.fetch(
        "facts.fetch_latest",
        group_ids=[owner.group_id],
        memory_ids=[result.memory.id for result in results if result.memory],
    )
    return {row["fact"]["fact"]: row["fact"]["uuid"] for row in rows}


async def test_similarities_are_those_of_the_vectors_that_are_stored(memory: Services, owner: Owner) -> None:
    uuids = await save(memory, owner)
    question, *vectors = await memory.components.embedder.embed(["food she must not eat", *TEXTS])
    cache = StoredVectors(memory.components.graph)
    for _ in range(2):
        found = await cache.similarities(owner, "facts", [*uuids.values(), "unknown"], [question, vectors[0]])
        assert found.keys() == set(uuids.values())
        nuts, cello = (found[uuids[text]] for text in TEXTS)
        expected = sum(a * b for a, b in zip(question, vectors[0], strict=True))
        assert nuts == pytest.approx([expected, 1.0], abs=1e-4)
        assert nuts[0] > cello[0]


async def test_a_user_gets_no_similarity_to_what_others_saved_and_nothing_stays_after_forgetting(
    memory: Services, owner: Owner
) -> None:
    uuids = await save(memory, owner)
    turn = {"id": "m1", "role": "user", "content": TEXTS[0]}
    await memory.messages.add(owner, MessagesIn.model_validate({"messages": [turn], "extract": False}))
    (vector,) = await memory.components.embedder.embed([TEXTS[0]])
    cache, other = StoredVectors(memory.components.graph, max_vectors=2), Owner(owner.tenant, "bob")
    assert await cache.similarities(other, "facts", uuids.values(), [vector]) == {}
    assert len(await cache.similarities(owner, "facts", uuids.values(), [vector])) == 2
    same = await cache.similarities(owner, "messages", ["m1"], [vector])
    assert same["m1"] == pytest.approx([1.0], abs=1e-4)
    assert await cache.count_user(owner) == 2, "the vector that was used least recently makes room"
    await cache.discard_user(owner)
    assert await cache.count_user(owner) == 0


async def test_a_fact_that_only_words_find_has_its_similarity(memory: Services, owner: Owner) -> None:
    await save(memory, owner)
    query = SearchQuery(query="cello", reinforce=False)
    by_all = (await memory.retrieval.search(owner, query)).results[0]
    by_words = (await memory.retrieval.search(owner, query.model_copy(update={"graph": False}))).results[0]
    assert by_all.memory.content == by_words.memory.content == TEXTS[1]
    assert by_words.score == pytest.approx(by_all.score, abs=1e-4)
    assert by_words.score > 0.5
