"""The second database of the run, emptied: what these tests do to a schema, they do to all users of a database."""

from __future__ import annotations

import pytest

from graphmem.runtime.settings import GraphAddress, Settings
from tests.conftest import empty


@pytest.fixture(scope="module")
async def own_database(second_neo4j: GraphAddress, tmp_path_factory: pytest.TempPathFactory) -> Settings:
    """An empty database, which no test of another module uses meanwhile, and an empty data folder."""
    await empty(second_neo4j)
    return Settings(
        data_dir=tmp_path_factory.mktemp("data"),
        neo4j_uri=second_neo4j.uri,
        neo4j_password=second_neo4j.password,
        _env_file=None,
    )
