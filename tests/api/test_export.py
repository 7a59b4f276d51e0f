"""Exporting a user over HTTP."""

from __future__ import annotations

import httpx
import jsonschema
import pytest
import yaml

MEMORIES = "/v1/users/mara/memories"
LOG = [{"role": "user", "content": "I live in Lisbon."}, {"role": "assistant", "content": "Noted."}]


@pytest.mark.parametrize("form", ["json", "yaml"])
async def test_export_round_trips_through_import(agent: httpx.AsyncClient, form: str) -> None:
    saved = (await agent.post(MEMORIES, json={"memories": [{"content": "Mara lives in Lisbon"}]})).json()["results"][0]
    exported = await agent.get(f"/v1/users/mara/export?format={form}")
    assert exported.headers["content-type"] == f"application/{form}"
    headers = {"content-type": exported.headers["content-type"]}
    answer = await agent.post("/v1/users/omar/import", content=exported.content, headers=headers)
    assert answer.status_code == 200, answer.text
    items = (await agent.get("/v1/users/omar/memories")).json()["items"]
    assert [item["content"] for item in items] == [saved["memory"]["content"]]


@pytest.mark.req("QUINN-12", "QUINN-15", "QUINN-16")
async def test_export_matches_the_published_schema(agent: httpx.AsyncClient) -> None:
    schema = (await agent.get("/v1/schema/export")).json()
    jsonschema.Draft202012Validator.check_schema(schema)
    validator = jsonschema.Draft202012Validator(schema)
    memory = {"content": "Mara lives in Lisbon", "valid_at": "2025-01-01T00:00:00Z", "tags": ["home"], "domain": "home"}
    [saved] = (await agent.post(MEMORIES, json={"memories": [memory]})).json()["results"]
    await agent.patch(f"{MEMORIES}/{saved['memory']['id']}", json={"content": "Mara lives in Porto"})
    await agent.post("/v1/users/mara/messages", json={"messages": LOG, "extract": False})
    export = (await agent.get("/v1/users/mara/export")).json()
    assert len(export["memories"]) == 2
    assert [error.json_path for error in validator.iter_errors(export)] == []
    assert yaml.safe_load((await agent.get("/v1/users/mara/export?format=yaml")).text) == export

    version = export["memories"][0]["properties"]
    for broken in ({"type": "rumour"}, {"confidence": 2}, {"created_at": "2025-01-01"}, {"colour": "red"}):
        export["memories"][0]["properties"] = version | broken
        assert not validator.is_valid(export), broken
    export["memories"][0]["properties"] = {name: version[name] for name in version if name != "memory_id"}
    assert not validator.is_valid(export)


async def test_export_is_streamed(agent: httpx.AsyncClient) -> None:
    saves = [{"content": f"Mara keeps the key number {number} in a box"} for number in range(60)]
    await agent.post(MEMORIES, json={"memories": saves})
    async with agent.stream("GET", "/v1/users/mara/export") as answer:
        assert "content-length" not in answer.headers
        sizes = [len(chunk) async for chunk in answer.aiter_raw()]
    assert len(sizes) > 2
    assert max(sizes) < sum(sizes) / 2
