"""API keys: authentication, roles and access to users."""

from __future__ import annotations

import asyncio
import uuid
from collections import Counter
from typing import Any

import httpx
import pytest
from graphmem_api.app import create_app

from graphmem.app.bootstrap import Services
from graphmem.models.embedder import Embedder
from graphmem.neo4j.driver import Graph, Transaction
from graphmem.runtime.settings import Settings
from graphmem.runtime.times import utc_now
from graphmem.tenants.access import ApiKeyIn, KeyRole
from graphmem.tenants.keys import KeyService
from tests.api.conftest import FIRST_KEY, Caller, serve_app

SAVE_BODY = {"memories": [{"content": "Mara likes tea"}]}


@pytest.mark.parametrize("header", [None, "", "Bearer", "Basic abc", "Bearer wrong", "Bearer schlüssel"])
async def test_without_a_valid_key_every_call_is_401(anonymous: httpx.AsyncClient, header: str | None) -> None:
    headers = {b"Authorization": header.encode()} if header is not None else {}
    answer = await anonymous.get("/v1/users/mara/memories", headers=headers)
    assert answer.status_code == 401
    assert answer.headers["content-type"] == "application/problem+json"
    assert answer.headers["www-authenticate"] == "Bearer"
    assert answer.json()["type"] == "urn:graphmem:problem:unauthenticated"


async def test_authentication_precedes_body_parsing(anonymous: httpx.AsyncClient) -> None:
    answer = await anonymous.post("/v1/users/mara/memories", content=b"{", headers={"content-type": "application/json"})
    assert answer.status_code == 401


async def test_the_first_key_is_an_admin_of_the_default_tenant(anonymous: httpx.AsyncClient) -> None:
    answer = await anonymous.get("/v1/admin/keys", headers={"Authorization": f"bearer {FIRST_KEY}"})
    assert answer.status_code == 200


async def test_key_is_shown_once_stored_hashed_and_revoked_immediately(
    admin: httpx.AsyncClient, anonymous: httpx.AsyncClient, graph: Graph
) -> None:
    made = await admin.post("/v1/admin/keys", json={"name": "bot", "role": "agent", "users": ["mara", "mara"]})
    assert made.status_code == 201
    key = made.json()
    assert key.keys() == {"id", "name", "role", "users", "created_at", "key"}
    assert key["users"] == ["mara"]

    listed = (await admin.get("/v1/admin/keys")).json()["items"]
    assert {
        "id": key["id"],
        "name": "bot",
        "role": "agent",
        "users": ["mara"],
        "created_at": key["created_at"],
    } in listed

    async def stored(transaction: Transaction) -> list[dict[str, Any]]:
        return await transaction.run_text("MATCH (k:ApiKey {id: $id}) RETURN k {.*} AS k", {"id": key["id"]})

    assert key["key"] not in str(await graph.read(stored))

    headers = {"Authorization": f"Bearer {key['key']}"}
    assert (await anonymous.get("/v1/users/mara/memories", headers=headers)).status_code == 200
    assert (await admin.delete(f"/v1/admin/keys/{key['id']}")).status_code == 204
    assert (await anonymous.get("/v1/users/mara/memories", headers=headers)).status_code == 401
    assert (await admin.delete(f"/v1/admin/keys/{key['id']}")).status_code == 404


async def test_key_of_another_tenant_gets_the_same_404_as_an_unknown_key(
    admin: httpx.AsyncClient, caller: Caller
) -> None:
    other = await caller("admin", of="t" + uuid.uuid4().hex[:12])
    made = (await other.post("/v1/admin/keys", json={"name": "theirs", "role": "agent"})).json()
    theirs = await admin.delete(f"/v1/admin/keys/{made['id']}")
    unknown = await admin.delete(f"/v1/admin/keys/{uuid.uuid4()}")
    assert theirs.status_code == 404
    assert theirs.content == unknown.content
    assert made["id"] not in (await admin.get("/v1/admin/keys")).text


