"""What a server does right after its start."""

from __future__ import annotations

import uuid

import pytest

from graphmem.app import health
from graphmem.app.bootstrap import Services
from graphmem.app.health import SAMPLE_TENANT
from graphmem.memories.filters import ListFilters
from graphmem.memories.memory import MemoryIn
from graphmem.neo4j.driver import Graph
from graphmem.runtime.errors import Unavailable
from graphmem.tenants.owners import Owner


async def test_a_context_after_a_start_changes_no_memory(services: Services, owner: Owner) -> None:
    await services.memories.save(owner, [MemoryIn(content="Ada is the user"), MemoryIn(content="Ada lives in Turin")])
    before = await services.memories.page(owner, ListFilters())
    assert await services.warm_up.run() > 0
    await services.warm_up.read(owner)
    await services.retrieval.flush()
    assert await services.memories.page(owner, ListFilters()) == before


async def test_the_sample_user_of_a_start_is_erased(services: Services, graph: Graph) -> None:
    owner = Owner(SAMPLE_TENANT, str(uuid.uuid4()))
    await services.warm_up.use_sample(owner)
    await services.retrieval.flush()
    left = await graph.read(
        lambda transaction: transaction.run_text(
            "MATCH (n) WHERE n.group_id = $group OR (n.tenant = $tenant AND n.user_id = $user) "
            "RETURN labels(n) AS labels",
            {"group": owner.group_id, "tenant": owner.tenant, "user": owner.user_id},
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
