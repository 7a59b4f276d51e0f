"""Consolidation, rollback and maintenance over HTTP."""

from __future__ import annotations

import uuid
from datetime import timedelta
from typing import Any

import httpx
import pytest

from graphmem.app.bootstrap import Services
from graphmem.consolidation.models import ReportedContradiction, RunTrigger
from graphmem.consolidation.run_store import RunStore, RunUpdate
from graphmem.runtime.times import utc_now
from graphmem.tenants.owners import Owner
from tests.api.conftest import Caller

RUNS = "/v1/admin/consolidations"
SOURCE_STATEMENTS = ("Mara is vegetarian", "Mara eats no dairy")
MERGED_STATEMENT = "Mara is vegetarian and eats no dairy"


async def save_memories(client: httpx.AsyncClient, *contents: str) -> list[str]:
    body = {"memories": [{"content": content} for content in contents]}
    results = (await client.post("/v1/users/mara/memories", json=body)).json()["results"]
    return [result["memory"]["id"] for result in results]


async def current_contents(client: httpx.AsyncClient) -> set[str]:
    return {memory["content"] for memory in (await client.get("/v1/users/mara/memories")).json()["items"]}


async def run_merge(client: httpx.AsyncClient, ids: list[str] | None = None, **options: Any) -> dict[str, Any]:
    merge = {
        "action": "MERGE",
        "memory_ids": ids or await save_memories(client, *SOURCE_STATEMENTS),
        "content": MERGED_STATEMENT,
        "verified": True,
    }
    body = {"user_id": "mara", "proposals": [merge], "wait": True, **options}
    answer = await client.post(RUNS, json=body)
    assert answer.status_code == 200, answer.text
    run: dict[str, Any] = answer.json()
    return run


@pytest.mark.req("UMB-13", "UMB-14")
async def test_rollback_restores_the_export_from_before_the_run(admin: httpx.AsyncClient) -> None:
    async def exported() -> dict[str, Any]:
        found: dict[str, Any] = (await admin.get("/v1/users/mara/export")).json()
        return {name: value for name, value in found.items() if name != "exported_at"}

    ids = await save_memories(admin, *SOURCE_STATEMENTS)
    before = await exported()
    run = await run_merge(admin, ids)
    assert (run["status"], run["user_id"], [proposal["verdict"] for proposal in run["proposals"]]) == (
        "succeeded", "mara", ["executed"],
    )  # fmt: skip
    assert {"kind", "id", "before", "after"} <= run["changes"][0].keys()
    assert await current_contents(admin) == {MERGED_STATEMENT}
    assert await exported() != before
    undone = await admin.post(f"{RUNS}/{run['id']}/rollback")
    assert (undone.status_code, undone.json()["restored"], undone.json()["conflicts"]) == (200, run["change_count"], [])
    assert await exported() == before
    assert (await admin.get(f"{RUNS}/{run['id']}")).json()["status"] == "rolled_back"
    record = await admin.get(f"{RUNS}/{undone.json()['rollback_id']}")
    assert (record.json()["trigger"], record.json()["undoes"]) == ("rollback", run["id"])
    redone = await admin.post(f"{RUNS}/{undone.json()['rollback_id']}/rollback")
    assert redone.status_code == 200
    assert await current_contents(admin) == {MERGED_STATEMENT}


@pytest.mark.req("UMB-13")
async def test_a_dry_run_of_a_rollback_says_what_would_happen_and_changes_nothing(admin: httpx.AsyncClient) -> None:
    ids = await save_memories(admin, *SOURCE_STATEMENTS)
    run = await run_merge(admin, ids)
    merged_id = run["proposals"][0]["result_id"]
    answer = await admin.post(f"{RUNS}/{run['id']}/rollback", json={"dry_run": True})
    preview = answer.json()
    assert (answer.status_code, preview["conflicts"]) == (200, [])
    assert {element["text"] for element in preview["goes_back"] if element["kind"] == "fact"} == {MERGED_STATEMENT}
    assert {element["memory_id"] for element in preview["comes_back"]} - {None} == set(ids)
    await admin.patch(f"/v1/users/mara/memories/{merged_id}", json={"importance": 0.9})
    later = (await admin.post(f"{RUNS}/{run['id']}/rollback", json={"dry_run": True})).json()
    assert {conflict["memory_id"] for conflict in later["conflicts"]} == {merged_id}
    assert await current_contents(admin) == {MERGED_STATEMENT}
    assert (await admin.get(f"{RUNS}/{run['id']}")).json()["status"] == "succeeded"


async def test_a_run_whose_proposals_are_all_refused_succeeds_and_says_why(admin: httpx.AsyncClient) -> None:
    ids = await save_memories(admin, "Bob likes coffee", "Alice likes tea")
    merge = {"action": "MERGE", "memory_ids": [ids[0], str(uuid.uuid4())], "content": "Bob and Alice like both"}
    body = {"user_id": "mara", "proposals": [merge], "wait": True}
    run = (await admin.post(RUNS, json=body)).json()
    assert (run["status"], run["executed"], run["refused"]) == ("succeeded", 0, 1)
    [proposal] = run["proposals"]
    assert proposal["verdict"] == "refused"
    assert proposal["reason"]


