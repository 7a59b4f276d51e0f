"""A user of a tenant lives in another graph than the tenant, and nobody sees a difference."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import AsyncIterator, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any

import httpx
import pytest

from graphmem.app.bootstrap import Services
from graphmem.changes.webhooks import WEBHOOK_JOB, WebhookPayload
from graphmem.graph_memory import GraphMemory
from graphmem.jobs.job import JobStatus
from graphmem.memories.memory import MemoryIn, SaveAction, SaveResult, Scope
from graphmem.models.embedder import Embedder
from graphmem.neo4j.driver import Graph
from graphmem.neo4j.migrations import check_invariants
from graphmem.neo4j.placed_graph import PlacedGraph
from graphmem.neo4j.work import working_for
from graphmem.runtime.errors import Unavailable
from graphmem.runtime.settings import Settings
from graphmem.tenants.idempotency import IdempotentRequest
from graphmem.tenants.owners import Owner
from tests.api.test_quarantine import QUARANTINE, quarantine
from tests.placement.conftest import SECOND
from tests.placement.test_moves import consolidate, export, finished, list_ids, move, save
from tests.webhooks.test_webhooks import WEBHOOKS, Receiver, create, receiver

__all__ = ["receiver"]  # a fixture

NODES_OF_GROUP = """
MATCH (n) WHERE n.group_id = $group_id OR n.owner_group = $group_id OR n.member = $group_id
UNWIND labels(n) AS label WITH label WHERE NOT label IN ['PlacedChange', 'ContextUse']
RETURN label, count(*) AS found ORDER BY label
"""


async def count_nodes_of(graph: Graph, tenant: str, user: str) -> dict[str, int]:
    group = {"group_id": f"{tenant}:{user}"}
    rows = await graph.read(lambda transaction: transaction.run_text(NODES_OF_GROUP, group))
    return {row["label"]: row["found"] for row in rows}


async def move_user(client: httpx.AsyncClient, user: str, target: str) -> dict[str, Any]:
    answer = await client.post("/v1/admin/placements", json={"graph": target, "user_id": user})
    assert answer.status_code == 202, answer.text
    return await finished(client, answer.json()["id"])


async def search(client: httpx.AsyncClient, user: str, question: str) -> list[str]:
    answer = await client.post(f"/v1/users/{user}/search", json={"query": question})
    assert answer.status_code == 200, answer.text
    return [hit["memory"]["content"] for hit in answer.json()["results"]]


async def rank(memory: GraphMemory, question: str, source: str) -> list[tuple[str, float]]:
    """Return what a search of mara finds with how well it fits, which does not depend on the time."""
    for _ in range(3):
        with suppress(Unavailable):  # a database that has just started takes long for its first queries
            found = await memory.search("mara", question, explain=True, include_messages=True, reinforce=False)
            break
    fits = [(hit.memory.content, round(hit.explain.fit, 9)) for hit in found.results if hit.explain]
    assert {hit.explain.source for hit in found.results if hit.explain} == {source}
    return [*fits, *((hit.message.content, round(hit.score, 9)) for hit in found.messages)]


async def preamble(client: httpx.AsyncClient, user: str, question: str) -> str:
    answer = await client.post(f"/v1/users/{user}/context", json={"question": question})
    assert answer.status_code == 200, answer.text
    return str(answer.json()["preamble"])


async def share(client: httpx.AsyncClient) -> None:
    """Store a memory of the tenant, and one in a space of mara's."""
    shared = {"memories": [{"content": "The office closes at six o'clock", "scope": "global"}]}
    assert (await client.post("/v1/users/jonas/memories", json=shared)).status_code in (200, 201)
    space = {"title": "Team Atlas", "members": [{"user": "mara", "role": "writer"}, {"user": "jonas", "role": "owner"}]}
    assert (await client.put("/v1/spaces/atlas", json=space)).status_code in (200, 201)
    of_space = {"memories": [{"content": "The team meets on Mondays in the office", "space": "atlas"}]}
    answer = await client.post("/v1/users/mara/memories", json=of_space)
    assert answer.status_code in (200, 201), answer.text


