"""Types of memories and entities that a tenant declares, and the type that a caller gave."""

from __future__ import annotations

from typing import Any

import httpx
import pytest

from tests.api.conftest import Caller

PATH = "/v1/admin/types"
MEMORIES = "/v1/users/mara/memories"
RECIPE = {
    "name": "Recipe",
    "description": "A dish the user cooks.",
    "base": "preference",
    "attributes": {
        "type": "object",
        "properties": {"servings": {"type": "integer"}, "cuisine": {"type": "string"}},
        "required": ["servings"],
    },
}
INSTRUMENT = {"name": "Instrument", "attributes": {"properties": {"strings": {"type": "integer"}}}}
STEW = {"content": "Mara cooks a bean stew", "type": "recipe", "metadata": {"servings": 4}}


async def save(client: httpx.AsyncClient, *memories: dict[str, Any]) -> list[dict[str, Any]]:
    answer = await client.post(MEMORIES, json={"memories": memories})
    assert answer.status_code == 200, answer.text
    return [result["memory"] for result in answer.json()["results"]]


@pytest.mark.req("QUINN-13")
async def test_every_type_of_the_seed_is_accepted_and_returned_as_it_was_given(agent: httpx.AsyncClient) -> None:
    given = ["preference", "fact", "summary", "persona", "personal_info", "USER_PREFERENCE"]
    saved = await save(agent, *({"content": f"Statement {name}", "type": name} for name in given))
    assert [memory["subtype"] for memory in saved] == given
    assert [memory["type"] for memory in saved] == [
        "preference", "fact", "conversation_summary", "fact", "fact", "preference",
    ]  # fmt: skip


@pytest.mark.req("QUINN-13")
async def test_a_declared_type_is_saved_filtered_and_corrected(
    admin: httpx.AsyncClient, agent: httpx.AsyncClient
) -> None:
    refused = await agent.post(MEMORIES, json={"memories": [STEW]})
    assert refused.status_code == 422
    assert refused.json()["errors"][0]["loc"] == ["memories", 0, "type"]
    assert PATH in refused.json()["detail"]
    assert "recipe" not in refused.text
    declared = await admin.put(PATH, json={"memory_types": [RECIPE], "entity_types": [INSTRUMENT]})
    assert declared.status_code == 200, declared.text
    assert declared.json()["memory_types"][0]["name"] == "recipe"
    assert (await admin.get(PATH)).json() == declared.json()

    stew, plain = await save(agent, STEW, {"content": "Mara lives in Lisbon"})
    assert (stew["type"], stew["subtype"], stew["predicate"]) == ("preference", "recipe", "PREFERS")
    listed = (await agent.get(MEMORIES, params={"type": "Recipe"})).json()["items"]
    assert [memory["id"] for memory in listed] == [stew["id"]]
    found = await agent.post("/v1/users/mara/search", json={"query": "Mara", "types": ["recipe"]})
    assert [hit["memory"]["id"] for hit in found.json()["results"]] == [stew["id"]]
    assert (await agent.get(MEMORIES, params={"type": "poem"})).status_code == 422
    changed = await agent.patch(f"{MEMORIES}/{plain['id']}", json={"type": "recipe", "metadata": {"servings": 2}})
    assert (changed.json()["type"], changed.json()["subtype"]) == ("preference", "recipe")


@pytest.mark.req("QUINN-13")
async def test_attributes_must_fit_the_declared_schema(admin: httpx.AsyncClient, agent: httpx.AsyncClient) -> None:
    await admin.put(PATH, json={"memory_types": [RECIPE], "entity_types": [INSTRUMENT]})
    for metadata in ({}, {"servings": "4411"}):
        answer = await agent.post(MEMORIES, json={"memories": [{**STEW, "metadata": metadata}]})
        assert (answer.status_code, answer.json()["errors"][0]["loc"]) == (422, ["memories", 0, "metadata"])
        assert "4411" not in answer.text

    def plays(strings: object, kind: str = "Instrument") -> dict[str, Any]:
        cello = {"name": "cello", "type": kind, "attributes": {"strings": strings}}
        return {"content": "Mara plays the cello", "predicate": "PLAYS", "object": cello}

    [memory] = await save(agent, plays(4))
    entity = (await agent.get(f"/v1/users/mara/entities/{memory['object']['id']}")).json()
    assert (entity["type"], entity["attributes"]) == ("Instrument", {"strings": 4})
    for wrong in (plays("four"), plays(4, "Vehicle")):
        assert (await agent.post(MEMORIES, json={"memories": [wrong]})).status_code == 422