@pytest.mark.parametrize(
    "body",
    [
        {"name": "x", "role": "owner"},
        {"name": " ", "role": "agent"},
        {"role": "agent"},
        {"name": "x", "role": "agent", "users": []},
        {"name": "x", "role": "agent", "users": [" mara"]},
        {"name": "x", "role": "admin", "users": ["mara"]},
        {"name": "x", "role": "agent", "tenant": "default"},
    ],
)
async def test_invalid_key_request_is_422(admin: httpx.AsyncClient, body: dict[str, object]) -> None:
    assert (await admin.post("/v1/admin/keys", json=body)).status_code == 422


@pytest.mark.req("QUINN-41")
async def test_bound_key_has_access_to_its_users_only(caller: Caller) -> None:
    bound = await caller("agent", users=["mara"])
    assert (await bound.post("/v1/users/mara/memories", json=SAVE_BODY)).status_code == 200
    refused = await bound.post("/v1/users/omar/memories", json=SAVE_BODY)
    assert refused.status_code == 403
    assert refused.json()["title"] == "Forbidden"
    assert (await bound.get("/v1/users/omar/memories")).status_code == 403
    elsewhere = {"userId": "omar", "messages": [{"role": "user", "content": "hi"}]}
    assert (await bound.post("/v1/memories", json=elsewhere)).status_code == 403


async def test_analyst_reads_do_not_strengthen_memories(
    services: Services, agent: httpx.AsyncClient, caller: Caller
) -> None:
    saved = await agent.post("/v1/users/mara/memories", json=SAVE_BODY)
    one = f"/v1/users/mara/memories/{saved.json()['results'][0]['memory']['id']}"

    async def read_by(client: httpx.AsyncClient) -> int:
        for question in ({"query": "tea"}, {"query": "tea", "reinforce": True}):
            assert (await client.post("/v1/users/mara/search", json=question)).json()["results"]
        assert (await client.get("/v1/users/mara/entities/lookup", params={"q": "mara", "reinforce": True})).json()[
            "entities"
        ]
        assert (await client.post("/v1/users/mara/context", json={"question": "Which tea?"})).json()["memories"]
        await services.retrieval.flush()
        count: int = (await agent.get(one)).json()["access_count"]
        return count

    assert await read_by(await caller("analyst")) == 0
    assert await read_by(agent) == 4


async def test_an_analyst_reads_and_does_not_write(agent: httpx.AsyncClient, caller: Caller) -> None:
    saved = (await agent.post("/v1/users/mara/memories", json=SAVE_BODY)).json()["results"][0]["memory"]
    analyst = await caller("analyst")
    one = f"/v1/users/mara/memories/{saved['id']}"
    for path in ("/v1/users/mara/memories", one, one + "/history", "/v1/users/mara/entities/lookup?q=mara"):
        assert (await analyst.get(path)).status_code == 200
    assert (await analyst.post("/v1/users/mara/search", json={"query": "tea"})).status_code == 200
    assert (await analyst.post("/v1/users/mara/messages/search", json={"query": "tea"})).status_code == 200
    assert (await analyst.post("/v1/users/mara/memories", json=SAVE_BODY)).status_code == 403
    assert (await analyst.patch(one, json={"importance": 1})).status_code == 403
    assert (await analyst.delete(one)).status_code == 403
    assert (await analyst.post(one + "/revert")).status_code == 403


@pytest.mark.req("CASH-01")
async def test_admin_routes_need_an_admin_key(agent: httpx.AsyncClient, caller: Caller) -> None:
    for client in (agent, await caller("analyst")):
        for method, path in [
            ("GET", "/metrics"),
            ("GET", "/v1/admin/keys"),
            ("POST", "/v1/admin/keys"),
            ("POST", "/v1/admin/consolidations"),
            ("POST", "/v1/admin/maintenance"),
            ("POST", "/_admin/trigger-memory-extraction-v2"),
            ("DELETE", "/v1/users/mara"),
        ]:
            assert (await client.request(method, path)).status_code == 403, path
    saved = (await agent.post("/v1/users/mara/memories", json=SAVE_BODY)).json()["results"][0]["memory"]
    assert (await agent.delete(f"/v1/users/mara/memories/{saved['id']}?hard=true")).status_code == 403


