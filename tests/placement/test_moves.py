"""A tenant moves to another graph while it is read and written, and nobody sees a difference."""

from __future__ import annotations

import asyncio
import uuid
from typing import Any

import httpx

from graphmem.neo4j.driver import Graph
from graphmem.neo4j.placed_graph import PlacedGraph
from tests.placement.conftest import SECOND

NODES_OF_TENANT = """
MATCH (n) WHERE n.tenant = $tenant OR n.group_id STARTS WITH $tenant + ':'
UNWIND labels(n) AS label WITH label WHERE NOT label IN ['ApiKey', 'Placement', 'WriteBarrier']
RETURN label, count(*) AS found ORDER BY label
"""


RELATIONSHIPS_OF_TENANT = """
MATCH (n)-[r]->() WHERE n.tenant = $tenant OR n.group_id STARTS WITH $tenant + ':'
RETURN type(r) AS type, count(*) AS found ORDER BY type
"""


async def count_relationships(graph: Graph, tenant: str) -> dict[str, int]:
    rows = await graph.read(lambda transaction: transaction.run_text(RELATIONSHIPS_OF_TENANT, {"tenant": tenant}))
    return {row["type"]: row["found"] for row in rows}


async def count_nodes(graph: Graph, tenant: str) -> dict[str, int]:
    rows = await graph.read(lambda transaction: transaction.run_text(NODES_OF_TENANT, {"tenant": tenant}))
    return {row["label"]: row["found"] for row in rows}


async def save(client: httpx.AsyncClient, user: str, content: str) -> dict[str, Any]:
    answer = await client.post(f"/v1/users/{user}/memories", json={"memories": [{"content": content}]})
    assert answer.status_code in (200, 201), answer.text
    results: list[dict[str, Any]] = answer.json()["results"]
    return results[0]


async def list_ids(client: httpx.AsyncClient, user: str) -> set[str]:
    found: set[str] = set()
    query: dict[str, Any] = {"limit": 100}
    while True:
        page = (await client.get(f"/v1/users/{user}/memories", params=query)).json()
        found |= {memory["id"] for memory in page["items"]}
        if not page["next_cursor"]:
            return found
        query["cursor"] = page["next_cursor"]


async def export(client: httpx.AsyncClient, user: str) -> dict[str, Any]:
    answer = await client.get(f"/v1/users/{user}/export")
    assert answer.status_code == 200, answer.text
    document: dict[str, Any] = answer.json()
    document.pop("exported_at", None)
    return document


async def move(client: httpx.AsyncClient, target: str, seconds: float = 60) -> dict[str, Any]:
    answer = await client.post("/v1/admin/placements", json={"graph": target})
    assert answer.status_code == 202, answer.text
    return await finished(client, answer.json()["id"], seconds)


async def finished(client: httpx.AsyncClient, job_id: str, seconds: float = 60) -> dict[str, Any]:
    async with asyncio.timeout(seconds):
        while True:
            job: dict[str, Any] = (await client.get(f"/v1/jobs/{job_id}")).json()
            if job["status"] in ("succeeded", "failed", "skipped"):
                return job
            await asyncio.sleep(0.1)


async def place(client: httpx.AsyncClient) -> str:
    listed = (await client.get("/v1/admin/placements")).json()
    return str(listed["tenants"][0]["graph"])


async def test_a_moved_tenant_is_complete_in_the_other_graph_and_gone_from_the_first(
    admin: httpx.AsyncClient, placed: PlacedGraph, tenant: str
) -> None:
    home, second = placed.home, await placed.open_named(SECOND)
    for number in range(3):
        await save(admin, "mara", f"Mara has read book number {number}")
    await admin.post(
        "/v1/users/mara/messages",
        json={"session_id": "s1", "extract": False, "messages": [{"role": "user", "content": "I like green tea."}]},
    )
    await save(admin, "jonas", "Jonas plays the violin")
    await admin.put("/v1/admin/instructions", json={"text": "Remember books."})
    before = await export(admin, "mara")
    counts = await count_nodes(home, tenant)
    assert await place(admin) == "home"

    job = await move(admin, SECOND)

    assert job["status"] == "succeeded", job
    assert await place(admin) == SECOND
    assert await count_nodes(home, tenant) == {}
    assert await count_nodes(second, tenant) == counts
    assert await export(admin, "mara") == before
    found = (await admin.post("/v1/users/jonas/search", json={"query": "Which instrument does Jonas play?"})).json()
    assert found["results"][0]["memory"]["content"] == "Jonas plays the violin"
    await save(admin, "mara", "Mara is afraid of spiders")
    assert await count_nodes(home, tenant) == {}
    back = await move(admin, "home")
    assert back["status"] == "succeeded", back
    assert await count_nodes(second, tenant) == {}
    assert len((await admin.get("/v1/users/mara/memories")).json()["items"]) == 4


