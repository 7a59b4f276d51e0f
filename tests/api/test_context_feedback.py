"""Which memories went into which answer: a rating by the id of the context strengthens what it held."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import httpx

from graphmem.app.bootstrap import Services
from graphmem.tenants.owners import Owner
from tests.webhooks.test_webhooks import save

USER = "/v1/users/mara"


async def build(client: httpx.AsyncClient, **fields: Any) -> dict[str, Any]:
    answer = await client.post(f"{USER}/context", json={"question": "Which tea does Mara like?", **fields})
    context: dict[str, Any] = answer.json()
    return context


async def read(client: httpx.AsyncClient, memory_id: str) -> dict[str, Any]:
    memory: dict[str, Any] = (await client.get(f"{USER}/memories/{memory_id}")).json()
    return memory


async def uses(client: httpx.AsyncClient, memory_id: str) -> list[tuple[str, int | None, str | None]]:
    items = (await client.get(f"{USER}/memories/{memory_id}/uses")).json()["items"]
    return [(item["context_id"], item["score"], item["verdict"]) for item in items]


async def test_a_rating_credits_the_memories_of_its_context_once(
    agent: httpx.AsyncClient, admin: httpx.AsyncClient, services: Services, tenant: str
) -> None:
    tea = await save(agent, "Mara likes green tea")
    everyone = await save(admin, "Answers name their source", scope="global", importance=0.95)
    first, second = await build(agent), await build(agent, session_id="s")
    assert {memory["id"] for memory in first["memories"]} == {tea["id"], everyone["id"]}
    await services.retrieval.flush()
    before = await read(agent, tea["id"])

    rated = await agent.post(f"{USER}/context/{first['context_id']}/feedback", json={"score": 2})
    assert (rated.json()["verdict"], rated.json()["credited"]) == ("negative", [])
    assert (await read(agent, tea["id"]))["strength"] == before["strength"]
    rated = await agent.post(f"{USER}/context/{first['context_id']}/feedback", json={"score": 5})
    assert set(rated.json()["credited"]) == {tea["id"], everyone["id"]}
    again = await agent.post(f"{USER}/context/{first['context_id']}/feedback", json={"score": 4})
    assert again.json()["credited"] == []
    after = await read(agent, tea["id"])
    assert after["access_count"] == before["access_count"] + 1
    assert after["strength"] > before["strength"]

    messages = [{"role": "user", "content": "Which tea?"}, {"role": "assistant", "content": "Green.", "id": "reply"}]
    await agent.post(f"{USER}/messages", json={"session_id": "s", "messages": messages, "extract": False})
    body = {"score": 5, "context_id": second["context_id"]}
    assert (await agent.post(f"{USER}/messages/other/feedback", json=body)).status_code == 404
    reply = (await agent.post(f"{USER}/messages/reply/feedback", json=body)).json()
    assert set(reply["credited"]) == {tea["id"], everyone["id"]}
    assert await uses(agent, tea["id"]) == [
        (second["context_id"], 5, "positive"),
        (first["context_id"], 4, "positive"),
    ]

    assert (await agent.post(f"{USER}/context/unknown/feedback", json={"score": 5})).status_code == 404
    elsewhere = f"/v1/users/tom/context/{first['context_id']}/feedback"
    assert (await agent.post(elsewhere, json={"score": 5})).status_code == 404
    await admin.delete(f"{USER}/memories/{tea['id']}", params={"hard": "true"})
    assert {use[0] for use in await uses(agent, everyone["id"])} == {first["context_id"], second["context_id"]}
    rows = await services.components.graph.fetch(
        "context_uses.list_of_memory",
        group_id=f"{tenant}:mara",
        memory_id=tea["id"],
        now=services.components.clock(),
        limit=9,
    )
    assert rows == []


async def test_analysts_see_uses_and_leave_none(caller: Any, agent: httpx.AsyncClient) -> None:
    analyst = await caller("analyst")
    tea = await save(agent, "Mara likes green tea")
    context = await build(analyst)
    assert await uses(analyst, tea["id"]) == []
    answer = await agent.post(f"{USER}/context/{context['context_id']}/feedback", json={"score": 5})
    assert answer.status_code == 404
    own = await build(agent)
    assert await uses(analyst, tea["id"]) == [(own["context_id"], None, None)]


async def test_contexts_expire_and_are_forgotten_with_the_user(
    agent: httpx.AsyncClient, admin: httpx.AsyncClient, services: Services, tenant: str
) -> None:
    tea = await save(agent, "Mara likes green tea")
    context = await build(agent)
    assert [use[0] for use in await uses(agent, tea["id"])] == [context["context_id"]]
    owner, usage = Owner(tenant, "mara"), services.context_usage
    assert await usage.prune(owner) == {"contexts": 0}
    expired = services.components.clock() + timedelta(days=31)
    graph = services.components.graph
    [row] = await graph.execute("context_uses.delete_expired", group_id=owner.group_id, now=expired)
    assert row["deleted"] == 1
    await build(agent)
    await build(agent)
    await services.context_usage.buffer.flush()
    await build(agent)
    forgotten = (await admin.delete(USER)).json()
    # The last one may or may not have been written before.
    assert forgotten["erased"]["ContextUse"] in (2, 3)
    assert forgotten["residue"] == 0
    await services.context_usage.buffer.flush()
    assert await graph.fetch("context_uses.find", group_id=owner.group_id, context_id="x", now=expired) == []
