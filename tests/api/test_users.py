"""The list of users."""

from __future__ import annotations

import httpx

from tests.api.conftest import Caller


async def test_users_are_listed_found_by_part_of_their_id_and_paged(admin: httpx.AsyncClient, caller: Caller) -> None:
    for user in ("ada", "bo", "Adam"):
        saved = await admin.post(f"/v1/users/{user}/memories", json={"memories": [{"content": f"{user} likes tea"}]})
        assert saved.status_code == 200
    everyone = (await admin.get("/v1/users")).json()["items"]
    assert [(user["user_id"], user["memory_count"], user["session_count"]) for user in everyone] == [
        ("Adam", 1, 0),
        ("ada", 1, 0),
        ("bo", 1, 0),
    ]
    assert everyone[0]["last_write_at"] >= everyone[0]["created_at"]
    found = (await admin.get("/v1/users", params={"query": "AD"})).json()["items"]
    assert [user["user_id"] for user in found] == ["Adam", "ada"]
    first = (await admin.get("/v1/users", params={"limit": 2})).json()
    rest = (await admin.get("/v1/users", params={"limit": 2, "cursor": first["next_cursor"]})).json()
    assert [user["user_id"] for user in rest["items"]] == ["bo"]
    assert rest["next_cursor"] is None


async def test_a_key_lists_only_the_users_it_has_access_to(admin: httpx.AsyncClient, caller: Caller) -> None:
    for user in ("ada", "bo"):
        await admin.post(f"/v1/users/{user}/memories", json={"memories": [{"content": f"{user} likes tea"}]})
    bound = await caller("analyst", users=["bo"])
    assert [user["user_id"] for user in (await bound.get("/v1/users")).json()["items"]] == ["bo"]
    other_tenant = await caller("admin", of="other")
    assert not {"ada", "bo"} & {user["user_id"] for user in (await other_tenant.get("/v1/users")).json()["items"]}
