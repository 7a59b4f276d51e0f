"""An environment in which the code of the documentation runs."""

from __future__ import annotations

import os
import uuid
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from graphmem.app.bootstrap import Services
from graphmem.runtime.settings import Settings
from graphmem.tenants.owners import DEFAULT_TENANT, Owner
from tests.api.conftest import address, app, services, settings
from tests.cli.conftest import cli, cli_with_models, cli_without_settings, user

__all__ = [
    "address",
    "app",
    "cli",
    "cli_with_models",
    "cli_without_settings",
    "services",
    "settings",
    "user",
]


@pytest.fixture
async def local_user(memory: Services) -> AsyncIterator[str]:
    """A user of the default tenant, which programs in a process of their own write to; forgotten afterwards."""
    name = f"docs-{uuid.uuid4().hex[:12]}"
    yield name
    await memory.forgetting.forget(Owner(DEFAULT_TENANT, name))


@pytest.fixture
def local_environment(database: Settings, tmp_path: Path) -> dict[str, str]:
    """The environment of a process that uses the database of the run."""
    assert database.neo4j_uri
    assert database.neo4j_password
    return {
        **os.environ,
        "GRAPHMEM_NEO4J_URI": database.neo4j_uri,
        "GRAPHMEM_NEO4J_USER": database.neo4j_user,
        "GRAPHMEM_NEO4J_PASSWORD": database.neo4j_password.get_secret_value(),
        "GRAPHMEM_DATA_DIR": str(tmp_path / uuid.uuid4().hex),
    }
