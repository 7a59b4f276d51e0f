"""Records: the example records of the specification as they are written there, and exports that people edit."""

from __future__ import annotations

import copy
import json
from typing import Any

import httpx
import jsonschema
import pytest
import yaml

MEMORIES = "/v1/users/user-123/memories"
IMPORT, EXPORT = "/v1/users/user-123/import", "/v1/users/user-123/export"

WRITTEN_YAML = """\
id: "mem-001234"
user_id: "user-123"
domain: "coding"
type: "preference"
content: "Preferred OS: Linux"
tags: ["preference", "OS", "coding"]
metadata:
  source: "conversation_2025-07-14"
  importance_score: 0.8
created_at: "2025-07-14T12:45:00Z"
updated_at: "2025-07-14T12:45:00Z"
version: 1
"""
WRITTEN_JSON = """\
{
  "id": "mem-001235",
  "user_id": "user-123",
  "domain": "global",
  "type": "preference",
  "content": {"tone": "formal", "language": "Spanish"},
  "tags": ["profile", "tone", "language"],
  "metadata": {
    "source": "user_profile_update",
    "notes": "Set via onboarding survey"
  },
  "created_at": "2025-07-01T09:00:00Z",
  "updated_at": "2025-07-01T09:00:00Z",
  "version": 1
}
"""


async def load(client: httpx.AsyncClient, document: Any, path: str = IMPORT, **query: str) -> dict[str, Any]:
    text = document if isinstance(document, str) else json.dumps(document)
    is_json = text.lstrip().startswith(("{", "["))
    headers = {"content-type": f"application/{'json' if is_json else 'yaml'}"}
    answer = await client.post(path, content=text, headers=headers, params=query)
    assert answer.status_code == 200, answer.text
    return dict(answer.json())


async def export_records(client: httpx.AsyncClient, form: str = "json", path: str = EXPORT) -> Any:
    answer = await client.get(path, params={"view": "records", "format": form})
    assert answer.status_code == 200, answer.text
    return json.loads(answer.text) if form == "json" else yaml.safe_load(answer.text)


@pytest.mark.req("QUINN-12", "QUINN-14", "QUINN-15")
async def test_the_written_records_are_imported_and_come_back_as_they_were_written(agent: httpx.AsyncClient) -> None:
    for text in (WRITTEN_YAML, WRITTEN_JSON):
        done = await load(agent, text)
        assert (done["format"], done["imported"]["memories"], done["refused"]) == ("records", 1, [])
    linux = (await agent.get(f"{MEMORIES}/mem-001234")).json()
    assert (linux["content"], linux["domain"], linux["importance"]) == ("Preferred OS: Linux", "coding", 0.8)
    assert (linux["created_at"], linux["metadata"]) == ("2025-07-14T12:45:00Z", {"source": "conversation_2025-07-14"})
    tone = (await agent.get(f"{MEMORIES}/mem-001235")).json()
    assert tone["content_data"] == {"tone": "formal", "language": "Spanish"}
    assert (tone["scope"], tone["type"], tone["subtype"]) == ("profile", "preference", "preference")

    written = [json.loads(WRITTEN_JSON), yaml.safe_load(WRITTEN_YAML)]
    for record in written:
        record["tags"] = [tag.lower() for tag in record["tags"]]
    exported = await export_records(agent)
    assert exported == await export_records(agent, "yaml")
    assert exported["user_id"] == "user-123"
    assert [{**record, "user_id": "user-123"} for record in exported["records"]] == written
    again = await load(agent, WRITTEN_YAML)
    assert (again["imported"], again["unchanged"]) == ({"memories": 0, "versions": 0}, {"memories": 1})


@pytest.mark.req("QUINN-15")
async def test_the_published_schema_accepts_the_written_records_and_every_export(agent: httpx.AsyncClient) -> None:
    schema = (await agent.get("/v1/schema/records")).json()
    jsonschema.Draft202012Validator.check_schema(schema)
    validator = jsonschema.Draft202012Validator(schema)
    written = {"records": [yaml.safe_load(WRITTEN_YAML), json.loads(WRITTEN_JSON)]}
    assert [error.json_path for error in validator.iter_errors(written)] == []
    await load(agent, written)
    exported = await export_records(agent)
    assert [error.json_path for error in validator.iter_errors(exported)] == []
    exported["records"][0]["colour"] = "red"
    assert not validator.is_valid(exported)


