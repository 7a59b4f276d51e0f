"""The only services of a run that deliver, so that each change is delivered once.

The services of the run share a database, and a process has one worker at a time: therefore these tests are a folder.
"""

from __future__ import annotations

import pytest
from pydantic import SecretStr

from graphmem.runtime.settings import Settings
from tests.api.conftest import FIRST_KEY, address, admin, agent, app, caller, services

__all__ = ["address", "admin", "agent", "app", "caller", "services"]


@pytest.fixture(scope="package")
async def settings(database: Settings) -> Settings:
    return database.model_copy(
        update={"api_key": SecretStr(FIRST_KEY), "webhook_delivery": True, "webhook_allow_private": True}
    )
