from __future__ import annotations

import asyncio
from functools import partial
from urllib.parse import quote

import httpx
import pytest
import uvicorn

from graphmem.app.bootstrap import Services
from graphmem.graph_memory import GraphMemory
from graphmem.mcp import make_app
from graphmem.memories.filters import ListFilters
from graphmem.memories.memory import MemoryIn
from graphmem.runtime.settings import Settings
from graphmem.tenants.owners import Owner
from tests.mcp.conftest import Keys, call_tool, call_tool_error, http_client, run_memory_lifecycle, serve_tools

PING = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
ACCEPT = {"Accept": "application/json, text/event-stream"}


@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_a_session_saves_searches_updates_reads_history_and_deletes(
    services: Services, settings: Settings, keys: Keys, mode: str
) -> None:
    key = await keys(users=["mara"])
    async with serve_tools(services, settings) as address, http_client(f"{address}/mcp", key, mode) as client:
        await run_memory_lifecycle(client)


async def test_a_key_of_many_users_names_the_user_in_the_path(
    services: Services, settings: Settings, keys: Keys, tenant: str
) -> None:
    key = await keys()
    async with serve_tools(services, settings) as address:
        for user in ("anna", "mcp", "a/b", "100%", "日本"):
            async with http_client(f"{address}/mcp/{quote(user, safe='')}", key) as client:
                await call_tool(client, "save_memory", content="Likes oolong tea")
            listed = await services.memories.page(Owner(tenant, user), ListFilters())
            assert [memory.content for memory in listed.items] == ["Likes oolong tea"]


async def test_a_request_without_a_user_or_an_authorized_key_is_rejected(
    services: Services, settings: Settings, keys: Keys
) -> None:
    bound, wide, two = await keys(users=["mara"]), await keys(), await keys(users=["mara", "anna"])
    async with serve_tools(services, settings) as address, httpx.AsyncClient(base_url=address) as http:
        for key, path, status in (
            ("", "/mcp", 401),
            ("gm_nothing", "/mcp", 401),
            (wide, "/mcp", 403),
            (two, "/mcp", 403),
            (bound, "/mcp/anna", 403),
            (bound, "/mcp", 200),
            (bound, "/mcp/", 200),
            (bound, "/mcp/mara", 200),
            (two, "/mcp/anna", 200),
            (wide, "/mcp/%ff", 422),
            (wide, "/mcp/%20", 422),
        ):
            headers = ACCEPT | ({"Authorization": f"Bearer {key}"} if key else {})
            response = await http.post(path, json=PING, headers=headers)
            assert response.status_code == status, (path, response.text)
            if status != 200:
                assert response.headers["content-type"] == "application/problem+json"
            if status == 401:
                assert response.headers["www-authenticate"] == "Bearer"
        assert (await http.get("/mcp", headers=ACCEPT)).status_code == 405


async def test_an_analyst_reads_but_cannot_write(
    services: Services, settings: Settings, keys: Keys, tenant: str
) -> None:
    key = await keys("analyst", ["mara"])
    async with serve_tools(services, settings) as address, http_client(f"{address}/mcp", key) as client:
        assert "hint" in await call_tool(client, "search_memory", query="tea")
        owner = Owner(tenant, "mara")
        [saved] = await services.memories.save(owner, [MemoryIn(content="Mara likes tea")])
        assert (await call_tool(client, "search_memory", query="tea"))["memories"]
        assert (await call_tool(client, "lookup_entity", text="mara"))["entities"]
        assert "likes tea" in (await call_tool(client, "get_context", question="Which tea?"))["preamble"]
        await services.retrieval.flush()
        assert saved.memory
        assert (await services.memories.get(owner, saved.memory.id)).access_count == 0
        assert "analyst" in await call_tool_error(client, "save_memory", content="Mara likes tea")


async def test_a_revoked_key_is_rejected_at_once(
    services: Services, settings: Settings, keys: Keys, tenant: str
) -> None:
    key = await keys(users=["mara"])
    async with serve_tools(services, settings) as address, httpx.AsyncClient(base_url=address) as http:
        headers = ACCEPT | {"Authorization": f"Bearer {key}"}
        assert (await http.post("/mcp", json=PING, headers=headers)).status_code == 200
        [made] = await services.keys.list(tenant)
        await services.keys.revoke(tenant, made.id)
        assert (await http.post("/mcp", json=PING, headers=headers)).status_code == 401


async def test_writes_record_the_key_as_actor(services: Services, settings: Settings, keys: Keys, tenant: str) -> None:
    key = await keys(users=["mara"])
    async with serve_tools(services, settings) as address, http_client(f"{address}/mcp", key) as client:
        saved = await call_tool(client, "save_memory", content="Mara likes oolong tea")
    [made] = await services.keys.list(tenant)
    rows = await services.memories.history(Owner(tenant, "mara"), saved["memory_id"])
    assert [row.actor for row in rows] == [made.id]


async def test_leaving_the_mount_removes_its_routes(services: Services, settings: Settings) -> None:
    from graphmem_api.app import create_app

    from graphmem.mcp import mount

    app = create_app(services, settings)
    before = list(app.router.routes)
    async with mount(app, services, settings, partial(GraphMemory.of_key, services)):
        assert len(app.router.routes) == len(before) + 2
    assert app.router.routes == before


async def test_the_protocol_is_loaded_by_the_first_request_and_by_many_at_once(
    services: Services, settings: Settings, keys: Keys
) -> None:
    key = await keys(users=["mara"])
    headers = {"Authorization": f"Bearer {key}", **ACCEPT}
    async with serve_tools(services, settings) as address, httpx.AsyncClient(base_url=address) as http:
        answers = await asyncio.gather(*(http.post("/mcp", json=PING, headers=headers) for _ in range(8)))
        assert [answer.status_code for answer in answers] == [200] * 8


async def test_the_tools_are_served_as_a_standalone_application(
    services: Services, settings: Settings, keys: Keys
) -> None:
    app = make_app(services, settings, partial(GraphMemory.of_key, services))
    server = uvicorn.Server(uvicorn.Config(app, host="127.0.0.1", port=0, lifespan="on", log_config=None))
    task = asyncio.create_task(server.serve())
    while not server.started:  # noqa: ASYNC110 - a flag is all uvicorn offers
        await asyncio.sleep(0.01)
    address = f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}"
    async with http_client(f"{address}/mcp/a%2Fb", await keys(users=["a/b"])) as client:
        await run_memory_lifecycle(client)
    async with httpx.AsyncClient(base_url=address) as http:
        nobody = await http.post("/mcp", json=PING)
        assert (nobody.status_code, nobody.headers["content-type"]) == (401, "application/problem+json")
    server.should_exit = True
    await task
