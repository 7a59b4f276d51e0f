"""A graph is drained of the tenants that live there, and of the users who live there apart from their tenants."""

from __future__ import annotations

import httpx
import pytest

from graphmem.app.bootstrap import Services
from graphmem.jobs.job import JobStatus
from graphmem.neo4j.placed_graph import PlacedGraph
from graphmem.runtime.errors import Conflict
from graphmem.runtime.settings import HOME_GRAPH
from graphmem.tenants.tokens import make_local_key
from tests.placement.conftest import SECOND
from tests.placement.test_moves import count_nodes, list_ids, save
from tests.placement.test_placed_users import count_nodes_of, move_user


async def test_a_drained_graph_has_neither_tenants_nor_users_who_live_apart(
    admin: httpx.AsyncClient, services: Services, placed: PlacedGraph, tenant: str
) -> None:
    await save(admin, "mara", "Mara plays the violin")
    await save(admin, "jonas", "Jonas keeps bees")
    assert (await move_user(admin, "mara", SECOND))["status"] == "succeeded"
    whole = f"{tenant}-whole"
    moved = await services.jobs.wait((await services.placements.move(whole, SECOND)).id, 60)
    assert moved.status is JobStatus.SUCCEEDED, moved.error
    caller = make_local_key("test", tenant)
    with pytest.raises(Conflict, match=tenant):
        await services.placements.drain(caller, HOME_GRAPH, SECOND)
    for job in await services.placements.drain(caller, SECOND, HOME_GRAPH):
        assert (await services.jobs.wait(job.id, 60)).status is JobStatus.SUCCEEDED
    second = await placed.open_named(SECOND)
    assert await count_nodes(second, tenant) == {}
    assert await count_nodes_of(placed.home, tenant, "mara") != {}
    assert len(await list_ids(admin, "mara")) == 1
    listed = await services.placements.describe(caller)
    assert listed.users == []
    assert {found.graph for found in listed.tenants} == {HOME_GRAPH}
