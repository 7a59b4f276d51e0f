"""Filters that nothing passes, and counts of what is current, over HTTP."""

from __future__ import annotations

from typing import Any

import httpx
import pytest

USER = "/v1/users/nora"


@pytest.fixture
async def dogs(agent: httpx.AsyncClient) -> None:
    """Save memories about animals and places."""
    memories: list[dict[str, Any]] = [
        {"content": "Nora owns the dog Rex", "object": {"name": "Rex", "type": "animal"}},
        *(
            {
                "content": f"Nora lives in {place}",
                "predicate": "LIVES_IN",
                "single_valued": True,
                "object": {"name": place, "type": "place"},
                "valid_at": since,
            }
            for place, since in (("Rome", "2020-01-01T00:00:00Z"), ("Oslo", "2024-01-01T00:00:00Z"))
        ),
    ]
    for memory in memories:
        assert (await agent.post(f"{USER}/memories", json={"memories": [memory]})).status_code == 200


@pytest.mark.usefixtures("dogs")
@pytest.mark.parametrize("channels", [{}, {"keyword": False, "graph": False}])
async def test_a_search_about_an_unknown_entity_finds_nothing(
    agent: httpx.AsyncClient, channels: dict[str, bool]
) -> None:
    async def search(entity: str) -> list[str]:
        answer = await agent.post(f"{USER}/search", json={"query": "dog", "entity": entity, **channels})
        return [hit["memory"]["content"] for hit in answer.json()["results"]]

    assert await search("nobody") == await search("Re") == []
    assert await search("Rex") == ["Nora owns the dog Rex"]


@pytest.mark.usefixtures("dogs")
@pytest.mark.parametrize("kind", ["animal", "Animal"])
async def test_entities_are_listed_by_the_type_that_a_caller_gave(agent: httpx.AsyncClient, kind: str) -> None:
    listed = (await agent.get(f"{USER}/entities", params={"type": kind})).json()["items"]
    assert [entity["name"] for entity in listed] == ["Rex"]


@pytest.mark.usefixtures("dogs")
async def test_entities_count_the_memories_that_are_current(agent: httpx.AsyncClient) -> None:
    listed = (await agent.get(f"{USER}/entities")).json()["items"]
    counts = {entity["name"]: entity["memory_count"] for entity in listed}
    assert (counts["Rome"], counts["Oslo"], counts["nora"]) == (0, 1, 2)
