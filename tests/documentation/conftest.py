"""An environment in which the README's code runs unchanged."""

from __future__ import annotations

import os
import uuid
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from graphmem.app.bootstrap import Services
from graphmem.runtime.settings import Settings
from graphmem.tenants.owners import Owner
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
async def readme_environment(memory: Services, database: Settings, tmp_path: Path) -> AsyncIterator[dict[str, str]]:
    """The environment of a process that uses the database of the run; its user `ada` is forgotten before and after."""
    ada = Owner("default", "ada")
    await memory.forgetting.forget(ada)
    assert database.neo4j_uri
    assert database.neo4j_password
    yield {
        **os.environ,
        "GRAPHMEM_NEO4J_URI": database.neo4j_uri,
        "GRAPHMEM_NEO4J_USER": database.neo4j_user,
        "GRAPHMEM_NEO4J_PASSWORD": database.neo4j_password.get_secret_value(),
        "GRAPHMEM_DATA_DIR": str(tmp_path / uuid.uuid4().hex),
    }
    await memory.forgetting.forget(ada)
