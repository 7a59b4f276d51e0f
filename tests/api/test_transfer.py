"""Export, import and erasure of a user over HTTP."""

from __future__ import annotations

import json
import uuid

import httpx
import jsonschema
import pytest
import yaml

from graphmem.service.keys import hash_key

MEMORIES = "/v1/users/mara/memories"
JSON = {"content-type": "application/json"}
YAML = {"content-type": "application/yaml"}


@pytest.mark.req("QUINN-15")
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


MEM0 = {"results": [{"id": "m1", "memory": "Mara lives in Lisbon", "created_at": "2025-01-01T00:00:00Z"}]}
GRAPHITI = {
    "nodes": [{"uuid": "n1", "name": "Mara", "labels": ["Entity"]}, {"uuid": "n2", "name": "Lisbon"}],
    "edges": [
        {
            "uuid": "e1",
            "fact": "Mara lives in Lisbon",
            "name": "LIVES_IN",
            "source_node_uuid": "n1",
            "target_node_uuid": "n2",
            "created_at": "2025-01-01T00:00:00Z",
        }
    ],
}


@pytest.mark.parametrize(("form", "document"), [("mem0", MEM0), ("graphiti", GRAPHITI)])
@pytest.mark.parametrize("is_format_given", [True, False])
async def test_foreign_export_is_imported_with_its_times(
    agent: httpx.AsyncClient, form: str, document: dict[str, object], is_format_given: bool
) -> None:
    query = {"format": form} if is_format_given else {}
    answer = await agent.post("/v1/users/mara/import", json=document, params=query)
    assert answer.status_code == 200, answer.text
    done = answer.json()
    assert (done["format"], done["imported"], done["refused"]) == (form, {"memories": 1}, [])
    [memory] = (await agent.get(MEMORIES)).json()["items"]
    assert memory["id"] in done["ids"].values()
    assert (memory["content"], memory["created_at"]) == ("Mara lives in Lisbon", "2025-01-01T00:00:00Z")
    assert memory["source"]["kind"] == form


LOG = [{"role": "user", "content": "I live in Lisbon."}, {"role": "assistant", "content": "Noted."}]
LINES = "\n".join(json.dumps(turn) for turn in LOG)


@pytest.mark.parametrize(
    ("body", "media_type"),
    [
        (json.dumps(LOG), "application/json"),
        (json.dumps({"messages": LOG}), "application/json"),
        (LINES, "application/jsonl"),
        (LINES, "application/json"),
        (LINES, "text/plain"),
    ],
)
async def test_chat_log_import_is_idempotent(agent: httpx.AsyncClient, body: str, media_type: str) -> None:
    headers = {"content-type": media_type}
    done = (await agent.post("/v1/users/mara/import", content=body, headers=headers)).json()
    assert (done["format"], done["imported"], len(done["jobs"])) == ("openai", {"messages": 2}, 1)
    assert (await agent.get(f"/v1/jobs/{done['jobs'][0]}")).status_code == 200
    [session] = (await agent.get("/v1/users/mara/sessions")).json()["items"]
    turns = (await agent.get(f"/v1/users/mara/sessions/{session['session_id']}/messages")).json()["items"]
    assert [(turn["role"], turn["content"]) for turn in turns] == [tuple(turn.values()) for turn in LOG]
    again = (await agent.post("/v1/users/mara/import", content=body, headers=headers)).json()
    assert (again["imported"], again["unchanged"]) == ({"messages": 0}, {"messages": 2})


MALFORMED_DOCUMENTS = [
    ("mem0", {"results": [{"id": "m1"}]}, ["results", 0, "memory"]),
    ("graphiti", {**GRAPHITI, "edges": [{"uuid": "e1"}]}, ["edges", 0, "fact"]),
    ("openai", [{"role": "user", "content": "Hi"}, {"role": "judge", "content": "Guilty."}], [1, "role"]),
    ("graphmem", MEM0, ["user_id"]),
]


