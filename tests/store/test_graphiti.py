"""Graphiti reads what graphmem wrote."""

from __future__ import annotations

import pytest

from graphmem.bootstrap import Services
from graphmem.domain.identity import Owner
from graphmem.domain.memory import MemoryIn
from graphmem.service.graphiti import build_user_filter, open_graphiti
from graphmem.settings import Settings

pytest.importorskip("graphiti_core", reason="the extra `graphiti` is not installed")


async def test_graphiti_search_finds_the_current_facts_of_one_user(
    memory: Services, database: Settings, owner: Owner
) -> None:
    for place in ("Lund", "Malmö"):
        await memory.memories.save(
            owner,
            [
                MemoryIn(
                    content=f"Mara lives in {place}",
                    predicate="LIVES_IN",
                    single_valued=True,
                    object={"name": place, "type": "Place"},
                )
            ],
        )
    await memory.memories.save(Owner(owner.tenant, "other"), [MemoryIn(content="Otto lives in Oslo")])
    parts = memory.components
    await parts.graph.fetch("schema.await_indexes")
    assert database.neo4j_uri
    assert database.neo4j_password
    password = database.neo4j_password.get_secret_value()
    async with open_graphiti(parts.settings, database.neo4j_uri, password, parts.embedder) as graphiti:
        scope = await build_user_filter(parts.graph, owner)
        found = await graphiti.search("where does Mara live?", search_filter=scope)
        assert [edge.fact for edge in found] == ["Mara lives in Malmö"]
        history = await graphiti.search(
            "Lund", search_filter=await build_user_filter(parts.graph, owner, current=False)
        )
        assert {edge.fact for edge in history} == {"Mara lives in Lund", "Mara lives in Malmö"}
        assert found[0].name == "LIVES_IN"
        assert found[0].valid_at is not None
