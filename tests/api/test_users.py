"""The list of users."""

from __future__ import annotations

from datetime import UTC, datetime

import httpx
import pytest

from graphmem.runtime.errors import Forbidden
from graphmem.tenants.access import ApiKey
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


@pytest.mark.req("UMB-08")
async def test_a_user_id_in_the_place_of_the_text_is_an_error_that_names_the_order(agent: httpx.AsyncClient) -> None:
    """`client.search("tea", "zoe")` would find nothing for ever, and `client.add("I like tea", "zoe")` make a user."""
    statement = {"memories": [{"content": "Zoe likes tea"}]}
    (await agent.post("/v1/users/zoe/memories", json=statement)).raise_for_status()
    swapped = (
        agent.post("/v1/users/tea/search", json={"query": "zoe"}),
        agent.post("/v1/users/tea/messages/search", json={"query": "zoe"}),
        agent.post("/v1/users/tea/context", json={"question": "zoe"}),
        agent.get("/v1/users/tea/entities/lookup", params={"q": "zoe"}),
        agent.post("/v1/users/I like tea/memories", json={"memories": [{"content": "zoe"}]}),
    )
    for response in [await call for call in swapped]:
        assert response.status_code == 422, response.request.url
        assert "the user's id comes first" in response.json()["detail"]
    for user, query in (("zoe", "tea"), ("new", "tea"), ("zoe", "zoe")):
        found = await agent.post(f"/v1/users/{user}/search", json={"query": query})
        assert found.status_code == 200
        assert bool(found.json()["results"]) is (user == "zoe")


async def test_a_bound_key_says_whose_it_is_where_it_has_no_access(caller: Caller) -> None:
    bound = await caller("agent", users=["zoe"])
    swapped = await bound.post("/v1/users/tea/search", json={"query": "zoe"})
    assert swapped.status_code == 403
    assert "no access to the user 'tea': it is bound to 'zoe'." in swapped.json()["detail"]
    many = await caller("agent", users=["zoe", "ada", "bo", "kim"])
    assert "bound to 'zoe', 'ada', 'bo', …" in (await many.get("/v1/users/tea/memories")).json()["detail"]
    tenant = ApiKey.model_validate(
        {"id": "k", "name": "k", "role": "agent", "users": ["zoe"], "created_at": datetime.now(UTC), "tenant": "acme"}
    )
    with pytest.raises(Forbidden, match="is the tenant"):
        tenant.require_access("acme")


@pytest.mark.parametrize("placeholder", ["{{ user.id }}", "undefined", "$USER"])
async def test_keys_and_webhooks_are_bound_to_no_placeholder(admin: httpx.AsyncClient, placeholder: str) -> None:
    users = [placeholder]
    for path, body in (
        ("/v1/admin/keys", {"name": "k", "role": "agent", "users": users}),
        ("/v1/admin/webhooks", {"url": "https://example.com/hook", "users": users}),
    ):
        refused = await admin.post(path, json=body)
        assert refused.status_code == 422, path
        assert "not filled in" in refused.json()["errors"][0]["msg"]
