"""The settings of the API's tests; a process runs the jobs of one service at a time, so these tests are a folder.

A server of a model answers what a test tells it to.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest

from graphmem.app.bootstrap import Services
from graphmem.models.embedder import Embedder
from graphmem.runtime.settings import Settings
from tests.api.conftest import settings
from tests.mcp.conftest import serve_tools
from tests.models.scripted_server import ScriptedServer, replies

__all__ = ["settings"]


@pytest.fixture(scope="module")
def model() -> Iterator[ScriptedServer]:
    """A server of a model; each test sets its answers."""
    with ScriptedServer() as server:
        yield server


@pytest.fixture(scope="module")
async def talking(
    settings: Settings, embedder: Embedder, model: ScriptedServer, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[Services]:
    """The services with a model and a job store of their own."""
    changed = model.configure(settings, tmp_path_factory.mktemp("talking"))
    async with Services.open(changed, embedder=embedder) as services:
        yield services


@pytest.fixture(scope="module")
async def talking_address(talking: Services, settings: Settings) -> AsyncIterator[str]:
    """The address of the API, which serves the tools under /mcp too."""
    async with serve_tools(talking, settings) as address:
        yield address


def answer(model: ScriptedServer, *answers: dict[str, Any]) -> None:
    """Let the model give these answers, one after the other."""
    model.requests.clear()
    model.steps = [replies(json.dumps(text)) for text in answers]