@pytest.mark.req("QUINN-12", "QUINN-15")
async def test_the_schema_accepts_a_bare_record_and_a_list_as_an_import_does(agent: httpx.AsyncClient) -> None:
    validator = jsonschema.Draft202012Validator((await agent.get("/v1/schema/records")).json())
    bare = {"content": "Mara plays chess"}
    flat = {
        "content": "Mara rows",
        "valid_from": "2025-07-01",
        "source": "a talk",
        "notes": None,
        "superseded_by": None,
    }
    for document in (bare, [bare, flat], {"records": [bare]}, flat, json.loads(WRITTEN_JSON)):
        assert [error.message for error in validator.iter_errors(document)] == []
        assert (await load(agent, document))["refused"] == []
    for wrong in (
        {},
        {"text": "Mara plays chess"},
        {**bare, "colour": "red"},
        [{"type": "fact"}],
        {**bare, "version": 0},
    ):
        assert not validator.is_valid(wrong)
        assert (await agent.post(IMPORT, json=wrong)).status_code == 422


@pytest.mark.req("QUINN-12", "QUINN-23")
@pytest.mark.parametrize(
    "edit",
    [{}, pytest.param({"version": 4}, marks=pytest.mark.long), {"version": 4, "updated_at": "2025-08-01T00:00:00Z"}],
)
@pytest.mark.parametrize(
    "times",
    [
        pytest.param({}, marks=pytest.mark.long),
        {"created_at": "2025-07-01T00:00:00Z", "updated_at": "2025-07-02T00:00:00Z"},
    ],
)
async def test_a_record_of_a_later_version_is_edited_by_hand(
    agent: httpx.AsyncClient, edit: dict[str, Any], times: dict[str, str]
) -> None:
    record = {"id": "mem-3", "content": "Mara likes tea", "version": 3, **times}
    assert (await load(agent, record))["imported"]["memories"] == 1
    done = await load(agent, {**record, "content": "Mara loves tea", **edit})
    assert (done["imported"]["versions"], done["refused"]) == (1, [])
    (exported,) = (await export_records(agent))["records"]
    assert (exported["content"], exported["version"]) == ("Mara loves tea", 2)
    numbered = await load(agent, {**exported, "content": "Mara adores tea", "version": 3})
    assert (numbered["imported"]["versions"], numbered["refused"]) == (1, [])
    late = await load(agent, {**exported, "content": "Mara hates tea"})
    assert ["export it again" in entry["reason"] for entry in late["refused"]] == [True]


@pytest.mark.req("QUINN-14", "QUINN-21")
async def test_the_relations_of_an_immutable_record_are_kept_and_then_fixed(agent: httpx.AsyncClient) -> None:
    tea, chess = {"id": "tea", "content": "Mara likes tea"}, {"id": "chess", "content": "Mara plays chess"}
    nuts = {"id": "nuts", "content": "Mara is allergic to nuts", "immutable": True, "metadata": {"relations": ["tea"]}}
    assert (await load(agent, [nuts, tea, chess]))["refused"] == []
    assert (await agent.get(f"{MEMORIES}/nuts")).json()["associations"] == ["tea"]
    exported = await export_records(agent)
    copied = await load(agent, exported, "/v1/users/omar/import")
    other = await export_records(agent, path="/v1/users/omar/export")
    assert (copied["refused"], other["records"]) == ([], exported["records"])

    assert (await load(agent, exported))["refused"] == []
    changed = await load(agent, [{**nuts, "metadata": {"relations": ["tea", "chess"]}}])
    assert [(entry["loc"], "immutable" in entry["reason"]) for entry in changed["refused"]] == [
        ([0, "metadata", "relations"], True)
    ]
    saved = {"content": "Mara was born in Lund", "immutable": True, "associations": ["tea"]}
    answer = await agent.post(MEMORIES, json={"memories": [saved]})
    assert answer.json()["results"][0]["memory"]["associations"] == ["tea"]
    again = await agent.post(MEMORIES, json={"memories": [{**saved, "associations": ["chess"]}]})
    assert "it is immutable" in again.json()["results"][0]["reason"]