async def test_reported_contradictions_are_readable_with_a_key_of_the_user(
    admin: httpx.AsyncClient, agent: httpx.AsyncClient, services: Services
) -> None:
    ids = await save_memories(admin, *SOURCE_STATEMENTS)
    run = await run_merge(admin, ids)
    reported = ReportedContradiction(memory_ids=ids, reason="She cannot be both.")
    await RunStore(services.components.graph).update(run["id"], RunUpdate(contradictions=[reported]))
    [found] = (await agent.get("/v1/users/mara/contradictions")).json()["items"]
    assert (found["memory_ids"], found["reason"], found["run_id"]) == (ids, "She cannot be both.", run["id"])
    assert (await agent.get("/v1/users/jonas/contradictions")).json()["items"] == []


async def test_rollback_lists_conflicting_writes_with_409_unless_forced(admin: httpx.AsyncClient) -> None:
    run = await run_merge(admin)
    merged_id = run["proposals"][0]["result_id"]
    await admin.patch(f"/v1/users/mara/memories/{merged_id}", json={"importance": 0.9})
    refused = await admin.post(f"{RUNS}/{run['id']}/rollback", json={"force": False})
    assert refused.status_code == 409
    assert refused.headers["content-type"] == "application/problem+json"
    assert {error["memory_id"] for error in refused.json()["errors"]} == {merged_id}
    assert await current_contents(admin) == {MERGED_STATEMENT}
    forced = await admin.post(f"{RUNS}/{run['id']}/rollback", json={"force": True})
    assert (forced.status_code, {conflict["memory_id"] for conflict in forced.json()["conflicts"]}) == (
        200,
        {merged_id},
    )
    assert await current_contents(admin) == set(SOURCE_STATEMENTS)


@pytest.mark.req("UMB-13")
async def test_rollback_after_retention_is_410(admin: httpx.AsyncClient, services: Services, tenant: str) -> None:
    run = await run_merge(admin)
    for days, status in ((31, 410), (29, 200)):
        ended = utc_now() - timedelta(days=days)
        await services.components.graph.execute(
            "runs.update", run_id=run["id"], properties={"finished_at": ended, "created_at": ended}
        )
        assert (await admin.post(f"{RUNS}/{run['id']}/rollback")).status_code == status


@pytest.mark.req("UMB-14", "UMB-16")
async def test_manual_proposals_are_validated_and_guarded(admin: httpx.AsyncClient) -> None:
    ids = await save_memories(admin, "Bob prefers coffee", "Alice prefers tea")
    bad = {"action": "MERGE", "memory_ids": ids, "content": "Bob and Alice prefer coffee and tea"}
    run = await admin.post(RUNS, json={"user_id": "mara", "proposals": [bad], "wait": True})
    (reviewed,) = run.json()["proposals"]
    assert (reviewed["verdict"], "Alice" in reviewed["reason"]) == ("refused", True)
    assert await current_contents(admin) == {"Bob prefers coffee", "Alice prefers tea"}
    for wrong in (
        {"proposals": [{**bad, "action": "DELETE"}], "user_id": "mara"},
        {"proposals": [{**bad, "memory_ids": ids[:1]}], "user_id": "mara"},
        {"proposals": [], "user_id": "mara"},
        {"proposals": [bad]},
    ):
        refused = await admin.post(RUNS, json=wrong)
        assert refused.status_code == 422, wrong


async def execute_merge(client: httpx.AsyncClient, contents: list[str], merged: str, **fields: Any) -> dict[str, Any]:
    ids = await save_memories(client, *contents)
    merge = {"action": "MERGE", "memory_ids": ids, "content": merged, **fields}
    answer = await client.post(RUNS, json={"user_id": "mara", "proposals": [merge], "wait": True})
    assert answer.status_code == 200, answer.text
    [reviewed] = answer.json()["proposals"]
    return {**reviewed, "ids": ids, "actor": answer.json()["actor"]}


@pytest.mark.req("UMB-16", "UMB-14")
async def test_a_merge_by_hand_has_each_memory_literally_or_names_the_one_it_lacks(admin: httpx.AsyncClient) -> None:
    contents = ["Bob works at Acme", "Bob works in Marketing."]
    refused = await execute_merge(admin, contents, "Bob works at Acme in Marketing")
    assert refused["verdict"] == "refused"
    assert refused["reason"].startswith(refused["ids"][1]), "it names the source"
    assert await current_contents(admin) == set(contents)
    merged = "bob works in marketing, and Bob works at Acme"
    executed = await execute_merge(admin, contents, merged)
    assert (executed["verdict"], executed["reason"]) == ("executed", None)
    assert await current_contents(admin) == {merged}