async def fill(client: httpx.AsyncClient) -> None:
    for content in ("Mara plays the violin", "Mara's office is in Porto", "Mara meets her brother on Mondays"):
        await save(client, "mara", content)
    turns = {"session_id": "s1", "extract": False, "messages": [{"role": "user", "content": "I left the office late."}]}
    assert (await client.post("/v1/users/mara/messages", json=turns)).status_code in (200, 201, 202)
    await save(client, "jonas", "Jonas keeps bees")
    await share(client)


@pytest.fixture
async def without_copies(settings: Settings, graph: Graph, embedder: Embedder) -> AsyncIterator[Services]:
    """Services that hold no users in memory and search the databases."""
    own = settings.model_copy(update={"resident_mb": 0})
    async with Services.open(own, embedder=embedder, worker=False) as services:
        yield services


async def test_a_moved_user_finds_own_shared_and_space_memories_as_before(
    admin: httpx.AsyncClient, services: Services, without_copies: Services, placed: PlacedGraph, tenant: str
) -> None:
    await fill(admin)
    sources = [(GraphMemory(services, tenant), "memory"), (GraphMemory(without_copies, tenant), "database")]
    questions = ["When does the team meet in the office?", "Where is Mara's office?", "When does the office close?"]
    ranked = [[await rank(memory, question, source) for question in questions] for memory, source in sources]
    assert all(len(found) >= 6 for found in ranked[0])
    contexts = [await preamble(admin, "mara", question) for question in questions]
    ids = await list_ids(admin, "mara")
    entities = (await admin.get("/v1/users/mara/entities")).json()
    stored = await count_nodes_of(placed.home, tenant, "mara")

    job = await move_user(admin, "mara", SECOND)

    assert job["status"] == "succeeded", job
    second = await placed.open_named(SECOND)
    assert await count_nodes_of(placed.home, tenant, "mara") == {"SpaceMember": 1}
    assert await count_nodes_of(second, tenant, "mara") == {k: v for k, v in stored.items() if k != "SpaceMember"}
    assert await count_nodes_of(second, tenant, "jonas") == {}
    for (memory, source), before in zip(sources, ranked, strict=True):
        assert [await rank(memory, question, source) for question in questions] == before
    assert [await preamble(admin, "mara", question) for question in questions] == contexts
    assert await list_ids(admin, "mara") == ids
    assert (await admin.get("/v1/users/mara/entities")).json() == entities
    for graph in (placed.home, second):
        assert [check async for check in check_invariants(graph, tenant) if check.count] == []
    listed = (await admin.get("/v1/admin/placements")).json()
    assert [(user["user_id"], user["graph"], user["state"]) for user in listed["users"]] == [
        ("mara", SECOND, "settled")
    ]
    assert listed["tenants"][0]["graph"] == "home"


async def test_a_moved_user_is_exported_as_before_and_writes_own_shared_and_space_memories(
    admin: httpx.AsyncClient, placed: PlacedGraph, tenant: str
) -> None:
    await fill(admin)
    exported = await export(admin, "mara")
    assert (await move_user(admin, "mara", SECOND))["status"] == "succeeded"
    assert await export(admin, "mara") == exported
    mixed = {
        "memories": [
            {"content": "Mara is afraid of spiders"},
            {"content": "The office has a garden", "scope": "global"},
            {"content": "The team plants tomatoes", "space": "atlas"},
        ]
    }
    once = {"Idempotency-Key": uuid.uuid4().hex}
    first = await admin.post("/v1/users/mara/memories", json=mixed, headers=once)
    again = await admin.post("/v1/users/mara/memories", json=mixed, headers=once)
    assert first.status_code in (200, 201), first.text
    assert first.json() == again.json()
    assert [result["action"] for result in first.json()["results"]] == ["insert", "insert", "insert"]
    own, of_tenant, of_space = (result["memory"] for result in first.json()["results"])
    for memory in (own, of_tenant, of_space):
        changed = await admin.patch(f"/v1/users/mara/memories/{memory['id']}", json={"importance": 0.9})
        assert changed.status_code == 200, changed.text
        history = (await admin.get(f"/v1/users/mara/memories/{memory['id']}/history")).json()
        assert len(history["items"]) == 2
    found = set(await search(admin, "jonas", "What does the office have, what does the team plant?"))
    assert {"The office has a garden", "The team plants tomatoes"} <= found
    assert "Mara is afraid of spiders" not in found
    second = await placed.open_named(SECOND)
    rows = await second.read(
        lambda transaction: transaction.run_text(
            "MATCH ()-[r:RELATES_TO]->() WHERE r.group_id STARTS WITH $prefix RETURN DISTINCT r.group_id AS group_id",
            {"prefix": f"{tenant}:"},
        )
    )
    assert [row["group_id"] for row in rows] == [f"{tenant}:mara"]


