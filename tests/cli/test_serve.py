"""Processes that stay."""

from __future__ import annotations

import re
import signal
from asyncio.subprocess import Process

import httpx

from tests.cli.conftest import Cli


async def _address(server: Process) -> str:
    assert server.stderr
    while line := await server.stderr.readline():
        if told := re.search(r"serves (http://\S+)", line.decode()):
            return told[1]
    raise AssertionError("the server ended without serving")


async def test_a_worker_tells_of_its_health_and_nothing_else(quick: Cli) -> None:
    worker = await quick.start("worker", "--port", "0", GRAPHMEM_API_KEY="the-first-key-of-this-worker")
    try:
        address = (await _address(worker)).removesuffix("/readyz")
        async with httpx.AsyncClient(trust_env=False, timeout=60) as client:
            assert (await client.get(f"{address}/readyz")).json()["status"] == "ready"
            assert (await client.get(f"{address}/metrics")).status_code == 401
            bearer = {"Authorization": "Bearer the-first-key-of-this-worker"}
            assert "graphmem_" in (await client.get(f"{address}/metrics", headers=bearer)).text
            assert (await client.get(f"{address}/v1/users", headers=bearer)).status_code == 404
        worker.send_signal(signal.SIGTERM)
        await worker.communicate()
    finally:
        if worker.returncode is None:
            worker.kill()
    assert worker.returncode == 0


async def test_the_api_is_served_until_the_process_is_asked_to_end(quick: Cli) -> None:
    server = await quick.start("serve", "--port", "0")
    try:
        address = await _address(server)
        async with httpx.AsyncClient(trust_env=False, timeout=60) as client:
            assert (await client.get(f"{address}/healthz")).json() == {"status": "ok"}
        server.send_signal(signal.SIGTERM)
        await server.communicate()
    finally:
        if server.returncode is None:
            server.kill()
    assert server.returncode == 0
