"""What works for a tenant in the first graph works for one in another graph, and leaves nothing in the first."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator
from contextvars import Context
from typing import Any

import httpx
import pytest
from graphmem_api.app import create_app
from pydantic import SecretStr

from graphmem.app.bootstrap import Services
from graphmem.jobs.job import JobStatus
from graphmem.models.embedder import Embedder
from graphmem.neo4j.driver import Graph
from graphmem.neo4j.placed_graph import PlacedGraph, use_graph
from graphmem.neo4j.queries import load_queries
from graphmem.neo4j.schema import RESERVED_LABELS
from graphmem.runtime.settings import HOME_GRAPH, GraphAddress, Settings
from graphmem.tenants.access import ApiKeyIn, KeyRole, make_local_key
from graphmem.tenants.owners import Owner
from tests.api.conftest import serve_app
from tests.placement.conftest import DRAINED, SECOND
from tests.placement.test_moves import count_nodes, export, list_ids, move, place, save

UNMOVED_LABELS = {
    *("ApiKey", "EmbeddingSchema", "Migration", "MigrationLease"),
    *("Placement", "PlacementTable", "WriteBarrier"),
}
"""Labels of what belongs to a graph or to the home graph."""


@pytest.fixture
async def placed_admin(admin: httpx.AsyncClient) -> httpx.AsyncClient:
    """An admin of a tenant in the second graph."""
    assert (await move(admin, SECOND))["status"] == "succeeded"
    return admin


async def test_a_user_of_a_placed_tenant_is_found_exported_consolidated_and_forgotten(
    placed_admin: httpx.AsyncClient, services: Services, placed: PlacedGraph, tenant: str, address: str
) -> None:
    """One tenant shows all of it, since a move takes most of the time."""
    await check_tenants_see_only_their_own(placed_admin, services, placed, tenant, address)
    await check_nightly_stages_find_the_tenants_of_their_graph(services, tenant)
    await check_messages_are_extracted(placed_admin, placed, tenant)
    await check_user_is_exported_consolidated_and_forgotten(placed_admin, placed, services, tenant)


async def check_tenants_see_only_their_own(
    placed_admin: httpx.AsyncClient, services: Services, placed: PlacedGraph, tenant: str, address: str
) -> None:
    """Two tenants in two graphs have a user of the same name."""
    other = f"{tenant}-home"
    key = await services.keys.create(other, ApiKeyIn(name="agent", role=KeyRole.AGENT))
    await save(placed_admin, "mara", "Mara plays the violin")
    async with httpx.AsyncClient(
        base_url=address, headers={"Authorization": f"Bearer {key.key}"}, timeout=60
    ) as at_home:
        await save(at_home, "mara", "Mara keeps bees")
        found = (await at_home.post("/v1/users/mara/search", json={"query": "What does Mara do?"})).json()
    assert [hit["memory"]["content"] for hit in found["results"]] == ["Mara keeps bees"]
    found = (await placed_admin.post("/v1/users/mara/search", json={"query": "What does Mara do?"})).json()
    assert [hit["memory"]["content"] for hit in found["results"]] == ["Mara plays the violin"]
    second = await placed.open_named(SECOND)
    assert await count_nodes(placed.home, tenant) == {}
    assert await count_nodes(second, other) == {}


async def check_messages_are_extracted(placed_admin: httpx.AsyncClient, placed: PlacedGraph, tenant: str) -> None:
    """Messages are extracted, and context answers, in the other graph."""
    turns = {"session_id": "s1", "messages": [{"role": "user", "content": "My sister Lea lives in Porto."}]}
    stored = (await placed_admin.post("/v1/users/mara/messages?wait=true", json=turns)).json()
    assert stored
    context = await placed_admin.post("/v1/users/mara/context", json={"question": "Where does my sister live?"})
    assert context.status_code == 200, context.text
    assert "Porto" in context.json()["preamble"]
    assert await count_nodes(placed.home, tenant) == {}


async def check_user_is_exported_consolidated_and_forgotten(
    placed_admin: httpx.AsyncClient, placed: PlacedGraph, services: Services, tenant: str
) -> None:
    known = await list_ids(placed_admin, "mara")
    for number in range(2):
        await save(placed_admin, "mara", f"Mara has read book number {number}")
    assert len((await export(placed_admin, "mara"))["memories"]) == len(known) + 2
    run = await placed_admin.post("/v1/admin/consolidations?wait=true", json={"user_id": "mara"})
    assert run.status_code in (200, 201, 202), run.text
    job = await services.jobs.wait(run.json()["run_id"], 60)
    assert job.status is JobStatus.SUCCEEDED, job.error
    maintained = await placed_admin.post("/v1/admin/maintenance", json={})
    assert maintained.status_code == 200, maintained.text
    receipt = (await placed_admin.delete("/v1/users/mara")).json()
    assert receipt["residue"] == 0
    second = await placed.open_named(SECOND)
    left = await count_nodes(second, tenant)
    assert "User" not in left
    assert "Entity" not in left


async def check_nightly_stages_find_the_tenants_of_their_graph(services: Services, tenant: str) -> None:
    with use_graph(SECOND):
        there = await services.warm_up._users.list_owners(limit=1000)
    with use_graph("home"):
        here = await services.warm_up._users.list_owners(limit=100_000)
    assert Owner(tenant, "mara") in there
    assert Owner(tenant, "mara") not in here


async def test_work_that_names_no_tenant_is_refused(placed: PlacedGraph) -> None:
    async def read() -> Any:
        return await placed.fetch("users.get_life", group_id="nobody:mara")

    with pytest.raises(RuntimeError):
        await asyncio.create_task(read(), context=Context())


async def test_every_label_of_graphmem_moves_or_stays_on_purpose() -> None:
    queries = load_queries()
    text = queries["moves.list_group"].text + queries["moves.list_of_tenant"].text
    moved = {label for label in RESERVED_LABELS if f":{label} {{" in text or f":{label})" in text}
    assert moved | UNMOVED_LABELS | {"SharedSpace"} == set(RESERVED_LABELS)


_ELEMENTS = re.compile(r"\((\w+):(?:Entity|Episodic)\b|\[(\w+):RELATES_TO\b")
_CLAUSE = r"\b(?:MATCH|WITH|RETURN|CALL|CREATE|MERGE|UNWIND|DELETE|DETACH|FOREACH|SET|REMOVE)\b"
_CHANGES = re.compile(rf"\b(SET|REMOVE)\b(.*?)(?={_CLAUSE}|[}}|]|\Z)", re.DOTALL)
_MARKS_SET_TOGETHER = {
    "pending_store": "pending_job",
    "pending_since": "pending_job",
    "consolidated_at": "consolidated_by",
    "compressed_at": "compressed_by",
}


def test_a_move_sees_every_change_of_a_fact_an_entity_or_a_message() -> None:
    """A query sets the revision of what it changes, or changes only what a move compares besides."""
    queries = load_queries()
    compared = set(re.findall(r"\b[nr]\.(\w+)", queries["moves.list_group"].text))
    unseen = {}
    for name, query in queries.items():
        if name.partition(".")[0] in ("moves", "vectors"):  # re-embedding and moves exclude each other
            continue
        for element in {name for names in _ELEMENTS.findall(query.text) for name in names if name}:
            if f"{element}.revision" in query.text or re.search(rf"DELETE {element}\b", query.text):
                continue
            assigned = rf"\b{element}\.(\w+)\s*="
            named = rf"\b{element}\.(\w+)"
            found = {
                changed
                for clause, text in _CHANGES.findall(query.text)
                for changed in re.findall(assigned if clause == "SET" else named, text)
            }
            changed = {_MARKS_SET_TOGETHER.get(name, name) for name in found}
            if changed - compared:
                unseen[query.name] = changed - compared
    assert unseen == {}


async def test_moves_that_cannot_be_are_refused(admin: httpx.AsyncClient) -> None:
    unknown = await admin.post("/v1/admin/placements", json={"graph": "nowhere"})
    assert unknown.status_code == 422
    assert "GRAPHMEM_PLACEMENTS" in unknown.json()["detail"]
    already = await admin.post("/v1/admin/placements", json={"graph": "home"})
    assert already.status_code == 409
    drained = await admin.post("/v1/admin/placements/home/drain", json={"to": SECOND})
    assert drained.status_code == 403


async def test_a_drained_graph_has_no_tenants(
    admin: httpx.AsyncClient, services: Services, placed: PlacedGraph, tenant: str
) -> None:
    await save(admin, "mara", "Mara plays the violin")
    assert (await move(admin, DRAINED))["status"] == "succeeded"
    caller = make_local_key("test", tenant)
    for job in await services.placements.drain(caller, DRAINED, HOME_GRAPH):
        assert (await services.jobs.wait(job.id, 60)).status is JobStatus.SUCCEEDED
    assert await count_nodes(await placed.open_named(DRAINED), tenant) == {}
    assert len(await list_ids(admin, "mara")) == 1
    listed = await services.placements.describe(caller)
    assert tenant in {found.tenant for found in listed.tenants if found.graph == HOME_GRAPH}
    assert [found.tenant for found in listed.tenants if found.graph == DRAINED] == []


@pytest.fixture
async def with_absent_graph(
    settings: Settings, graph: Graph, embedder: Embedder, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[tuple[Services, str]]:
    """Services where one of the graphs does not answer."""
    absent = GraphAddress(uri="bolt://127.0.0.1:9", password=SecretStr("absent"))
    own = settings.model_copy(update={"placements": {"absent": absent}, "data_dir": tmp_path_factory.mktemp("absent")})
    async with (
        Services.open(own, embedder=embedder, worker=False) as services,
        serve_app(create_app(services, own)) as address,
    ):
        yield services, address


async def test_a_graph_that_is_away_fails_its_own_tenants_only(
    with_absent_graph: tuple[Services, str], tenant: str
) -> None:
    services, address = with_absent_graph
    components = services.components
    assert components.placed
    await components.home.write(
        lambda transaction: transaction.run_text(
            "MERGE (t:PlacementTable {name: 'tenants'}) SET t.version = coalesce(t.version, 0) + 1 "
            "CREATE (:Placement {tenant: $tenant, graph: 'absent', state: 'settled', attempt: 1})",
            {"tenant": tenant},
        )
    )
    keys = [
        await services.keys.create(of, ApiKeyIn(name="admin", role=KeyRole.ADMIN)) for of in (tenant, f"{tenant}-home")
    ]
    placed, at_home = [
        httpx.AsyncClient(base_url=address, headers={"Authorization": f"Bearer {key.key}"}, timeout=60) for key in keys
    ]
    async with placed, at_home:
        failed = await placed.get("/v1/users/mara/memories")
        assert failed.status_code == 503
        assert "'absent'" in failed.json()["detail"]
        await save(at_home, "mara", "Mara keeps bees")
        ready = (await at_home.get("/readyz")).json()
        assert ready["parts"]["graph absent"] == "unavailable"
        listed = (await placed.get("/v1/admin/placements")).json()
        assert [(one["name"], one["status"]) for one in listed["graphs"]] == [("home", "ok"), ("absent", "unavailable")]
        assert await place(placed) == "absent"