async def test_a_move_under_a_storm_of_writes_loses_nothing_and_no_read_misses_a_write(
    admin: httpx.AsyncClient,
) -> None:
    """Writers read back what was acknowledged at once, until the move and some time after it are over."""
    saved: dict[str, set[str]] = {}
    problems: list[str] = []
    stop = asyncio.Event()

    async def write(user: str) -> None:
        known = saved.setdefault(user, set())
        while not stop.is_set():
            action = await save(admin, user, f"{user} has seen {uuid.uuid4().hex}")
            known.add(action["memory"]["id"])
            answer = await admin.get(f"/v1/users/{user}/memories/{action['memory']['id']}")
            if answer.status_code != 200:
                problems.append(f"{user}: {answer.status_code} {answer.text}")

    writers = [asyncio.create_task(write(f"user{number}")) for number in range(2)]
    await asyncio.sleep(0.5)
    job = await move(admin, SECOND)
    await asyncio.sleep(0.5)
    stop.set()
    await asyncio.gather(*writers)

    assert job["status"] == "succeeded", job
    assert problems == []
    for user, ids in saved.items():
        assert await list_ids(admin, user) == ids
    assert job["actions"][0]["waited_ms"] > 0


async def test_users_who_are_forgotten_during_a_move_stay_forgotten(
    admin: httpx.AsyncClient, placed: PlacedGraph, tenant: str
) -> None:
    users = [f"user{number}" for number in range(4)]
    for user in users:
        await save(admin, user, f"{user} plays the violin")
    moving = asyncio.create_task(move(admin, SECOND))
    for user in users[:-1]:
        erased = await admin.delete(f"/v1/users/{user}")
        assert erased.status_code == 200, erased.text
        assert erased.json()["residue"] == 0
        assert erased.json()["receipt"]
    assert (await moving)["status"] == "succeeded"
    second = await placed.open_named(SECOND)
    left = await count_nodes(second, tenant)
    assert left["User"] == left["Entity"] == 1
    assert await count_nodes(placed.home, tenant) == {}


async def test_a_move_that_is_asked_for_twice_is_made_once(admin: httpx.AsyncClient, tenant: str) -> None:
    await save(admin, "mara", "Mara keeps bees")
    first = (await admin.post("/v1/admin/placements", json={"graph": SECOND})).json()
    second = (await admin.post("/v1/admin/placements", json={"graph": SECOND})).json()
    assert first["id"] == second["id"]
    assert (await finished(admin, first["id"]))["status"] == "succeeded"
    [listed] = (await admin.get("/v1/admin/placements")).json()["tenants"]
    assert listed == {"tenant": tenant, "graph": SECOND, "state": "settled", "target": None, "job_id": first["id"]}


async def consolidate(client: httpx.AsyncClient, body: dict[str, Any]) -> str:
    run = await client.post("/v1/admin/consolidations", json={"wait": True, **body})
    assert run.status_code == 200, run.text
    return str(run.json()["id"])


async def test_a_run_from_before_a_move_is_rolled_back_after_it(
    admin: httpx.AsyncClient, placed: PlacedGraph, tenant: str
) -> None:
    said = ["Mara plays the violin", "Mara plays the violin at home"]
    ids = [(await save(admin, "mara", content))["memory"]["id"] for content in said]
    merge = {"action": "MERGE", "memory_ids": ids, "content": said[1], "verified": True}
    run_id = await consolidate(admin, {"user_id": "mara", "proposals": [merge]})
    for content in ("Tom keeps bees", "Tom keeps two hives of bees"):
        await save(admin, "tom", content)
    everybody = await consolidate(admin, {})
    known = (await admin.get("/v1/users/mara/memories")).json()["items"]
    assert [memory["content"] for memory in known] == [said[1]]
    before = await count_relationships(placed.home, tenant)
    assert {"CHANGED", "PART", "RELATES_TO"} <= before.keys()
    assert (await move(admin, SECOND))["status"] == "succeeded"
    assert await count_relationships(await placed.open_named(SECOND), tenant) == before
    assert (await admin.get(f"/v1/admin/consolidations/{everybody}")).json()["parts"]
    rolled_back = await admin.post(f"/v1/admin/consolidations/{run_id}/rollback", json={})
    assert rolled_back.status_code == 200, rolled_back.text
    restored = (await admin.get("/v1/users/mara/memories")).json()["items"]
    assert {memory["content"] for memory in restored} == set(said)