FULL: dict[str, Any] = {
    "id": "mem-9",
    "user_id": "user-123",
    "type": "personal_info",
    "content": "Mara works at Nordlicht",
    "tags": ["#personal", "#projectX"],
    "subject": {"name": "Mara", "type": "Person"},
    "predicate": "WORKS_AT",
    "object": {"name": "Nordlicht", "type": "Organization"},
    "expiration_date": "2099-06-30",
    "immutable": False,
    "metadata": {
        "ingested_from": "ProjectBrief.docx",
        "importance_score": 0.7,
        "confidence": 0.8,
        "context": "session-4",
        "relations": ["mem-001234"],
        "valid_from": "2025-07-01",
        "valid_until": "2098-07-31",
        "review": {"by": "Ida", "rounds": [1, 2]},
    },
    "created_at": "2025-07-14T12:45:00Z",
}


@pytest.mark.req("QUINN-14")
async def test_every_key_of_the_metadata_is_read_and_returned(agent: httpx.AsyncClient) -> None:
    flat = {**copy.deepcopy(FULL), "relations": FULL["metadata"]["relations"]}
    del flat["metadata"]["relations"]
    done = await load(agent, {"records": [yaml.safe_load(WRITTEN_YAML), flat]})
    assert done["refused"] == []
    memory = (await agent.get(f"{MEMORIES}/mem-9")).json()
    assert (memory["type"], memory["subtype"], memory["tags"]) == ("fact", "personal_info", ["personal", "projectx"])
    assert (memory["valid_at"], memory["invalid_at"]) == ("2025-07-01T00:00:00Z", "2098-08-01T00:00:00Z")
    assert (memory["expires_at"], memory["confidence"]) == ("2099-07-01T00:00:00Z", 0.8)
    assert (memory["source"]["session_id"], memory["associations"]) == ("session-4", ["mem-001234"])
    assert memory["metadata"] == {"ingested_from": "ProjectBrief.docx", "review": {"by": "Ida", "rounds": [1, 2]}}

    exported = await export_records(agent)
    copied = await load(agent, exported, "/v1/users/omar/import")
    assert copied["imported"]["memories"] == 2
    other = await export_records(agent, path="/v1/users/omar/export")
    assert other["records"] == exported["records"]


@pytest.mark.req("QUINN-12")
async def test_an_edited_export_becomes_new_versions(agent: httpx.AsyncClient) -> None:
    await load(agent, {"records": [yaml.safe_load(WRITTEN_YAML), json.loads(WRITTEN_JSON), FULL]})
    document = await export_records(agent, "yaml")
    records = {record["id"]: record for record in document["records"]}
    records["mem-001234"]["content"] = "Preferred OS: BSD"
    records["mem-001234"]["domain"] = "global"
    records["mem-001235"]["content"]["tone"] = "casual"
    records["mem-9"]["expiration_date"] = None
    document["records"].append({"content": "Mara plays chess", "type": "persona", "tags": ["#hobby"]})
    edited = yaml.safe_dump(document)
    done = await load(agent, edited)
    assert (done["imported"], done["refused"]) == ({"memories": 1, "versions": 3}, [])
    linux = (await agent.get(f"{MEMORIES}/mem-001234")).json()
    assert (linux["content"], linux["version"], linux["scope"]) == ("Preferred OS: BSD", 2, "profile")
    history = (await agent.get(f"{MEMORIES}/mem-001234/history")).json()["items"]
    assert [version["content"] for version in history] == ["Preferred OS: Linux", "Preferred OS: BSD"]
    tone = (await agent.get(f"{MEMORIES}/mem-001235")).json()
    assert tone["content_data"] == {"tone": "casual", "language": "Spanish"}
    assert (await agent.get(f"{MEMORIES}/mem-9")).json()["expires_at"] is None
    again = await load(agent, edited)
    assert (again["imported"], again["unchanged"]) == ({"memories": 0, "versions": 0}, {"memories": 4})

    await agent.patch(f"{MEMORIES}/mem-001234", json={"content": "Preferred OS: Plan 9"})
    stale = await load(agent, edited)
    assert [(entry["id"], "export it again" in entry["reason"]) for entry in stale["refused"]] == [("mem-001234", True)]