async def test_a_verified_paraphrase_is_executed_and_recorded_with_the_key(admin: httpx.AsyncClient) -> None:
    contents, merged = ["Mara äter inte kött", "Mara avstår från fisk"], "Mara äter varken kött eller fisk"
    refused = await execute_merge(admin, contents, merged)
    assert refused["verdict"] == "refused"
    assert "verified" in refused["reason"], "it says what to do"
    executed = await execute_merge(admin, contents, merged, verified=True)
    assert executed["verdict"] == "executed"
    assert executed["proposal"]["verified"] is True
    assert executed["verified_by"] == executed["actor"]
    assert executed["actor"]
    assert await current_contents(admin) == {merged}


async def test_a_verified_merge_passes_every_other_rule(admin: httpx.AsyncClient) -> None:
    merges = (
        (["Mara har 3 katter", "Maras katter är svarta"], "Mara har svarta katter"),
        (["Mara takes 0.125 mg", "Mara takes digoxin"], "Mara takes 125 mg digoxin"),
        (["Bob prefers coffee", "Alice prefers tea"], "Bob and Alice prefer coffee and tea"),
        (["Mara likes figs", "Mara paints"], "Mara likes figs and paints. Her password is hunter2-Ruder!"),
    )
    ids = await save_memories(admin, *(content for contents, _ in merges for content in contents))
    proposals = [
        {"action": "MERGE", "memory_ids": ids[2 * number : 2 * number + 2], "content": merged, "verified": True}
        for number, (_, merged) in enumerate(merges)
    ]
    run = (await admin.post(RUNS, json={"user_id": "mara", "proposals": proposals, "wait": True})).json()
    verdicts = [reviewed["verdict"] for reviewed in run["proposals"]]
    assert dict(zip((merged for _, merged in merges), verdicts, strict=True)) == {
        merged: "refused" for _, merged in merges
    }


async def test_run_is_accepted_with_202_and_dry_run_changes_nothing(admin: httpx.AsyncClient) -> None:
    run = await run_merge(admin, dry_run=True)
    assert (run["status"], run["proposals"][0]["verdict"]) == ("succeeded", "planned")
    assert MERGED_STATEMENT in {(change["after"] or {}).get("fact") for change in run["changes"]}
    assert await current_contents(admin) == set(SOURCE_STATEMENTS)
    refused = await admin.post(f"{RUNS}/{run['id']}/rollback")
    assert refused.status_code == 409
    accepted = await admin.post(RUNS, json={"user_id": "mara"})
    assert (accepted.status_code, accepted.json().keys()) == (202, {"run_id"})


async def test_runs_are_tenant_scoped_and_listed_latest_first(
    admin: httpx.AsyncClient, caller: Caller, services: Services, tenant: str
) -> None:
    await save_memories(admin, *SOURCE_STATEMENTS)
    runs = RunStore(services.components.graph)
    for number in range(3):
        await runs.create(f"{tenant}-{number}", tenant, Owner(tenant, "mara"), RunTrigger.ON_DEMAND, utc_now())
    listed = (await admin.get(RUNS, params={"user_id": "mara", "limit": 2})).json()
    assert [run["id"] for run in listed["items"]] == [f"{tenant}-2", f"{tenant}-1"]
    rest = (await admin.get(RUNS, params={"limit": 2, "cursor": listed["next_cursor"]})).json()
    assert [run["id"] for run in rest["items"]] == [f"{tenant}-0"]
    stranger = await caller("admin", of="t" + uuid.uuid4().hex[:12])
    assert (await stranger.get(RUNS)).json()["items"] == []
    for answer in (
        await stranger.get(f"{RUNS}/{tenant}-0"),
        await stranger.post(f"{RUNS}/{tenant}-0/rollback"),
        await admin.get(f"{RUNS}/nothing"),
    ):
        assert answer.status_code == 404
    assert (await admin.get(RUNS, params={"cursor": "x"})).status_code == 422


@pytest.mark.req("TRUE-23")
async def test_maintenance_returns_the_result_of_each_task(admin: httpx.AsyncClient) -> None:
    await save_memories(admin, *SOURCE_STATEMENTS)
    done = await admin.post("/v1/admin/maintenance", json={"tasks": ["decay", "expire", "compress"]})
    assert (done.status_code, done.json()["tasks"]) == (
        200, {"decay": {"faded": 0}, "expire": {"expired": 0, "feedback_to_review": 0}, "compress": {}},
    )  # fmt: skip
    assert (await admin.post("/v1/admin/maintenance", json={"tasks": ["polish"]})).status_code == 422


async def test_a_run_that_changes_nothing_leaves_no_trace_in_an_export(admin: httpx.AsyncClient) -> None:
    async def exported() -> dict[str, Any]:
        found: dict[str, Any] = (await admin.get("/v1/users/mara/export")).json()
        return {name: value for name, value in found.items() if name != "exported_at"}

    await save_memories(admin, "Mara restores typewriters", "The train to Lund leaves from platform nine")
    before = await exported()
    run = (await admin.post(RUNS, json={"user_id": "mara", "wait": True})).json()
    assert (run["status"], run["candidates"], run["change_count"]) == ("succeeded", 2, 0)
    assert await exported() == before
