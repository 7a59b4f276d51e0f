"""Importing documents over HTTP."""

from __future__ import annotations

import codecs
import json
import uuid
from typing import Any

import httpx
import pytest

from graphmem.tenants.keys import hash_key
from tests.api.conftest import BODY_LIMIT

MEMORIES = "/v1/users/mara/memories"
JSON = {"content-type": "application/json"}
YAML = {"content-type": "application/yaml"}
TEXT = {"content-type": "text/plain"}


MEM0: dict[str, Any] = {
    "results": [{"id": "m1", "memory": "Mara lives in Lisbon", "created_at": "2025-01-01T00:00:00Z"}]
}
GRAPHITI: dict[str, Any] = {
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
@pytest.mark.parametrize("is_format_given", [pytest.param(True, marks=pytest.mark.long), False])
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
    assert memory["source"]["kind"] == "import"


LOG = [{"role": "user", "content": "I live in Lisbon."}, {"role": "assistant", "content": "Noted."}]
LINES = "\n".join(json.dumps(turn) for turn in LOG)


@pytest.mark.parametrize(
    ("body", "media_type"),
    [
        (json.dumps(LOG), "application/json"),
        pytest.param(json.dumps({"messages": LOG}), "application/json", marks=pytest.mark.long),
        (LINES, "application/jsonl"),
        pytest.param(LINES, "application/json", marks=pytest.mark.long),
        pytest.param(LINES, "text/plain", marks=pytest.mark.long),
    ],
)
async def test_chat_log_import_is_idempotent(agent: httpx.AsyncClient, body: str, media_type: str) -> None:
    headers = {"content-type": media_type}
    done = (await agent.post("/v1/users/mara/import", content=body, headers=headers)).json()
    assert (done["format"], done["imported"], len(done["jobs"])) == ("chat", {"messages": 2}, 1)
    assert (await agent.get(f"/v1/jobs/{done['jobs'][0]}")).status_code == 200
    [session] = (await agent.get("/v1/users/mara/sessions")).json()["items"]
    turns = (await agent.get(f"/v1/users/mara/sessions/{session['session_id']}/messages")).json()["items"]
    assert [(turn["role"], turn["content"]) for turn in turns] == [tuple(turn.values()) for turn in LOG]
    again = (await agent.post("/v1/users/mara/import", content=body, headers=headers)).json()
    assert (again["imported"], again["unchanged"]) == ({"messages": 0}, {"messages": 2})


MALFORMED_DOCUMENTS = [
    ("mem0", {"results": [{"id": "m1"}]}, ["results", 0, "memory"]),
    ("graphiti", {**GRAPHITI, "edges": [{"uuid": "e1"}]}, ["edges", 0, "fact"]),
    ("chat", [{"role": "judge", "content": "Guilty."}], [0, "role"]),
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


async def test_a_line_that_is_cut_off_costs_no_other(agent: httpx.AsyncClient) -> None:
    lines = [json.dumps({**LOG[0], "id": f"m{number}"}) for number in range(40)]
    body = codecs.BOM_UTF8 + "\n".join([*lines, lines[0][:17]]).encode()
    answer = await agent.post("/v1/users/mara/import", content=body, headers=JSON)
    assert answer.status_code == 200, answer.text
    assert answer.json()["imported"] == {"messages": 40}
    assert answer.json()["refused"] == [{"loc": [40], "id": None, "reason": "line 41 is not JSON"}]
    broken = await agent.post("/v1/users/mara/import", content=b'{"messages": [\n{]}', headers=JSON)
    assert "line 2" in broken.json()["detail"]


async def test_what_other_systems_know_is_kept_or_listed(agent: httpx.AsyncClient) -> None:
    whose = {"agent_id": "coach", "app_id": "web", "actor_id": "kim", "run_id": "r1"}
    page = {"results": [{**MEM0["results"][0], **whose}], "next": "https://example.com/?page=2"}
    done = (await agent.post("/v1/users/mara/import", json=page)).json()
    assert [entry["loc"] for entry in done["refused"]] == [["next"]]
    [memory] = (await agent.get(MEMORIES)).json()["items"]
    assert memory["metadata"] == whose
    rex = {"uuid": "n3", "name": "Rex", "summary": "Rex is Mara's dog.", "attributes": {"age": 14}}
    graph = {**GRAPHITI, "nodes": [*GRAPHITI["nodes"], rex]}
    done = (await agent.post("/v1/users/mara/import", json=graph)).json()
    assert done["refused"] == []
    entities = {item["name"]: item for item in (await agent.get("/v1/users/mara/entities")).json()["items"]}
    assert (entities["Rex"]["summary"], entities["Rex"]["attributes"]) == ("Rex is Mara's dog.", {"age": 14})
    other = {**graph, "nodes": [*GRAPHITI["nodes"], {**rex, "summary": "Rex is a cat."}]}
    refused = (await agent.post("/v1/users/mara/import", json=other)).json()["refused"]
    assert {(*entry["loc"], entry["id"]) for entry in refused} == {("nodes", 2, "n3")}


YAML_BOMB = b"a: &a [x,x,x,x,x,x,x,x]\n" + b"".join(
    f"{chr(98 + n)}: &{chr(98 + n)} [{','.join(['*' + chr(97 + n)] * 8)}]\n".encode() for n in range(8)
)


UNREADABLE = [
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
    (b"role: user", JSON),
    (b'{"role": "user", "content": 1e999}', JSON),
    (b'{"role": "user", "content": "Hi", "created_at": 1' + b"0" * 400 + b"}", TEXT),
    (b'{"role": "user", "content": "\\ud800"}', TEXT),
    (b"- role: user\n  content: !!binary aGk=\n", YAML),
    (b"- role: user\n  content: Hi\n  note: !!set {a, b}\n", YAML),
    (b"results:\n- {id: m1, memory: Tea, expiration_date: 9999-12-31}\n", YAML),
    (b"results:\n- {id: m1, memory: Tea, created_at: 0001-01-01T00:00:00+14:00}\n", YAML),
    (b"results:\n- {id: m1, memory: Tea, metadata: {1: a}}\n", YAML),
]


async def test_documents_that_cannot_be_read_are_422(agent: httpx.AsyncClient) -> None:
    for body, headers in UNREADABLE:
        answer = await agent.post("/v1/users/mara/import", content=body, headers=headers)
        assert answer.status_code == 422, body[:80]
    assert (await agent.get("/healthz")).status_code == 200


@pytest.mark.parametrize("place", ["entities", pytest.param("records", marks=pytest.mark.long)])
async def test_an_import_cannot_make_a_key(
    agent: httpx.AsyncClient, anonymous: httpx.AsyncClient, tenant: str, place: str
) -> None:
    secret = uuid.uuid4().hex
    await agent.post(MEMORIES, json={"memories": [{"content": "Mara lives in Lisbon"}]})
    export = (await agent.get("/v1/users/mara/export")).json()
    forged = {"hash": hash_key(secret), "id": secret, "name": "forged", "role": "admin", "tenant": tenant}
    for labels in (["ApiKey"], ["ApiKey", "Entity"]):
        node: dict[str, Any] = {**export["entities"][0], "key": "forged", "labels": labels}
        node["properties"] = {**node["properties"], **forged}
        document = {**export, place: [*export[place], node]}
        assert (await agent.post("/v1/users/omar/import", json=document)).status_code == 422
    headers = {"Authorization": f"Bearer {secret}"}
    assert (await anonymous.get("/v1/admin/keys", headers=headers)).status_code == 401


async def test_imports_may_be_larger_than_other_bodies(agent: httpx.AsyncClient) -> None:
    turns = [{"role": "user", "content": f"{number}: " + "x" * 50_000} for number in range(5)]
    imported = await agent.post("/v1/users/mara/import", json=turns)
    assert len(imported.request.content) > BODY_LIMIT
    assert imported.json()["imported"] == {"messages": 5}
    assert (await agent.post("/v1/users/mara/messages", json={"messages": turns})).status_code == 413
