"""A graph is drained of the tenants that live there."""

from __future__ import annotations

import httpx

from graphmem.app.bootstrap import Services
from graphmem.jobs.job import JobStatus
from graphmem.neo4j.placed_graph import PlacedGraph
from graphmem.runtime.settings import HOME_GRAPH
from graphmem.tenants.tokens import make_local_key
from tests.placement.conftest import DRAINED
from tests.placement.test_moves import count_nodes, list_ids, move, save


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
