"""What changed in a user's memory, over HTTP."""

from __future__ import annotations

from typing import Any

import httpx
import pytest

USER = "/v1/users/mara"


async def save(client: httpx.AsyncClient, content: str, **fields: Any) -> dict[str, Any]:
    answer = await client.post(f"{USER}/memories", json={"memories": [{"content": content, **fields}]})
    assert answer.status_code == 200, answer.text
    memory: dict[str, Any] = answer.json()["results"][0]["memory"]
    return memory


async def list_changes(client: httpx.AsyncClient, **query: Any) -> list[dict[str, Any]]:
    """Return all changes, page by page."""
    items: list[dict[str, Any]] = []
    cursor = None
    while True:
        page = await client.get(f"{USER}/changes", params={**query, **({"cursor": cursor} if cursor else {})})
        assert page.status_code == 200, page.text
        items += page.json()["items"]
        if not (cursor := page.json()["next_cursor"]):
            return items


def summarize(items: list[dict[str, Any]]) -> list[tuple[str, str, str | None]]:
    return [(item["kind"], item["memory"]["content"], item["reason"]) for item in items]


LIVES = {"predicate": "LIVES_IN", "single_valued": True}


async def test_changes_tell_what_was_inserted_superseded_deleted_and_restored(agent: httpx.AsyncClient) -> None:
    oslo = await save(agent, "Mara lives in Oslo", object={"name": "Oslo"}, valid_at="2025-01-01T00:00:00Z", **LIVES)
    bergen = await save(
        agent, "Mara lives in Bergen", object={"name": "Bergen"}, valid_at="2026-01-01T00:00:00Z", **LIVES
    )
    tea = await save(agent, "Mara likes tea")
    await agent.delete(f"{USER}/memories/{tea['id']}")
    reverted = await agent.post(f"{USER}/memories/{oslo['id']}/revert")
    assert reverted.status_code == 200, reverted.text

    items = await list_changes(agent)
    assert sorted(summarize(items)[:3]) == [
        ("inserted", "Mara lives in Bergen", None),
        ("inserted", "Mara lives in Oslo", None),
        ("superseded", "Mara lives in Oslo", "superseded"),
    ]
    assert summarize(items)[3:5] == [("inserted", "Mara likes tea", None), ("deleted", "Mara likes tea", "deleted")]
    assert sorted(summarize(items)[5:]) == [
        ("restored", "Mara lives in Oslo", "reverted"),
        ("superseded", "Mara lives in Bergen", "reverted"),
    ]
    assert [item["at"] for item in items] == sorted(item["at"] for item in items)
    assert len({item["actor"] for item in items}) == 1
    assert items[0]["actor"]
    assert bergen["id"] in {item["memory_id"] for item in items}


async def test_two_times_bound_the_changes_and_pages_divide_them(agent: httpx.AsyncClient) -> None:
    first = await save(agent, "Mara has a bicycle")
    second = await save(agent, "Mara has a canoe")
    third = await save(agent, "Mara has a kite")
    between = {"since": second["created_at"], "until": third["created_at"]}
    assert summarize(await list_changes(agent, **between)) == [("inserted", "Mara has a canoe", None)]
    assert summarize(await list_changes(agent, since=third["created_at"])) == [("inserted", "Mara has a kite", None)]
    by_one = await list_changes(agent, limit=1)
    assert [item["memory_id"] for item in by_one] == [first["id"], second["id"], third["id"]]


async def test_unusable_bounds_and_cursors_are_refused(agent: httpx.AsyncClient) -> None:
    for query in (
        {"since": "yesterday"},
        {"since": "2026-02-01T00:00:00Z", "until": "2026-01-01T00:00:00Z"},
        {"cursor": "x"},
    ):
        answer = await agent.get(f"{USER}/changes", params=query)
        assert answer.status_code == 422, answer.text


async def test_merges_and_their_rollback_are_changes(admin: httpx.AsyncClient, agent: httpx.AsyncClient) -> None:
    sources = [await save(agent, text) for text in ("Mara is vegetarian", "Mara eats no dairy")]
    proposal = {
        "action": "MERGE",
        "memory_ids": [source["id"] for source in sources],
        "content": "Mara is vegetarian and eats no dairy",
        "verified": True,
    }
    body = {"user_id": "mara", "wait": True, "proposals": [proposal]}
    run = (await admin.post("/v1/admin/consolidations", json=body)).json()
    assert [reviewed["verdict"] for reviewed in run["proposals"]] == ["executed"]
    merged = await list_changes(agent, since=run["created_at"])
    assert [item["kind"] for item in merged].count("merged") == 2
    assert [item["kind"] for item in merged].count("inserted") == 1

    rollback = await admin.post(f"/v1/admin/consolidations/{run['id']}/rollback", json={})
    assert rollback.status_code == 200, rollback.text
    undone = [
        item for item in await list_changes(agent, since=run["created_at"]) if "rolled back" in (item["reason"] or "")
    ]
    assert sorted((item["kind"], item["memory_id"] in {source["id"] for source in sources}) for item in undone) == [
        ("deleted", False),
        ("restored", True),
        ("restored", True),
    ]


@pytest.mark.req("QUINN-18")
async def test_a_memory_whose_time_is_over_is_archived_and_stays_readable(
    admin: httpx.AsyncClient, agent: httpx.AsyncClient
) -> None:
    note = await save(agent, "Mara is in Rome this week", tags=["temporary"], expires_at="2026-01-01T00:00:00Z")
    path = f"{USER}/memories/{note['id']}"
    assert note["status"] == "active"
    maintained = (await admin.post("/v1/admin/maintenance", json={"tasks": ["expire"]})).json()["tasks"]
    assert maintained["expire"]["expired"] == 1
    assert (await agent.get(path)).json()["status"] == "archived"
    [version] = (await agent.get(f"{path}/history")).json()["items"]
    assert (version["status"], version["ended_reason"]) == ("archived", "expired")
    assert (await agent.get(f"{USER}/memories")).json()["items"] == []
    assert summarize(await list_changes(agent))[-1] == ("deleted", "Mara is in Rome this week", "expired")
    corrected = await agent.patch(path, json={"content": "Mara is in Bari this week"})
    assert (corrected.status_code, "was archived" in corrected.json()["detail"]) == (409, True)


@pytest.mark.parametrize("user", ["nobody"])
async def test_an_unknown_user_has_no_changes(agent: httpx.AsyncClient, user: str) -> None:
    assert (await agent.get(f"/v1/users/{user}/changes")).json() == {"items": [], "next_cursor": None}


async def test_nothing_has_changed_since_a_time_to_come(agent: httpx.AsyncClient) -> None:
    await save(agent, "Mara plays the oboe")
    assert await list_changes(agent, since="2999-01-01T00:00:00Z") == []
    bounded = await agent.get(
        f"{USER}/changes", params={"since": "2999-01-01T00:00:00Z", "until": "2998-01-01T00:00:00Z"}
    )
    assert bounded.status_code == 422