@pytest.fixture
async def other_process(settings: Settings, graph: Graph, embedder: Embedder) -> AsyncIterator[Services]:
    """Services as in another process: with a table of assignments of its own."""
    async with Services.open(settings, embedder=embedder, worker=False) as services:
        yield services


async def test_the_move_of_a_user_under_writes_of_two_processes_loses_nothing(
    admin: httpx.AsyncClient, other_process: Services, tenant: str
) -> None:
    """Writers read back at once what was acknowledged, before, during and after the moves there and back."""
    saved: dict[str, set[str]] = {"mara": set(), "jonas": set()}
    problems: list[str] = []
    stop = asyncio.Event()
    other = GraphMemory(other_process, tenant)

    async def write(user: str) -> None:
        while not stop.is_set():
            action = await save(admin, user, f"{user} has seen {uuid.uuid4().hex}")
            saved[user].add(action["memory"]["id"])
            answer = await admin.get(f"/v1/users/{user}/memories/{action['memory']['id']}")
            if answer.status_code != 200:
                problems.append(f"{user}: {answer.status_code} {answer.text}")

    async def write_elsewhere(user: str) -> None:
        while not stop.is_set():
            [result] = await other.add(user, f"{user} has heard {uuid.uuid4().hex}")
            assert result.memory is not None
            saved[user].add(result.memory.id)
            await other.memory(user, result.memory.id)

    writers = [
        asyncio.create_task(work)
        for work in (write("mara"), write("mara"), write("jonas"), write_elsewhere("mara"), write_elsewhere("jonas"))
    ]
    await asyncio.sleep(1)
    there = await move_user(admin, "mara", SECOND)
    await asyncio.sleep(0.5)
    back = await move_user(admin, "mara", "home")
    await asyncio.sleep(0.5)
    stop.set()
    await asyncio.gather(*writers)

    assert there["status"] == back["status"] == "succeeded", (there, back)
    assert problems == []
    for user, ids in saved.items():
        assert await list_ids(admin, user) == ids
    assert there["actions"][0]["waited_ms"] > 0


async def test_a_save_that_ended_between_two_graphs_is_completed_by_its_repetition(
    admin: httpx.AsyncClient, services: Services, tenant: str
) -> None:
    """The first part of a save is stored as it is when its process ends before the second."""
    await fill(admin)
    assert (await move_user(admin, "mara", SECOND))["status"] == "succeeded"
    owner = Owner(tenant, "mara")
    whole = IdempotentRequest(owner, "POST memories", uuid.uuid4().hex, "fingerprint")
    own, shared = MemoryIn(content="Mara sings"), MemoryIn(content="The office is loud", scope=Scope.GLOBAL)

    async def write(memories: Sequence[MemoryIn], request: IdempotentRequest) -> list[SaveResult]:
        with working_for(tenant):
            return await services.components.memory_writer.save(
                owner, memories, actor="test", kind="user", request=request
            )

    # The responder claims a request before it runs.
    with working_for(tenant):
        await services.idempotency.claim(whole)
    [of_shared] = await write([shared], replace(whole, key=f"{whole.key} 0"))
    completed = await write([own, shared], whole)
    assert completed[1] == of_shared
    assert completed[0].action is SaveAction.INSERT
    assert await write([own, shared], whole) == completed


