"""A whole user out, in and gone over HTTP."""

from __future__ import annotations

import uuid

import httpx
import pytest

from graphmem.service.keys import digest

MEMORIES = "/v1/users/mara/memories"
JSON = {"content-type": "application/json"}
YAML = {"content-type": "application/yaml"}


@pytest.mark.req("QUINN-15")
@pytest.mark.parametrize("form", ["json", "yaml"])
async def test_an_export_is_read_back_as_it_was_sent(agent: httpx.AsyncClient, form: str) -> None:
    saved = (await agent.post(MEMORIES, json={"memories": [{"content": "Mara lives in Lisbon"}]})).json()["results"][0]
    exported = await agent.get(f"/v1/users/mara/export?format={form}")
    assert exported.headers["content-type"] == f"application/{form}"
    headers = {"content-type": exported.headers["content-type"]}
    answer = await agent.post("/v1/users/omar/import", content=exported.content, headers=headers)
    assert answer.status_code == 200, answer.text
    items = (await agent.get("/v1/users/omar/memories")).json()["items"]
    assert [item["content"] for item in items] == [saved["memory"]["content"]]


BOMB = b"a: &a [x,x,x,x,x,x,x,x]\n" + b"".join(
    f"{chr(98 + n)}: &{chr(98 + n)} [{','.join(['*' + chr(97 + n)] * 8)}]\n".encode() for n in range(8)
)


@pytest.mark.parametrize(
    ("body", "headers"),
    [
        (b"", JSON),
        (b"{}", JSON),
        (b"\xff", JSON),
        (b'{"format":' * 10_000, JSON),
        (b"null", YAML),
        (b"\xff", YAML),
        (b"[" * 50_000, YAML),
        (b"- " * 50_000, YAML),
        (BOMB, YAML),
        (b"!!python/object/apply:os.getcwd []", YAML),
    ],
)
async def test_what_is_no_export_is_422(agent: httpx.AsyncClient, body: bytes, headers: dict[str, str]) -> None:
    answer = await agent.post("/v1/users/mara/import", content=body, headers=headers)
    assert answer.status_code == 422
    assert (await agent.get("/healthz")).status_code == 200


@pytest.mark.req("QUINN-41")
@pytest.mark.parametrize("place", ["entities", "records"])
async def test_an_import_cannot_make_a_key(
    agent: httpx.AsyncClient, anonymous: httpx.AsyncClient, tenant: str, place: str
) -> None:
    secret = uuid.uuid4().hex
    await agent.post(MEMORIES, json={"memories": [{"content": "Mara lives in Lisbon"}]})
    export = (await agent.get("/v1/users/mara/export")).json()
    forged = {"hash": digest(secret), "id": secret, "name": "forged", "role": "admin", "tenant": tenant}
    for labels in (["ApiKey"], ["ApiKey", "Entity"]):
        node = {**export["entities"][0], "key": "forged", "labels": labels}
        node["properties"] = {**node["properties"], **forged}
        document = {**export, place: [*export[place], node]}
        assert (await agent.post("/v1/users/omar/import", json=document)).status_code == 422
    headers = {"Authorization": f"Bearer {secret}"}
    assert (await anonymous.get("/v1/admin/keys", headers=headers)).status_code == 401


@pytest.mark.req("QUINN-25", "GO-02")
async def test_forgetting_leaves_nothing_and_is_answered_again(
    agent: httpx.AsyncClient, admin: httpx.AsyncClient
) -> None:
    key = {"Idempotency-Key": uuid.uuid4().hex}
    await agent.post(MEMORIES, json={"memories": [{"content": "Mara lives in Lisbon"}]}, headers=key)
    first = await admin.delete("/v1/users/mara", headers=key)
    assert first.status_code == 200
    assert first.json()["residue"] == 0
    again = await admin.delete("/v1/users/mara", headers=key)
    assert again.content == first.content
    assert again.headers["idempotent-replay"] == "true"
    assert (await agent.get(MEMORIES)).json()["items"] == []
