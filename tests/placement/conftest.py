"""A second database besides that of the run, and the HTTP API over services that know both."""

from __future__ import annotations

import os
import uuid
from collections.abc import AsyncIterator
from pathlib import Path

import httpx
import pytest
from graphmem_api.app import create_app
from pydantic import SecretStr

from graphmem.app.bootstrap import Services
from graphmem.models.embedder import Embedder
from graphmem.neo4j.driver import Graph
from graphmem.neo4j.embedded.server import EmbeddedNeo4j
from graphmem.neo4j.placed_graph import PlacedGraph
from graphmem.runtime.settings import GraphAddress, Settings
from graphmem.tenants.access import ApiKeyIn, KeyRole
from tests.api.conftest import serve_app

SECOND = "second"
DRAINED = "drained"
"""Another name of the second database: a graph with the tenants of one test only, which may be drained."""


@pytest.fixture(scope="session")
async def second_database(neo4j_folder: Path) -> AsyncIterator[GraphAddress]:
    """Another Neo4j, with another folder and password: one for all processes of a run."""
    folder = Path(os.environ.get("GRAPHMEM_TEST_SECOND_NEO4J") or neo4j_folder.with_name("second-neo4j"))
    settings = Settings()
    async with await EmbeddedNeo4j.start_or_join(folder, settings.cache_dir, mirror=settings.jar_mirror) as server:
        yield GraphAddress(uri=server.info.uri, user=server.info.user, password=SecretStr(server.info.password))


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
