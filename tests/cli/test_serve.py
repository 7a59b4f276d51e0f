"""Servers and workers as processes."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import httpx

from tests.cli.conftest import Cli, running
from tests.faults.proxy import proxy_before
from tests.forks import Fork


@asynccontextmanager
async def _serving(cli: Cli, *command: str, **environment: str) -> AsyncIterator[tuple[Fork, str, httpx.AsyncClient]]:
    """A process, the address that it serves, and a client; afterwards the process must exit with 0 on SIGTERM."""
    async with running(cli, *command, "--port", "0", **environment) as (process, address):
        async with httpx.AsyncClient(trust_env=False, timeout=60) as client:
            yield process, address, client
        process.send_signal(signal.SIGTERM)
        assert await asyncio.to_thread(process.wait, 60) == 0


async def test_worker_serves_only_health_and_metrics(cli_with_models: Cli) -> None:
    key = "the-first-key-of-this-worker"
    async with _serving(cli_with_models, "worker", GRAPHMEM_ADMIN_KEY=key) as (_, ready, client):
        address = ready.removesuffix("/readyz")
        assert (await client.get(ready)).json()["status"] == "ready"
        assert (await client.get(f"{address}/metrics")).status_code == 401
        bearer = {"Authorization": f"Bearer {key}"}
        assert "graphmem_" in (await client.get(f"{address}/metrics", headers=bearer)).text
        assert (await client.get(f"{address}/v1/users", headers=bearer)).status_code == 404


async def test_open_without_a_server_says_how_to_start_one(cli: Cli) -> None:
    refused = await cli("open", GRAPHMEM_PORT="1")
    assert (refused.code, refused.out) == (1, "")
    assert "start it with `graphmem serve`" in refused.err


async def test_serve_ends_soon_after_sigterm_while_the_database_does_not_answer(cli_with_models: Cli) -> None:
    key = "the-first-key-of-this-server"
    async with proxy_before(cli_with_models.environment["GRAPHMEM_NEO4J_URI"]) as (proxy, uri):
        serving = _serving(cli_with_models, "serve", GRAPHMEM_NEO4J_URI=uri, GRAPHMEM_ADMIN_KEY=key)
        async with serving as (server, address, client):
            assert (await client.get(f"{address}/healthz")).json() == {"status": "ok"}
            opened = await cli_with_models("open", "--json", GRAPHMEM_PORT=address.rpartition(":")[2])
            assert opened.json == {"url": f"{address}/ui"}
            assert (await client.get(f"{address}/", follow_redirects=True)).url.path == "/ui"
            memories, bearer = f"{address}/v1/users/mara/memories", {"Authorization": f"Bearer {key}"}
            assert (await client.get(memories, headers=bearer)).status_code == 200
            proxy.freeze()
            waiting = asyncio.create_task(client.get(memories, headers=bearer))
            await asyncio.sleep(0.2)
            server.send_signal(signal.SIGTERM)
            assert (await waiting).status_code == 503
            await asyncio.to_thread(server.wait, 60)  # one that waits for the database does not end