async def test_lists_over_all_users_page_through_both_graphs(admin: httpx.AsyncClient) -> None:
    users = [f"user{number}" for number in range(6)]
    for user in users:
        await save(admin, user, f"{user} plays the violin")
    for user in users[1::2]:
        assert (await move_user(admin, user, SECOND))["status"] == "succeeded"
    found, cursor = [], None
    for _ in range(3):
        page = (await admin.get("/v1/users", params={"limit": 2, **({"cursor": cursor} if cursor else {})})).json()
        found += [(user["user_id"], user["memory_count"]) for user in page["items"]]
        cursor = page["next_cursor"]
    assert found == [(user, 1) for user in users]
    assert cursor is None


async def test_runs_over_all_users_are_listed_and_rolled_back_with_their_parts_in_both_graphs(
    admin: httpx.AsyncClient,
) -> None:
    said = ["Mara plays the violin", "Mara plays the violin at home"]
    ids = [(await save(admin, "mara", content))["memory"]["id"] for content in said]
    for content in ("Tom keeps bees", "Tom keeps two hives of bees"):
        await save(admin, "tom", content)
    before = await consolidate(admin, {})
    assert (await move_user(admin, "mara", SECOND))["status"] == "succeeded"
    merge = {"action": "MERGE", "memory_ids": ids, "content": said[1], "verified": True}
    merged = await consolidate(admin, {"user_id": "mara", "proposals": [merge]})
    for user in ("mara", "tom"):
        await save(admin, user, f"{user} has a cat")
        await save(admin, user, f"{user} has a dog")
    after = await consolidate(admin, {})
    for run_id in (before, after):
        run = (await admin.get(f"/v1/admin/consolidations/{run_id}")).json()
        assert len(run["parts"]) == 2, run
    page = (await admin.get("/v1/admin/consolidations", params={"limit": 2})).json()
    rest = (await admin.get("/v1/admin/consolidations", params={"limit": 2, "cursor": page["next_cursor"]})).json()
    assert [run["id"] for run in page["items"] + rest["items"]] == [after, merged, before]
    assert [len(run["parts"]) for run in page["items"] + rest["items"]] == [2, 0, 2]
    maintained = await admin.post("/v1/admin/maintenance", json={})
    assert maintained.status_code == 200, maintained.text
    rolled_back = await admin.post(f"/v1/admin/consolidations/{merged}/rollback", json={})
    assert rolled_back.status_code == 200, rolled_back.text
    assert (await move_user(admin, "mara", "home"))["status"] == "succeeded"
    run = (await admin.get(f"/v1/admin/consolidations/{after}")).json()
    assert len(run["parts"]) == 2
    contents = {memory["content"] for memory in (await admin.get("/v1/users/mara/memories")).json()["items"]}
    assert set(said) <= contents


async def test_a_moved_user_is_forgotten_in_both_graphs(
    admin: httpx.AsyncClient, placed: PlacedGraph, tenant: str
) -> None:
    await fill(admin)
    assert (await move_user(admin, "mara", SECOND))["status"] == "succeeded"
    shared = {"memories": [{"content": "The office has a garden", "scope": "global"}]}
    once = {"Idempotency-Key": uuid.uuid4().hex}
    assert (await admin.post("/v1/users/mara/memories", json=shared, headers=once)).status_code in (200, 201)
    second = await placed.open_named(SECOND)
    assert "IdempotentRequest" in await count_nodes_of(placed.home, tenant, "mara")
    erased = (await admin.delete("/v1/users/mara")).json()
    assert erased["residue"] == 0
    assert erased["receipt"]
    assert await count_nodes_of(placed.home, tenant, "mara") == {}
    assert await count_nodes_of(second, tenant, "mara") == {}
    assert "The office has a garden" in await search(admin, "jonas", "What does the office have?")
    await save(admin, "mara", "Mara is new here")
    assert await count_nodes_of(placed.home, tenant, "mara") == {}
    assert len(await list_ids(admin, "mara")) == 3  # her own, and two of the tenant's