@pytest.mark.req("QUINN-05")
async def test_only_admins_write_global_memories(agent: httpx.AsyncClient, admin: httpx.AsyncClient) -> None:
    body = {"memories": [{"content": "Support closes at six", "scope": "global"}]}
    assert (await agent.post("/v1/users/mara/memories", json=body)).status_code == 403
    saved = (await admin.post("/v1/users/mara/memories", json=body)).json()["results"][0]["memory"]
    one = f"/v1/users/omar/memories/{saved['id']}"
    assert (await agent.get(one)).json()["user_id"] is None
    assert (await agent.patch(one, json={"content": "Support closes at five"})).status_code == 403
    assert (await agent.delete(one)).status_code == 403
    assert (await agent.post(one + "/revert")).status_code == 403
    changed = await admin.patch(one, json={"content": "Support closes at five"})
    assert changed.status_code == 200


@pytest.mark.req("QUINN-41", "CASH-16")
async def test_foreign_id_and_unknown_id_get_identical_404(agent: httpx.AsyncClient, caller: Caller) -> None:
    saved = (await agent.post("/v1/users/mara/memories", json=SAVE_BODY)).json()["results"][0]["memory"]
    elsewhere = await caller("admin", of="t" + uuid.uuid4().hex[:12])
    for client, user in ((agent, "omar"), (elsewhere, "mara")):
        for method, tail, body in [
            ("GET", "", None),
            ("GET", "/history", None),
            ("PATCH", "", {"importance": 1}),
            ("DELETE", "", None),
            ("POST", "/revert", None),
        ]:
            base = f"/v1/users/{user}/memories/"
            theirs = await client.request(method, base + saved["id"] + tail, json=body)
            unknown = await client.request(method, base + str(uuid.uuid4()) + tail, json=body)
            assert theirs.status_code == 404
            assert theirs.content == unknown.content
        base = f"/v1/users/{user}/entities/"
        for tail in ("", "/memories", "/graph"):
            theirs = await client.get(base + saved["subject"]["id"] + tail)
            unknown = await client.get(base + str(uuid.uuid4()) + tail)
            assert theirs.status_code == 404
            assert theirs.content == unknown.content


async def test_address_that_sends_many_unknown_keys_is_throttled_but_known_keys_pass(
    settings: Settings, tenant: str, embedder: Embedder
) -> None:
    settings = settings.model_copy(update={"max_unknown_keys": 3})
    async with (
        Services.open(settings, worker=False, embedder=embedder) as services,
        serve_app(create_app(services, settings)) as address,
        httpx.AsyncClient(base_url=address) as client,
    ):

        async def ask(key: str) -> httpx.Response:
            return await client.get("/v1/users/mara/memories", headers={"Authorization": f"Bearer {key}"})

        known = (await services.keys.create(tenant, ApiKeyIn(name="bot", role=KeyRole.AGENT))).key
        assert (await ask(known)).status_code == 200
        at_once = await asyncio.gather(*(ask(f"wrong-{number}") for number in range(9)))
        assert Counter(response.status_code for response in at_once) == {401: 3, 429: 6}
        refused = await ask("wrong-again")
        assert refused.json()["title"] == "Too many requests"
        assert 1 <= int(refused.headers["Retry-After"]) <= 60
        assert (await ask(known)).status_code == 200
        assert (await ask(FIRST_KEY)).status_code == 200


async def test_key_that_another_process_revokes_is_refused_within_seconds(
    settings: Settings, tenant: str, caller: Caller, graph: Graph
) -> None:
    client = await caller("agent")
    assert (await client.get("/v1/users/mara/memories")).status_code == 200
    other_process = KeyService(graph, graph, utc_now)
    [key] = await other_process.list(tenant)
    await other_process.revoke(tenant, key.id)
    async with asyncio.timeout(60):
        while (answer := await client.get("/v1/users/mara/memories")).status_code == 200:  # noqa: ASYNC110
            await asyncio.sleep(0.1)
    assert answer.status_code == 401
