"""What a server does right after its start."""

from __future__ import annotations

import pytest

from graphmem.app import health
from graphmem.app.bootstrap import Services
from graphmem.app.warm_up import SAMPLE_TENANT, USERS
from graphmem.memories.listing import ListFilters
from graphmem.memories.memory import MemoryIn
from graphmem.neo4j.driver import Graph
from graphmem.runtime.errors import Unavailable
from graphmem.tenants.owners import Owner
from graphmem.tenants.users import UserStore


async def test_the_contexts_after_a_start_change_no_memory(services: Services, graph: Graph, owner: Owner) -> None:
    await services.memories.save(owner, [MemoryIn(content="Ada is the user"), MemoryIn(content="Ada lives in Turin")])
    owners = await UserStore(graph).list_owners(limit=USERS)
    before = [await services.memories.page(found, ListFilters()) for found in owners]
    assert await services.warm_up.run() == len(owners) > 0
    await services.retrieval.flush()
    assert [await services.memories.page(found, ListFilters()) for found in owners] == before


async def test_the_sample_user_of_a_new_database_is_erased(services: Services, graph: Graph) -> None:
    await services.warm_up.use_sample()
    assert await UserStore(graph).list_owners(SAMPLE_TENANT) == []
    await services.retrieval.flush()
    left = await graph.read(
        lambda transaction: transaction.run_text(
            "MATCH (n) WHERE n.group_id STARTS WITH $tenant OR n.tenant = $tenant RETURN labels(n) AS labels",
            {"tenant": SAMPLE_TENANT},
        )
    )
    assert left == []


async def test_a_service_is_not_ready_while_it_warms_up(services: Services, monkeypatch: pytest.MonkeyPatch) -> None:
    with services.readiness.warming_up(), pytest.raises(Unavailable, match="warms up"):
        await services.readiness.check()
    assert (await services.readiness.check())["neo4j"] == "ok"
    monkeypatch.setattr(health, "WARM_UP_SECONDS", 0.0)
    with services.readiness.warming_up():
        assert (await services.readiness.check())["neo4j"] == "ok"
