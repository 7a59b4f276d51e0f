"""Graphiti reads what graphmem wrote, and graphmem adopts what Graphiti wrote."""

from __future__ import annotations

import importlib.util
import uuid
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from graphmem.app.bootstrap import Services
from graphmem.graph_memory import GraphMemory
from graphmem.memories.filters import ListFilters
from graphmem.memories.memory import MemoryIn
from graphmem.runtime.errors import NotFound
from graphmem.runtime.settings import Settings
from graphmem.search.graphiti import (
    build_user_filter,
    graphiti_environment,
    open_graphiti,
)
from graphmem.tenants.owners import Owner
from graphmem.user_data.graphiti import read_graph

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


EXAMPLE = Path(__file__).parents[2] / "examples" / "adopt_graphiti.py"


def at(year: int) -> datetime:
    return datetime(year, 3, 1, tzinfo=UTC)


@pytest.fixture
async def live_group(memory: Services, database: Settings) -> AsyncIterator[str]:
    """A group that Graphiti's own classes wrote: two facts, an episode, a summary and attributes."""
    with graphiti_environment(memory.components.embedder):
        from graphiti_core.driver.neo4j_driver import Neo4jDriver
        from graphiti_core.edges import EntityEdge
        from graphiti_core.nodes import EntityNode, EpisodeType, EpisodicNode

    group, zeros = f"live-{uuid.uuid4().hex[:8]}", [0.5] * memory.components.embedder.dimension
    driver = Neo4jDriver(database.neo4j_uri or "", database.neo4j_user, password_of(database))
    made = {"group_id": group, "created_at": at(2023)}
    ada = EntityNode(
        name="Ada", labels=["Person"], summary="Ada is a pianist.", attributes={"age": 41}, name_embedding=zeros, **made
    )
    cities = [EntityNode(name=name, labels=["Place"], name_embedding=zeros, **made) for name in ("Turin", "London")]
    episode = EpisodicNode(
        name="talk 1", source=EpisodeType.message, source_description="chat", content="Ada: I moved to London.",
        valid_at=at(2024), **made,
    )  # fmt: skip
    spans: list[dict[str, Any]] = [
        {"valid_at": at(2019), "invalid_at": at(2024), "expired_at": at(2024)},
        {"valid_at": at(2024)},
    ]
    facts = [
        EntityEdge(
            name="LIVES_IN", fact=f"Ada lives in {city.name}", source_node_uuid=ada.uuid, target_node_uuid=city.uuid,
            fact_embedding=zeros, episodes=[episode.uuid], attributes={"flat": "shared"}, **made, **times,
        )
        for city, times in zip(cities, spans, strict=True)
    ]  # fmt: skip
    elements: list[Any] = [ada, *cities, episode, *facts]
    for element in elements:
        await element.save(driver)
    yield group
    await driver.execute_query("MATCH (n) WHERE n.group_id = $group DETACH DELETE n", group=group)
    await driver.close()


def password_of(database: Settings) -> str:
    assert database.neo4j_password
    return database.neo4j_password.get_secret_value()


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
async def test_a_live_graph_is_adopted_as_a_copy_that_forget_removes(
    memory: Services, database: Settings, owner: Owner, live_group: str
) -> None:
    spec = importlib.util.spec_from_file_location("adopt_graphiti", EXAMPLE)
    assert spec
    assert spec.loader
    example: Any = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(example)
    source = (database.neo4j_uri or "", database.neo4j_user, password_of(database))
    before = await read_graph(*source, "neo4j", live_group)
    python = GraphMemory(memory, owner.tenant)
    for expected in ({"memories": 2, "messages": 1}, {"memories": 0, "messages": 0}):
        assert await example.adopt(python, owner.user_id, *source, live_group) == expected
    assert (await example.answer(python, owner.user_id, "Where does Ada live?"))[0] == "Ada lives in London"

    [london] = (await memory.memories.page(owner, ListFilters())).items
    assert (london.valid_at, london.metadata) == (at(2024), {"flat": "shared"})
    past = await memory.memories.page(owner, ListFilters.model_validate({"valid_as_of": "2020-01-01T00:00:00Z"}))
    assert [fact.content for fact in past.items] == ["Ada lives in Turin"]
    ada = await memory.entities.get(owner, london.subject.id)
    assert (ada.type, ada.summary, ada.attributes) == ("Person", "Ada is a pianist.", {"age": 41})
    [message] = (await python.session_messages(owner.user_id, "graphiti")).items
    assert (message.content, message.timestamp) == ("Ada: I moved to London.", at(2024))
    assert london.source.message_ids == [message.id]

    assert (await memory.forgetting.forget(owner)).residue == 0
    assert await read_graph(*source, "neo4j", live_group) == before
    with pytest.raises(NotFound):
        await read_graph(*source, "neo4j", "no-such-group")
