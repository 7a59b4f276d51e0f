"""The HTTP API served by uvicorn on a free port, over real services."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from functools import cache
from typing import Any, cast

import httpx
import pytest
from fastapi import FastAPI
from graphmem_api.app import create_app
from graphmem_api.server import make_uvicorn_server
from pydantic import SecretStr

from graphmem.app.bootstrap import Services
from graphmem.models.embedder import Embedder
from graphmem.neo4j.driver import Graph
from graphmem.runtime.settings import Settings
from graphmem.tenants.access import ApiKeyIn, KeyRole
from graphmem.tenants.trust import StatedKind
from tests.provider_server import ProviderServer

FIRST_KEY = "first-" + uuid.uuid4().hex
PROVIDER_KEY = "sk-of-the-operator"
BODY_LIMIT = 200_000

Caller = Callable[..., Awaitable[httpx.AsyncClient]]
Speaker = Callable[..., Awaitable[httpx.AsyncClient]]


@cache
def describe_api() -> dict[str, Any]:
    """The OpenAPI document, which needs no services, and takes more than a second to make."""
    return create_app(cast(Services, None), Settings()).openapi()


@asynccontextmanager
async def serve_app(app: FastAPI) -> AsyncIterator[str]:
    """Serve an app and yield its address."""
    server = make_uvicorn_server(app, "127.0.0.1", 0)
    task = asyncio.create_task(server.serve())
    while not server.started:  # noqa: ASYNC110 - a flag is all uvicorn offers
        await asyncio.sleep(0.01)
    port = server.servers[0].sockets[0].getsockname()[1]
    yield f"http://127.0.0.1:{port}"
    server.should_exit = True
    await task


@pytest.fixture(scope="package")
async def settings(database: Settings, provider: ProviderServer) -> Settings:
    return database.model_copy(
        update={
            "admin_key": SecretStr(FIRST_KEY),
            "max_body_bytes": BODY_LIMIT,
            "webhook_allow_private": True,
            "upstream_openai_url": f"{provider.url}/v1",
            "upstream_openai_key": SecretStr(PROVIDER_KEY),
            "upstream_anthropic_url": provider.url,
            "upstream_anthropic_key": SecretStr(PROVIDER_KEY),
        }
    )


@pytest.fixture(scope="package")
async def services(settings: Settings, graph: Graph, embedder: Embedder) -> AsyncIterator[Services]:
    """The services of these tests, with a first key."""
    async with Services.open(settings, embedder=embedder) as services:
        yield services


@pytest.fixture(scope="package")
async def app(services: Services, settings: Settings) -> FastAPI:
    app = create_app(services, settings)
    app.openapi = describe_api  # pyrefly: ignore[method-assign]
    return app


@pytest.fixture(scope="package")
async def address(app: FastAPI) -> AsyncIterator[str]:
    async with serve_app(app) as address:
        yield address


@pytest.fixture
async def anonymous(address: str) -> AsyncIterator[httpx.AsyncClient]:
    """A client without a key."""
    async with httpx.AsyncClient(base_url=address, timeout=60) as client:
        yield client


@pytest.fixture
async def caller(address: str, services: Services, tenant: str) -> AsyncIterator[Caller]:
    """Make a client with a fresh key: `await caller("agent", users=["mara"])`."""
    async with AsyncExitStack() as stack:

        async def make(
            role: str = "agent", users: list[str] | None = None, of: str = tenant, speaks_as: StatedKind | None = None
        ) -> httpx.AsyncClient:
            request = ApiKeyIn(name=role, role=KeyRole(role), users=users, source_kind=speaks_as or "user")
            key = await services.keys.create(of, request)
            return await stack.enter_async_context(
                httpx.AsyncClient(base_url=address, headers={"Authorization": f"Bearer {key.key}"}, timeout=60)
            )

        yield make


@pytest.fixture
async def agent(caller: Caller) -> httpx.AsyncClient:
    """An agent of the whole tenant."""
    return await caller("agent")


@pytest.fixture
async def admin(caller: Caller) -> httpx.AsyncClient:
    """An admin of the tenant."""
    return await caller("admin")


@pytest.fixture
def speaking(caller: Caller) -> Speaker:
    """Make a client whose key speaks as a source: `await speaking("tool", users=["ada"])`."""

    def make(kind: StatedKind, users: list[str] | None = None) -> Awaitable[httpx.AsyncClient]:
        return caller(users=users, speaks_as=kind)

    return make


@pytest.fixture
async def user(speaking: Speaker) -> httpx.AsyncClient:
    """A client whose key speaks as the user."""
    return await speaking("user")


@pytest.fixture
async def tool(speaking: Speaker) -> httpx.AsyncClient:
    """A client whose key speaks as a tool."""
    return await speaking("tool")