async def test_an_extraction_and_the_rating_of_a_context_reach_a_moved_user(
    admin: httpx.AsyncClient, placed: PlacedGraph, tenant: str
) -> None:
    await fill(admin)
    assert (await move_user(admin, "mara", SECOND))["status"] == "succeeded"
    context = (await admin.post("/v1/users/mara/context", json={"question": "When does the office close?"})).json()
    rated = await admin.post(f"/v1/users/mara/context/{context['context_id']}/feedback", json={"score": 5})
    assert rated.status_code == 200, rated.text
    assert len(rated.json()["credited"]) >= 2
    turns = {"session_id": "s2", "messages": [{"role": "user", "content": "My sister Lea lives in Porto."}]}
    stored = await admin.post("/v1/users/mara/messages", json=turns)
    assert (await finished(admin, stored.json()["job_id"]))["status"] in ("succeeded", "skipped")
    assert "Porto" in await preamble(admin, "mara", "Where does my sister live?")
    assert await count_nodes_of(placed.home, tenant, "mara") == {"SpaceMember": 1}


async def test_a_tenant_whose_users_live_apart_stays_until_they_are_back(
    admin: httpx.AsyncClient, placed: PlacedGraph, tenant: str
) -> None:
    await fill(admin)
    assert (await move_user(admin, "mara", SECOND))["status"] == "succeeded"
    refused = await admin.post("/v1/admin/placements", json={"graph": SECOND})
    assert refused.status_code == 409
    assert "--user" in refused.json()["detail"]
    assert (await move_user(admin, "mara", "home"))["status"] == "succeeded"
    assert (await move(admin, SECOND))["status"] == "succeeded"
    await save(admin, "mara", "Mara is afraid of spiders")
    assert await count_nodes_of(placed.home, tenant, "mara") == {}
    assert len(await list_ids(admin, "mara")) == 6


async def test_a_webhook_of_the_tenant_gets_the_changes_of_users_in_both_graphs(
    admin: httpx.AsyncClient, services: Services, receiver: Receiver, tenant: str
) -> None:
    webhook = await create(admin, receiver)

    async def deliver() -> None:
        payload = WebhookPayload(webhook_id=webhook["id"], tenant=tenant)
        job = await services.jobs.wait(await services.jobs.enqueue(WEBHOOK_JOB, payload), 60)
        assert job.status is JobStatus.SUCCEEDED, job.error

    await save(admin, "mara", "Mara plays the violin")
    await deliver()
    assert (await move_user(admin, "mara", SECOND))["status"] == "succeeded"
    await save(admin, "mara", "Mara keeps bees")
    await save(admin, "jonas", "Jonas keeps hens")
    for _ in range(2):
        await deliver()
        assert [content for _, content in receiver.contents("mara")] == ["Mara plays the violin", "Mara keeps bees"]
        assert [content for _, content in receiver.contents("jonas")] == ["Jonas keeps hens"]
    [listed] = (await admin.get(WEBHOOKS)).json()["items"]
    assert listed["last_delivered_at"] is not None
    assert (await admin.delete(f"{WEBHOOKS}/{webhook['id']}")).status_code in (200, 204)


async def test_statements_in_quarantine_are_listed_and_released_in_both_graphs(
    admin: httpx.AsyncClient, services: Services, tenant: str
) -> None:
    await save(admin, "jonas", "Jonas keeps bees")
    await save(admin, "mara", "Mara plays the violin")
    assert (await move_user(admin, "mara", SECOND))["status"] == "succeeded"
    with working_for(tenant):
        of_mara = await quarantine(services, Owner(tenant, "mara"), "Mara books at hotel 1")
        await quarantine(services, Owner(tenant, "jonas"), "Jonas books at hotel 2")
    listed = (await admin.get(QUARANTINE, params={"limit": 10})).json()["items"]
    assert [one["user_id"] for one in listed] == ["jonas", "mara"]
    once = {"Idempotency-Key": uuid.uuid4().hex}
    released = await admin.post(f"{QUARANTINE}/{of_mara}/release", headers=once)
    assert (released.status_code, released.json()["action"]) == (200, "insert")
    assert (await admin.post(f"{QUARANTINE}/{of_mara}/release", headers=once)).json() == released.json()
    assert len((await admin.get(QUARANTINE)).json()["items"]) == 1
    assert len(await list_ids(admin, "mara")) == 2
    erased = (await admin.delete("/v1/users/mara")).json()
    assert erased["residue"] == 0
