"""The API on a free port, and a client of it for a user of its own."""

from __future__ import annotations

import uuid
from collections.abc import AsyncIterator, Iterator

import pytest

from graphmem.app.bootstrap import Services
from graphmem.client import AsyncClient, Client
from graphmem.tenants.access import ApiKeyIn, KeyRole
from tests.api.conftest import address, app, services, settings

__all__ = ["address", "app", "services", "settings"]


@pytest.fixture
async def key(services: Services) -> str:
    """A key of an agent in a tenant of its own."""
    created = await services.keys.create(f"t-{uuid.uuid4().hex[:12]}", ApiKeyIn(name="agent", role=KeyRole.AGENT))
    return created.key


@pytest.fixture
async def client(address: str, key: str) -> AsyncIterator[AsyncClient]:
    """An asynchronous client with that key."""
    async with AsyncClient(key, address) as client:
        yield client


@pytest.fixture
def blocking(address: str, key: str) -> Iterator[Client]:
    """A blocking client with that key."""
    with Client(key, address) as client:
        yield client


@pytest.fixture
async def lund(client: AsyncClient) -> None:
    """Mara lives in Lund."""
    await client.add("mara", {"content": "Mara lives in Lund."})


async def list_turns(client: AsyncClient, user: str = "mara") -> list[list[tuple[str, str]]]:
    """Return what was said in each session, the oldest session first."""
    sessions = (await client.sessions(user)).items
    pages = [await client.session_messages(user, session.session_id) for session in reversed(sessions)]
    return [[(message.role.value, message.content) for message in page.items] for page in pages]
