"""How much a cluster does with one, two and three processes of a kind."""

from __future__ import annotations

import asyncio
import time
from itertools import count

from torture.cluster import APIS, WORKERS, Cluster
from torture.figures import Figure
from torture.findings import Findings
from torture.persistent_client import PersistentClient
from torture.stories import Teller, new_word

PART = "cluster"

MESSAGES = 40
"""Messages that workers extract, each of a user of its own."""

AGENTS = 16
"""Agents that search at the same time."""

SEARCH_SECONDS = 8.0
"""Seconds for which they search."""

WARMING_SECONDS = 10.0
"""Seconds for which nothing is measured after processes were started."""

SEARCHED_USERS = 10
"""Users whose memories they search."""

WARMING_SEARCHES = 2 * APIS * SEARCHED_USERS
"""Searches before anything is measured, so that every API has read every user."""


async def measure_throughput(cluster: Cluster, findings: Findings) -> list[Figure]:
    """Return messages extracted a second by the number of workers, and searches a second by the number of APIs.

    It begins with all processes and stops one after the other, and starts them again at the end.
    """
    client = PersistentClient(cluster.address, cluster.key, findings)
    figures = []

    def report(name: str, rate: float) -> None:
        figures.append(Figure(PART, name, f"{rate:.1f}"))
        print(f"{time.strftime('%H:%M:%S')} {name}: {rate:.1f}", flush=True)

    try:
        await _extract(Teller(client))  # the first plans of queries, and the first texts that are embedded
        await _search(client, 0.0, least=WARMING_SEARCHES)
        for apis in range(APIS, 0, -1):
            await cluster.scale(apis, WORKERS)
            rate = await _search(client, SEARCH_SECONDS)
            report(f"searches a second of {AGENTS} agents, {apis} of {APIS} APIs", rate)
        await _start_again(cluster)
        for workers in range(WORKERS, 0, -1):
            await cluster.scale(APIS, workers)
            report(f"messages extracted a second, {workers} of {WORKERS} workers", await _extract(Teller(client)))
        await _start_again(cluster)
    finally:
        await client.close()
    return sorted(figures, key=lambda figure: figure.name)


async def _start_again(cluster: Cluster) -> None:
    """Start what was stopped, and wait until it has warmed up, which takes processors beyond its readiness."""
    await cluster.scale(APIS, WORKERS)
    await asyncio.sleep(WARMING_SECONDS)


async def _extract(teller: Teller) -> float:
    started = time.monotonic()
    accepted = await asyncio.gather(*(_send_note(teller, f"reader-{number}") for number in range(MESSAGES)))
    for job_id in accepted:  # one after the other, so that asking takes little of the processors
        await teller.wait_until_final(f"/v1/jobs/{job_id}")
    return MESSAGES / (time.monotonic() - started)


async def _send_note(teller: Teller, user: str) -> str:
    word = new_word()
    body = {"session_id": word, "messages": [{"role": "user", "content": f"I keep {word}"}]}
    accepted = await teller.write("messages", "POST", f"/v1/users/{user}/messages", body)
    return str(accepted["job_id"])


async def _search(client: PersistentClient, seconds: float, least: int = 0) -> float:
    started, numbers = time.monotonic(), count()

    async def agent() -> None:
        while (number := next(numbers)) < least or time.monotonic() - started < seconds:
            user = f"reader-{number % SEARCHED_USERS}"
            await client.send("POST", f"/v1/users/{user}/search", {"query": "What does the user keep?"})

    await asyncio.gather(*(agent() for _ in range(AGENTS)))
    return (next(numbers) - AGENTS) / (time.monotonic() - started)  # each agent has taken a number without a search
