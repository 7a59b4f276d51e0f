"""A second database besides that of the run, and the HTTP API over services that know both."""

from __future__ import annotations

import uuid
from collections.abc import AsyncIterator

import httpx
import pytest
from graphmem_api.app import create_app

from graphmem.app.bootstrap import Services
from graphmem.models.embedder import Embedder
from graphmem.neo4j.driver import Graph
from graphmem.neo4j.placed_graph import PlacedGraph
from graphmem.runtime.settings import GraphAddress, Settings
from graphmem.tenants.access import ApiKeyIn, KeyRole
from tests.api.conftest import serve_app
from tests.conftest import empty

SECOND = "second"
DRAINED = "drained"
"""Another name of the second database: a graph with the tenants of one test only, which may be drained."""


@pytest.fixture(scope="session")
async def second_database(second_neo4j: GraphAddress) -> GraphAddress:
    """The second database, without what other tests have left in it."""
    await empty(second_neo4j, vector_length=384)
    return second_neo4j


@pytest.fixture(scope="session")
async def settings(
    database: Settings, second_database: GraphAddress, tmp_path_factory: pytest.TempPathFactory
) -> Settings:
    """Settings with two graphs, and a job store of their own."""
    return database.model_copy(
        update={
            "placements": {SECOND: second_database, DRAINED: second_database},
            "data_dir": tmp_path_factory.mktemp("placement-data"),
            "webhook_allow_private": True,
        }
    )


@pytest.fixture(scope="package")
async def services(settings: Settings, graph: Graph, embedder: Embedder) -> AsyncIterator[Services]:
    """Services with a worker over both graphs."""
    async with Services.open(settings, embedder=embedder) as services:
        yield services


@pytest.fixture(scope="package")
def placed(services: Services) -> PlacedGraph:
    """The two graphs."""
    assert services.components.placed
    return services.components.placed


@pytest.fixture(scope="package")
async def address(services: Services, settings: Settings) -> AsyncIterator[str]:
    async with serve_app(create_app(services, settings)) as address:
        yield address


@pytest.fixture
def tenant() -> str:
    return f"t{uuid.uuid4().hex[:12]}"


@pytest.fixture
async def admin(address: str, services: Services, tenant: str) -> AsyncIterator[httpx.AsyncClient]:
    """An admin of a new tenant, over HTTP."""
    key = await services.keys.create(tenant, ApiKeyIn(name="admin", role=KeyRole.ADMIN))
    async with httpx.AsyncClient(
        base_url=address, headers={"Authorization": f"Bearer {key.key}"}, timeout=60
    ) as client:
        yield client