@pytest.mark.parametrize(("form", "document", "place"), MALFORMED_DOCUMENTS)
async def test_malformed_import_is_422_and_stores_nothing(
    agent: httpx.AsyncClient, form: str, document: object, place: list[object]
) -> None:
    answer = await agent.post("/v1/users/mara/import", json=document, params={"format": form})
    assert answer.status_code == 422
    assert place in [error["loc"] for error in answer.json()["errors"]]
    assert (await agent.get("/v1/users/mara/export")).json()["entities"] == []
    assert (await agent.post("/v1/users/mara/import", json=document, params={"format": "zep"})).status_code == 422


@pytest.mark.req("QUINN-12", "QUINN-15", "QUINN-16")
async def test_export_matches_the_published_schema(agent: httpx.AsyncClient) -> None:
    schema = (await agent.get("/v1/schema/export")).json()
    jsonschema.Draft202012Validator.check_schema(schema)
    valid = jsonschema.Draft202012Validator(schema)
    statement = {
        "content": "Mara lives in Lisbon",
        "valid_at": "2025-01-01T00:00:00Z",
        "tags": ["home"],
        "domain": "home",
    }
    [saved] = (await agent.post(MEMORIES, json={"memories": [statement]})).json()["results"]
    await agent.patch(f"{MEMORIES}/{saved['memory']['id']}", json={"content": "Mara lives in Porto"})
    await agent.post("/v1/users/mara/messages", json={"messages": LOG, "extract": False})
    export = (await agent.get("/v1/users/mara/export")).json()
    assert len(export["memories"]) == 2
    assert [error.json_path for error in valid.iter_errors(export)] == []
    as_yaml = yaml.safe_load((await agent.get("/v1/users/mara/export?format=yaml")).text)
    assert as_yaml == export

    version = export["memories"][0]["properties"]
    for broken in ({"type": "rumour"}, {"confidence": 2}, {"created_at": "2025-01-01"}, {"colour": "red"}):
        export["memories"][0]["properties"] = version | broken
        assert not valid.is_valid(export), broken
    export["memories"][0]["properties"] = {name: version[name] for name in version if name != "memory_id"}
    assert not valid.is_valid(export)


async def test_export_is_streamed(agent: httpx.AsyncClient) -> None:
    saves = [{"content": f"Mara keeps the key number {number} in a box"} for number in range(60)]
    await agent.post(MEMORIES, json={"memories": saves})
    async with agent.stream("GET", "/v1/users/mara/export") as answer:
        assert "content-length" not in answer.headers
        sizes = [len(chunk) async for chunk in answer.aiter_raw()]
    assert len(sizes) > 2
    assert max(sizes) < sum(sizes) / 2


YAML_BOMB = b"a: &a [x,x,x,x,x,x,x,x]\n" + b"".join(
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
        (YAML_BOMB, YAML),
        (b"!!python/object/apply:os.getcwd []", YAML),
    ],
)
async def test_invalid_export_document_is_422(agent: httpx.AsyncClient, body: bytes, headers: dict[str, str]) -> None:
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
    forged = {"hash": hash_key(secret), "id": secret, "name": "forged", "role": "admin", "tenant": tenant}
    for labels in (["ApiKey"], ["ApiKey", "Entity"]):
        node = {**export["entities"][0], "key": "forged", "labels": labels}
        node["properties"] = {**node["properties"], **forged}
        document = {**export, place: [*export[place], node]}
        assert (await agent.post("/v1/users/omar/import", json=document)).status_code == 422
    headers = {"Authorization": f"Bearer {secret}"}
    assert (await anonymous.get("/v1/admin/keys", headers=headers)).status_code == 401


@pytest.mark.req("QUINN-25", "GO-02")
async def test_forget_leaves_no_residue_and_is_replayed(agent: httpx.AsyncClient, admin: httpx.AsyncClient) -> None:
    key = {"Idempotency-Key": uuid.uuid4().hex}
    await agent.post(MEMORIES, json={"memories": [{"content": "Mara lives in Lisbon"}]}, headers=key)
    first = await admin.delete("/v1/users/mara", headers=key)
    assert first.status_code == 200
    assert first.json()["residue"] == 0
    again = await admin.delete("/v1/users/mara", headers=key)
    assert again.content == first.content
    assert again.headers["idempotent-replay"] == "true"
    assert (await agent.get(MEMORIES)).json()["items"] == []