@pytest.mark.req("QUINN-12")
async def test_a_record_that_is_no_longer_active_deletes_its_memory(agent: httpx.AsyncClient) -> None:
    fixed = {"id": "mem-8", "content": "Mara is allergic to nuts", "immutable": True}
    await load(agent, {"records": [yaml.safe_load(WRITTEN_YAML), json.loads(WRITTEN_JSON), FULL, fixed]})
    document = await export_records(agent)
    records = {record["id"]: record for record in document["records"]}
    records["mem-001234"]["active"] = False
    records["mem-001235"] |= {"active": False, "content": "Mara is terse"}
    records["mem-8"]["active"] = False
    records["mem-9"]["metadata"]["superseded_by"] = "mem-001234"
    done = await load(agent, document)
    assert done["imported"] == {"memories": 0, "versions": 0, "deletions": 2}
    assert {entry["id"]: entry["reason"].split(":")[0] for entry in done["refused"]} == {
        "mem-8": "mem-8 is immutable",
        "mem-9": "An import cannot replace a memory",
    }
    assert {memory["id"] for memory in (await agent.get(MEMORIES)).json()["items"]} == {"mem-8", "mem-9"}
    for memory_id in ("mem-001234", "mem-001235"):
        assert (await agent.get(f"{MEMORIES}/{memory_id}")).json()["status"] == "deleted"
    again = await load(agent, document)
    assert (again["imported"], again["unchanged"]) == ({"memories": 0, "versions": 0}, {"memories": 2})


async def test_a_deletion_of_a_memory_that_has_changed_since_the_export_is_refused(agent: httpx.AsyncClient) -> None:
    await load(agent, WRITTEN_YAML)
    document = await export_records(agent)
    document["records"][0]["active"] = False
    await agent.patch(f"{MEMORIES}/mem-001234", json={"content": "Preferred OS: Plan 9"})
    done = await load(agent, document)
    assert [(entry["id"], "export it again" in entry["reason"]) for entry in done["refused"]] == [("mem-001234", True)]
    assert (await agent.get(f"{MEMORIES}/mem-001234")).json()["status"] == "active"


@pytest.mark.parametrize("is_named", [False, True])
async def test_records_of_another_user_that_name_them_are_about_the_user_of_the_import(
    agent: httpx.AsyncClient, is_named: bool
) -> None:
    bob = {"content": "Bob knows Mara", "subject": {"name": "Bob"}, "predicate": "KNOWS"}
    memories = [
        {**bob, "object": {"name": "USER-123"}},
        {"content": "Mara is kind", "subject": {"name": "user-123"}},
        {"content": "Bob met Ida and Mara", "subject": {"name": "Bob"}, "entities": [{"name": "Ida"}]},
    ]
    await agent.post(MEMORIES, json={"memories": memories})
    if is_named:
        export = (await agent.get("/v1/users/user-123/export")).json()
        own = next(node["properties"] for node in export["entities"] if node["properties"]["is_user"])
        own |= {"name": "Mara", "name_key": "mara"}
        own |= {"aliases": ["user-123"], "alias_keys": ["user-123"], "alias_text": "user-123"}
        await load(agent, export, "/v1/users/user-456/import")
    user = "user-456" if is_named else "user-123"
    document = await export_records(agent, path=f"/v1/users/{user}/export")
    document["records"][-1]["entities"].append({"name": user.upper()})
    for one_by_one in (False, True):
        path = f"/v1/users/omar-{one_by_one}".lower()
        records = [{**record, "user_id": user} for record in document["records"]]
        done = await load(agent, records if one_by_one else document, f"{path}/import")
        assert (done["imported"]["memories"], done["refused"]) == (3, [])
        entities = (await agent.get(f"{path}/entities")).json()["items"]
        assert {(entity["name"], entity["is_user"]) for entity in entities} == {
            (path.removeprefix("/v1/users/"), True), ("Bob", False), ("Ida", False),
        }  # fmt: skip


