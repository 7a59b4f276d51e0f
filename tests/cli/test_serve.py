"""Servers and workers as processes."""

from __future__ import annotations

import asyncio
import re
import signal
from asyncio.subprocess import Process
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import httpx

from tests.cli.conftest import Cli
from tests.faults.proxy import proxy_before


async def _served_address(server: Process) -> str:
    assert server.stderr
    while line := await server.stderr.readline():
        if match := re.search(r"serves (http://\S+)", line.decode()):
            return match[1]
    raise AssertionError("the server ended before it served")


@asynccontextmanager
async def _serving(process: Process) -> AsyncIterator[tuple[str, httpx.AsyncClient]]:
    """The address that a process serves and a client; afterwards the process must exit with 0 on SIGTERM."""
    try:
        async with httpx.AsyncClient(trust_env=False, timeout=60) as client:
            yield await _served_address(process), client
        if process.returncode is None:
            process.send_signal(signal.SIGTERM)
        await process.communicate()
    finally:
        if process.returncode is None:
            process.kill()
    assert process.returncode == 0


async def test_worker_serves_only_health_and_metrics(cli_with_models: Cli) -> None:
    worker = await cli_with_models.start("worker", "--port", "0", GRAPHMEM_ADMIN_KEY="the-first-key-of-this-worker")
    async with _serving(worker) as (ready, client):
        address = ready.removesuffix("/readyz")
        assert (await client.get(ready)).json()["status"] == "ready"
        assert (await client.get(f"{address}/metrics")).status_code == 401
        bearer = {"Authorization": "Bearer the-first-key-of-this-worker"}
        assert "graphmem_" in (await client.get(f"{address}/metrics", headers=bearer)).text
        assert (await client.get(f"{address}/v1/users", headers=bearer)).status_code == 404


async def test_open_without_a_server_says_how_to_start_one(cli: Cli) -> None:
    refused = await cli("open", GRAPHMEM_PORT="1")
    assert (refused.code, refused.out) == (1, "")
    assert "start it with `graphmem serve`" in refused.err


async def test_serve_ends_soon_after_sigterm_while_the_database_does_not_answer(cli_with_models: Cli) -> None:
    key = "the-first-key-of-this-server"
    async with proxy_before(cli_with_models.environment["GRAPHMEM_NEO4J_URI"]) as (proxy, uri):
        server = await cli_with_models.start("serve", "--port", "0", GRAPHMEM_NEO4J_URI=uri, GRAPHMEM_ADMIN_KEY=key)
        async with _serving(server) as (address, client):
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
            async with asyncio.timeout(60):  # one that waits for the database does not end
                await server.wait()
