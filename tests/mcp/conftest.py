"""Sessions of a real MCP client, with a server in the same process or over HTTP with a key."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

import httpx2
import pytest
from graphmem_api.app import create_app
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from mcp_types import TextContent

from graphmem.app.bootstrap import Services
from graphmem.graph_memory import GraphMemory
from graphmem.mcp import mount, open_tool_client
from graphmem.runtime.settings import Settings
from graphmem.tenants.access import ApiKeyIn, KeyRole, make_local_agent_key
from graphmem.tenants.owners import Owner
from tests.api.conftest import serve_app, services, settings

__all__ = ["services", "settings"]

Keys = Callable[..., Awaitable[str]]


@pytest.fixture
async def keys(services: Services, tenant: str) -> Keys:
    """Make a key: `await keys(users=["mara"])`."""

    async def make(role: str = "agent", users: list[str] | None = None) -> str:
        return (await services.keys.create(tenant, ApiKeyIn(name=role, role=KeyRole(role), users=users))).key

    return make


@asynccontextmanager
async def in_process_client(services: Services, owner: Owner, *, can_write: bool = True) -> AsyncIterator[Client]:
    """A session with a server in this process."""

    key = make_local_agent_key("agent-7", owner)
    if not can_write:
        key = key.model_copy(update={"role": KeyRole.ANALYST})
    memory = GraphMemory.of_key(services, key)
    async with open_tool_client(memory, owner.user_id, can_ask=services.answers.has_model) as client:
        yield client


@asynccontextmanager
async def serve_tools(services: Services, settings: Settings) -> AsyncIterator[str]:
    """The HTTP API with the tools under /mcp, and its address."""
    app = create_app(services, settings)
    async with mount(app, services, settings, partial(GraphMemory.of_key, services)), serve_app(app) as address:
        yield address


@asynccontextmanager
async def http_client(address: str, key: str, mode: str = "auto") -> AsyncIterator[Client]:
    """A session over HTTP."""
    async with (
        httpx2.AsyncClient(headers={"Authorization": f"Bearer {key}"}, timeout=60) as http,
        Client(streamable_http_client(address, http_client=http), mode=mode) as client,
    ):
        yield client


async def call_tool(client: Client, tool: str, **arguments: Any) -> dict[str, Any]:
    """Call a tool and return its result, which is compact JSON and nothing else."""
    result = await client.call_tool(tool, arguments)
    assert not result.is_error, result.content
    assert result.structured_content is None
    [block] = result.content
    assert isinstance(block, TextContent)
    answer: dict[str, Any] = json.loads(block.text)
    assert block.text == json.dumps(answer, ensure_ascii=False, separators=(",", ":"))
    return answer


async def call_tool_error(client: Client, tool: str, **arguments: Any) -> str:
    """Call a tool that fails and return the text that the model reads."""
    result = await client.call_tool(tool, arguments)
    assert result.is_error, result.structured_content
    [block] = result.content
    assert isinstance(block, TextContent)
    return block.text


async def run_memory_lifecycle(client: Client) -> None:
    """Save, search, update, read the history and delete, as a model would."""
    saved = await call_tool(client, "save_memory", content="Mara is allergic to peanuts")
    found = await call_tool(client, "search_memory", query="what must she not eat?")
    assert [memory["content"] for memory in found["memories"]] == ["Mara is allergic to peanuts"]
    memory_id = found["memories"][0]["id"]
    assert memory_id == saved["memory_id"]
    await call_tool(client, "update_memory", memory_id=memory_id, content="Mara is allergic to all nuts")
    found = await call_tool(client, "search_memory", query="what must she not eat?")
    assert [memory["content"] for memory in found["memories"]] == ["Mara is allergic to all nuts"]
    versions = (await call_tool(client, "memory_history", memory_id=memory_id))["versions"]
    assert [version["content"] for version in versions] == [
        "Mara is allergic to peanuts",
        "Mara is allergic to all nuts",
    ]
    await call_tool(client, "delete_memory", memory_id=memory_id)
    assert (await call_tool(client, "search_memory", query="what must she not eat?")).get("memories", []) == []