async def test_records_that_cannot_be_saved_are_refused_one_by_one(agent: httpx.AsyncClient) -> None:
    records: list[dict[str, Any]] = [
        {"id": "r1", "content": "Mara likes tea"},
        {"id": "r2", "content": "Mara's card is 4111 1111 1111 1111"},
        {"id": "r3", "content": "Mara cooks stew", "type": "recipe"},
        {"id": "r4", "content": "Mara rows", "relations": ["nothing"]},
        {"id": "r5", "content": "Otto rows", "user_id": "otto"},
        {"id": "r6", "content": "Mara smoked", "active": False, "created_at": "2020-01-01", "updated_at": "2021-01-01"},
        {
            "id": "r7",
            "content": "Mara used VSCode",
            "superseded_by": "r1",
            "created_at": "2020-01-01T00:00:00Z",
            "updated_at": "2025-09-01T00:00:00Z",
        },
    ]
    done = await load(agent, [{"user_id": "user-123", **record} for record in records])
    assert {entry["id"]: entry["loc"] for entry in done["refused"]} == {
        "r2": [1], "r3": [2], "r4": [3, "metadata", "relations"], "r5": [4],
    }  # fmt: skip
    assert "/v1/admin/types" in next(entry["reason"] for entry in done["refused"] if entry["id"] == "r3")
    current = (await agent.get(MEMORIES)).json()["items"]
    assert {memory["id"] for memory in current} == {"r1", "r4"}
    assert (await agent.get(f"{MEMORIES}/r6")).json()["status"] == "deleted"
    replaced = (await agent.get(f"{MEMORIES}/r7")).json()
    assert (replaced["status"], replaced["superseded_by"]) == ("superseded", "r1")
    assert replaced["invalid_at"] == "2025-09-01T00:00:00Z"


@pytest.mark.parametrize(
    ("broken", "place"),
    [
        ({"colour": "red"}, [0, "colour"]),
        ({"created_at": "soon"}, [0, "created_at"]),
        ({"metadata": {"importance_score": 3}}, [0, "metadata", "importance_score"]),
    ],
)
async def test_a_malformed_record_is_422(agent: httpx.AsyncClient, broken: dict[str, Any], place: list[Any]) -> None:
    answer = await agent.post(IMPORT, json=[{"content": "Mara likes tea", **broken}])
    assert answer.status_code == 422
    assert place in [error["loc"] for error in answer.json()["errors"]]


@pytest.mark.req("QUINN-16")
async def test_a_record_of_a_later_schema_version_is_422_that_says_what_to_do(agent: httpx.AsyncClient) -> None:
    record = {**yaml.safe_load(WRITTEN_YAML), "schema_version": "1.0"}
    assert (await load(agent, record))["imported"]["memories"] == 1
    answer = await agent.post(IMPORT, json={**record, "schema_version": "9.0"})
    assert answer.status_code == 422
    assert "upgrade graphmem" in answer.text


@pytest.mark.req("QUINN-45")
async def test_a_version_may_be_a_text(agent: httpx.AsyncClient) -> None:
    record = {"id": "mem-v", "type": "fact", "content": "Ada uses Linux", "version": "v2"}
    assert (await load(agent, {"records": [record]}))["refused"] == []
    (exported,) = (await export_records(agent))["records"]
    assert exported["version"] == "v2"
    assert (await load(agent, {"records": [exported | {"content": "Ada uses BSD"}]}))["imported"]["versions"] == 1
    noted = {"id": "mem-v", "type": "fact", "content": "Ada uses BSD", "metadata": {"seen": "desk"}}
    assert (await load(agent, {"records": [noted]}))["imported"]["versions"] == 1
    assert (await load(agent, {"records": [record | {"content": "Ada uses BSD", "version": "v3"}]}))["refused"] == []
    (renamed,) = (await export_records(agent))["records"]
    assert (renamed["version"], renamed["metadata"]["seen"]) == ("v3", "desk")
