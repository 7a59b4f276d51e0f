"""Sessions of a real MCP client: with a server in the same process, or over HTTP with a key."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import httpx2
import pytest
from graphmem_api.app import create_app
from mcp import Client
from mcp.client.streamable_http import streamable_http_client

from graphmem.bootstrap import GraphMemory
from graphmem.domain.identity import Owner
from graphmem.domain.key import KeyIn, Role
from graphmem.mcp import Connection, make_server, mount
from graphmem.settings import Settings
from tests.api.conftest import served, service, settings

__all__ = ["service", "settings"]

Keys = Callable[..., Awaitable[str]]


@pytest.fixture
async def keys(service: GraphMemory, tenant: str) -> Keys:
    """Make a key: `await keys(users=["mara"])`."""

    async def make(role: str = "agent", users: list[str] | None = None) -> str:
        return (await service.keys.create(tenant, KeyIn(name=role, role=Role(role), users=users))).key

    return make


@asynccontextmanager
async def talking(service: GraphMemory, owner: Owner, *, may_write: bool = True) -> AsyncIterator[Client]:
    """A session with a server in this process."""

    async def opened() -> GraphMemory:
        return service

    connection = Connection(owner, actor="agent-7", may_write=may_write)
    async with Client(make_server(opened, lambda _: connection)) as client:
        yield client


@asynccontextmanager
async def with_tools(service: GraphMemory, settings: Settings) -> AsyncIterator[str]:
    """The HTTP API with the tools under /mcp, and its address."""
    app = create_app(service, settings)
    async with mount(app, service, settings), served(app) as address:
        yield address


@asynccontextmanager
async def connected(address: str, key: str, mode: str = "auto") -> AsyncIterator[Client]:
    """A session over HTTP."""
    async with (
        httpx2.AsyncClient(headers={"Authorization": f"Bearer {key}"}, timeout=60) as http,
        Client(streamable_http_client(address, http_client=http), mode=mode) as client,
    ):
        yield client


async def answer(client: Client, tool: str, **arguments: Any) -> dict[str, Any]:
    """Call a tool and return its structured answer."""
    result = await client.call_tool(tool, arguments)
    assert not result.is_error, result.content
    assert result.structured_content is not None
    return result.structured_content


async def refused(client: Client, tool: str, **arguments: Any) -> str:
    """Call a tool that fails and return what the model reads."""
    result = await client.call_tool(tool, arguments)
    assert result.is_error, result.structured_content
    [block] = result.content
    return str(block.text)  # type: ignore[union-attr]


async def keep_and_find(client: Client) -> None:
    """Save, find, update, look back and end, as a model would."""
    saved = await answer(client, "save_memory", content="Mara is allergic to peanuts")
    found = await answer(client, "search_memory", query="what must she not eat?")
    assert [each["content"] for each in found["memories"]] == ["Mara is allergic to peanuts"]
    memory_id = found["memories"][0]["id"]
    assert memory_id == saved["memory_id"]
    await answer(client, "update_memory", memory_id=memory_id, content="Mara is allergic to all nuts")
    found = await answer(client, "search_memory", query="what must she not eat?")
    assert [each["content"] for each in found["memories"]] == ["Mara is allergic to all nuts"]
    versions = (await answer(client, "memory_history", memory_id=memory_id))["versions"]
    assert [each["content"] for each in versions] == ["Mara is allergic to peanuts", "Mara is allergic to all nuts"]
    await answer(client, "delete_memory", memory_id=memory_id)
    assert (await answer(client, "search_memory", query="what must she not eat?")).get("memories", []) == []