UNUSABLE: list[dict[str, Any]] = [
    {"name": "preference"},
    {"name": "persona"},
    {"name": "recipe", "attributes": {"$ref": "http://127.0.0.1/schema"}},
    {"name": "recipe", "attributes": {"properties": {"a": {"pattern": "(a+)+$"}}}},
    {"name": "recipe", "attributes": {"properties": {"a": {"type": "number of things"}}}},
    {"name": "recipe", "base": "rumour"},
    {"name": "recipe", "description": "The card is 4111 1111 1111 1111"},
]


async def test_a_declaration_that_cannot_be_used_is_422(admin: httpx.AsyncClient, agent: httpx.AsyncClient) -> None:
    for memory_type in UNUSABLE:
        answer = await admin.put(PATH, json={"memory_types": [memory_type]})
        assert answer.status_code == 422, memory_type
        assert "4111" not in answer.text
    assert (await admin.get(PATH)).json()["memory_types"] == []
    assert (await agent.put(PATH, json={})).status_code == 403


async def test_declared_types_are_those_of_one_tenant(
    admin: httpx.AsyncClient, agent: httpx.AsyncClient, caller: Caller
) -> None:
    await admin.put(PATH, json={"memory_types": [RECIPE]})
    other = await caller("admin", of=admin.base_url.host.replace(".", "") + "other")
    assert (await other.get(PATH)).json()["memory_types"] == []
    await save(agent, STEW)
    assert (await admin.put(PATH, json={})).json()["memory_types"] == []
    [kept] = (await agent.get(MEMORIES)).json()["items"]
    assert kept["subtype"] == "recipe"


async def test_an_object_as_content_is_kept_and_found_by_its_words(agent: httpx.AsyncClient) -> None:
    settings = {"preferred_os": "Linux", "stack": {"web": "Django"}}
    [memory] = await save(agent, {"content": settings, "type": "preference", "metadata": {"ticket": "QX-77"}})
    assert memory["content"] == "preferred os: Linux; stack.web: Django"
    assert memory["content_data"] == settings
    by_metadata = {"query": "QX-77", "semantic": False, "graph": False}
    found = (await agent.post("/v1/users/mara/search", json=by_metadata)).json()["results"]
    assert [hit["memory"]["id"] for hit in found] == [memory["id"]]
    changed = await agent.patch(f"{MEMORIES}/{memory['id']}", json={"content": {"preferred_os": "BSD"}})
    assert changed.json()["content_data"] == {"preferred_os": "BSD"}
    text = await agent.patch(f"{MEMORIES}/{memory['id']}", json={"content": "Mara prefers macOS"})
    assert text.json()["content_data"] is None
    secret = {"content": {"card": "4111 1111 1111 1111"}}
    assert (await agent.patch(f"{MEMORIES}/{memory['id']}", json=secret)).status_code == 422


async def test_associations_are_given_on_save_and_patch_and_hold_in_both_directions(agent: httpx.AsyncClient) -> None:
    linux, editor = await save(agent, {"content": "Mara uses Linux"}, {"content": "Mara uses VSCode"})
    [setup] = await save(agent, {"content": "Mara's setup", "associations": [linux["id"]]})

    async def associated(memory: dict[str, Any]) -> list[str]:
        return list((await agent.get(f"{MEMORIES}/{memory['id']}")).json()["associations"])

    assert setup["associations"] == [linux["id"]]
    assert await associated(linux) == [setup["id"]]
    changed = await agent.patch(f"{MEMORIES}/{setup['id']}", json={"associations": [editor["id"]]})
    assert changed.json()["associations"] == [editor["id"]]
    assert [await associated(linux), await associated(editor)] == [[], [setup["id"]]]
    unknown = {"content": "Mara's desk", "associations": ["nothing"]}
    assert (await agent.post(MEMORIES, json={"memories": [unknown]})).status_code == 404
