"""Two servers hold one user in memory: no read of either misses what the other has acknowledged."""

from __future__ import annotations

import asyncio
import uuid
from contextlib import AsyncExitStack
from random import Random

import httpx
import pytest

from tests.cli.conftest import Cli, running

KEY = "the-first-key-of-both-servers"
AGENTS, WRITES = 3, 4


async def _find(client: httpx.AsyncClient, user: str, word: str, sources: set[str]) -> set[str]:
    """Return the ids of the memories that contain a word, and note where the candidates came from."""
    query = {"query": word, "limit": 20, "explain": True, "semantic": False, "graph": False, "reinforce": False}
    answer = (await client.post(f"/v1/users/{user}/search", json=query)).raise_for_status().json()
    sources |= {hit["explain"]["source"] for hit in answer["results"]}
    return {hit["memory"]["id"] for hit in answer["results"] if word in hit["memory"]["content"]}


async def _agent(clients: list[httpx.AsyncClient], user: str, random: Random, sources: set[str]) -> None:
    """Write by one server and read by one of both, again and again."""
    for _ in range(WRITES):
        word = f"quokka{random.getrandbits(60):x}"
        memories = {"memories": [{"content": f"Mara saw {word} in Lund", "subject": {"name": "Mara"}}]}
        saved = (await random.choice(clients).post(f"/v1/users/{user}/memories", json=memories)).raise_for_status()
        memory_id = saved.json()["results"][0]["memory"]["id"]
        assert await _find(random.choice(clients), user, word, sources) == {memory_id}
        after = f"wallaby{random.getrandbits(60):x}"
        path = f"/v1/users/{user}/memories/{memory_id}"
        (await random.choice(clients).patch(path, json={"content": f"Mara saw {after}"})).raise_for_status()
        assert await _find(random.choice(clients), user, word, sources) == set()
        assert await _find(random.choice(clients), user, after, sources) == {memory_id}
        if random.random() < 0.5:
            (await random.choice(clients).delete(path, params={"hard": random.random() < 0.3})).raise_for_status()
            assert await _find(random.choice(clients), user, after, sources) == set()


@pytest.mark.timeout(240)
async def test_no_read_of_one_server_misses_what_the_other_has_acknowledged(cli_with_models: Cli) -> None:
    user, sources = f"shared-{uuid.uuid4().hex[:12]}", set[str]()
    async with AsyncExitStack() as stack:
        serve = ("serve", "--port", "0", "--no-worker")
        servers = [
            running(cli_with_models, *serve, GRAPHMEM_ADMIN_KEY=KEY, GRAPHMEM_DATA_DIR=f"data-{number}")
            for number in range(2)
        ]
        addresses = [address for _, address in await asyncio.gather(*map(stack.enter_async_context, servers))]
        clients = [
            await stack.enter_async_context(
                httpx.AsyncClient(
                    base_url=address,
                    headers={"Authorization": f"Bearer {KEY}"},
                    trust_env=False,
                    timeout=60,
                )
            )
            for address in addresses
        ]
        await asyncio.gather(*(_agent(clients, user, Random(seed), sources) for seed in range(AGENTS)))
        forgotten = await clients[0].delete(f"/v1/users/{user}")
        assert forgotten.is_success
        assert await _find(clients[1], user, "Lund", set()) == set()
    assert "memory" in sources
