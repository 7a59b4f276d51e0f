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
async def test_a_search_about_an_unknown_entity_finds_nothing(agent: httpx.AsyncClient) -> None:
    async def search(entity: str, **channels: bool) -> list[str]:
        answer = await agent.post(f"{USER}/search", json={"query": "dog", "entity": entity, **channels})
        return [hit["memory"]["content"] for hit in answer.json()["results"]]

    for channels in ({}, {"keyword": False, "graph": False}):
        assert await search("nobody", **channels) == await search("Re", **channels) == [], channels
        assert await search("Rex", **channels) == ["Nora owns the dog Rex"], channels


@pytest.mark.usefixtures("dogs")
async def test_entities_are_listed_by_the_type_that_a_caller_gave_and_count_their_current_memories(
    agent: httpx.AsyncClient,
) -> None:
    for kind in ("animal", "Animal"):
        listed = (await agent.get(f"{USER}/entities", params={"type": kind})).json()["items"]
        assert [entity["name"] for entity in listed] == ["Rex"], kind
    listed = (await agent.get(f"{USER}/entities")).json()["items"]
    counts = {entity["name"]: entity["memory_count"] for entity in listed}
    assert (counts["Rome"], counts["Oslo"], counts["nora"]) == (0, 1, 2)


@pytest.mark.req("QUINN-13")
@pytest.mark.parametrize("given", [pytest.param("persona", marks=pytest.mark.long), "Persona"])
async def test_memories_are_found_by_the_type_that_their_writer_gave(agent: httpx.AsyncClient, given: str) -> None:
    words = {
        "persona": "speaks plainly",
        "personal_info": "was born in Lund",
        "preference": "likes tea",
        "fact": "rows",
    }
    memories = [{"content": f"Nora {text}", "type": word, "subject": {"name": "Nora"}} for word, text in words.items()]
    assert (await agent.post(f"{USER}/memories", json={"memories": memories})).status_code == 200

    async def listed(**query: str) -> set[str]:
        items = (await agent.get(f"{USER}/memories", params=query)).json()["items"]
        return {item["subtype"] for item in items}

    assert await listed(type=given) == {"persona"}
    assert await listed(type="personal-info") == {"personal_info"}
    assert await listed(type="fact") == {"fact", "persona", "personal_info"}
    assert await listed(subtype=given) == {"persona"}
    assert await listed(subtype="personal-info") == {"personal_info"}
    assert await listed(subtype="fact") == {"fact"}
    assert await listed(subtype="gossip") == set()
    for query in ({"subtype": given}, {"types": [given]}):
        found = (await agent.post(f"{USER}/search", json={"query": "Nora", **query})).json()["results"]
        assert [hit["memory"]["content"] for hit in found] == ["Nora speaks plainly"]
    looked_up = (await agent.get(f"{USER}/entities/lookup", params={"q": "Nora", "subtype": given})).json()
    assert [memory["subtype"] for memory in looked_up["entities"][0]["memories"]] == ["persona"]


async def test_entities_without_a_type_get_the_one_that_is_known_or_that_the_predicate_implies(
    agent: httpx.AsyncClient,
) -> None:
    def memory(subject: str, predicate: str, name: str, **given: str) -> dict[str, Any]:
        target = {"name": name, **given}
        return {
            "content": f"{subject} {predicate} {name}",
            "subject": {"name": subject},
            "predicate": predicate,
            "object": target,
        }

    memories = [
        memory("Bob", "OWNS", "The Anchor", type="Pub"),
        memory("Bob", "WORKS_AT", "Acme"),
        memory("Bob", "MARRIED_TO", "Ida"),
        memory("Rex", "LIVES_IN", "Lund"),
        memory("Bob", "LIVES_IN", "The Anchor"),
        memory("Bob", "WORKS_AT", "Tivoli"),
        memory("Ida", "LIVES_IN", "Tivoli", type="Park"),
        memory("Ida", "LIKES", "chess"),
    ]
    assert (await agent.post(f"{USER}/memories", json={"memories": memories[:1]})).status_code == 200
    assert (await agent.post(f"{USER}/memories", json={"memories": memories[1:]})).status_code == 200
    listed = (await agent.get(f"{USER}/entities")).json()["items"]
    assert {entity["name"]: entity["type"] for entity in listed if not entity["is_user"]} == {
        "The Anchor": "Pub", "Acme": "Organization", "Bob": "Person", "Ida": "Person", "Lund": "Place", "Rex": "Thing",
        "Tivoli": "Park", "chess": "Thing",
    }  # fmt: skip


@pytest.mark.req("QUINN-22")
async def test_a_list_is_filtered_by_metadata_in_both_forms_of_a_query_string(agent: httpx.AsyncClient) -> None:
    memories = [{"content": "The plan is old", "metadata": {"file": "plan.md"}}, {"content": "The sky is wide"}]
    await agent.post(f"{USER}/memories", json={"memories": memories})
    for form in ({"metadata": "file=plan.md"}, {"metadata.file": "plan.md"}):
        listed = (await agent.get(f"{USER}/memories", params=form)).json()["items"]
        assert [memory["content"] for memory in listed] == ["The plan is old"], form
    refused = await agent.get(f"{USER}/memories", params={"metadata": "plan.md"})
    assert refused.status_code == 422
    assert "KEY=VALUE" in refused.text
