"""Measures first requests: of many new users at once, and of users whom nobody asked for before.

    python -m benches.bench_first_requests [--users 50] [--facts 500] [--before FOLDER]

The server has answered some hundred other requests, as one in use has. Then as many new users as `--users` says each
ask for a context and store a message, all at once. Then each of as many other users, who have `--facts` facts and whom
nobody asked for since the server started, searches twice. With `--before`, a checkout of another commit is measured
too, in a database of its own; both are filled by saves. Writes `first_requests.md` into the report folder.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import random
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import httpx

from benches.english_words import load_english_words
from benches.machine import describe_machine
from benches.metrics import quantile
from benches.server_process import ROOT, ServerProcess
from graphmem.runtime import process
from graphmem.runtime.settings import Settings

WARM_USERS = 10
"""Users who are asked for before anything is measured."""

WARM_ROUNDS = 30
"""Searches and contexts of each of them; Neo4j compiles its code meanwhile."""

SAVED_AT_ONCE = 100
"""Memories of one save."""


@dataclass(frozen=True, slots=True)
class FirstRequests:
    """Milliseconds of each request of one version."""

    title: str
    contexts: list[float]
    messages: list[float]
    first_searches: list[float]
    second_searches: list[float]


class FirstRequestsBenchmark:
    """Measures one version in a data folder, which it fills."""

    def __init__(self, title: str, data_dir: Path, root: Path, users: int, facts: int, words: list[str]) -> None:
        self._title = title
        self._data_dir = data_dir
        self._root = root
        self._users = users
        self._facts = facts
        self._words = words
        self._chance = random.Random(7)

    async def run(self) -> FirstRequests:
        """Fill the database, start the server again, use it, and measure."""
        server = ServerProcess(self._data_dir, root=self._root)
        await server.start()
        try:
            async with server.open_client() as client:
                for number in range(WARM_USERS + self._users):
                    await self._fill(client, f"active{number}")
        finally:
            await server.stop()
        await server.start()
        try:
            async with server.open_client() as client:
                for number in range(WARM_USERS):
                    for _ in range(WARM_ROUNDS):
                        await self._search(client, number)
                        await self._ask(client, f"active{number}")
                    await self._tell(client, f"active{number}")
                new = [self._first_turn(client, f"new{number}") for number in range(self._users)]
                turns = await asyncio.gather(*new)
                asked = range(WARM_USERS, WARM_USERS + self._users)
                searches = [(await self._search(client, user), await self._search(client, user)) for user in asked]
        finally:
            await server.stop()
        contexts, messages = zip(*turns, strict=True)
        first, second = zip(*searches, strict=True)
        return FirstRequests(self._title, list(contexts), list(messages), list(first), list(second))

    async def _first_turn(self, client: httpx.AsyncClient, user: str) -> tuple[float, float]:
        return await self._ask(client, user), await self._tell(client, user)

    async def _fill(self, client: httpx.AsyncClient, user: str) -> None:
        for _ in range(self._facts // SAVED_AT_ONCE):
            names = [" ".join(self._chance.sample(self._words, 2)).title() for _ in range(SAVED_AT_ONCE)]
            memories = [{"content": f"{self._text(10)} {name}", "object": {"name": name}} for name in names]
            await _timed(client, f"/v1/users/{user}/memories", {"memories": memories})

    def _text(self, words: int) -> str:
        return " ".join(self._chance.choices(self._words, k=words))

    async def _search(self, client: httpx.AsyncClient, user: int) -> float:
        body = {"query": self._text(5), "limit": 10}
        return await _timed(client, f"/v1/users/active{user}/search", body)

    async def _ask(self, client: httpx.AsyncClient, user: str) -> float:
        body = {"question": self._text(5), "session_id": "first"}
        return await _timed(client, f"/v1/users/{user}/context", body)

    async def _tell(self, client: httpx.AsyncClient, user: str) -> float:
        message = {"role": "user", "content": self._text(12)}
        body = {"session_id": "first", "messages": [message], "extract": False}
        return await _timed(client, f"/v1/users/{user}/messages", body)


async def _timed(client: httpx.AsyncClient, path: str, body: Mapping[str, object]) -> float:
    started = time.perf_counter()
    (await client.post(path, json=body)).raise_for_status()
    return (time.perf_counter() - started) * 1000


async def measure(folder: Path, given: argparse.Namespace) -> list[FirstRequests]:
    """Measure this version, and the one of `--before` first if it is given."""
    versions = [("before", given.before)] if given.before else []
    words = await load_english_words(Settings())
    results = []
    for title, root in [*versions, ("now", ROOT)]:
        benchmark = FirstRequestsBenchmark(title, folder / title, root, given.users, given.facts, words)
        results.append(await benchmark.run())
    return results


def make_report(results: Sequence[FirstRequests], given: argparse.Namespace, machine: str) -> str:
    """Return the medians and the longest durations in Markdown."""
    names = [found.title for found in results]
    lines = [machine, "", f"| ms, p50 / longest | {' | '.join(names)} |", f"|---|{'---:|' * len(names)}"]
    for title, name in (
        (f"context of {given.users} new users at once", "contexts"),
        ("… their first messages", "messages"),
        (f"first search of a user of {given.facts} facts", "first_searches"),
        ("… the second", "second_searches"),
    ):
        figures = [getattr(found, name) for found in results]
        cells = [f"{quantile(values, 0.5):.0f} / {max(values):.0f}" for values in figures]
        lines.append(f"| {title} | {' | '.join(cells)} |")
    return "\n".join([*lines, ""])


def main() -> None:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--users", type=int, default=50, help="new users, and users who are asked for once")
    parser.add_argument("--facts", type=int, default=500, help="facts of each user who is asked for")
    parser.add_argument("--before", type=Path, help="the checkout of another commit")
    parser.add_argument("--out", type=Path, default=Path("report"), help="folder of the report")
    given = parser.parse_args()
    load_before = os.getloadavg()
    with tempfile.TemporaryDirectory() as folder:
        results = process.run(measure(Path(folder), given))
    text = make_report(results, given, describe_machine(load_before))
    given.out.mkdir(parents=True, exist_ok=True)
    (given.out / "first_requests.md").write_text(text, "utf-8")
    print(text)


if __name__ == "__main__":
    main()
