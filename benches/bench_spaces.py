"""Measures searches of a user with spaces compared with those of a user who has the same facts alone.

    python -m benches.bench_spaces [--spaces 5] [--facts 2000] [--questions 400] [--resident 512,256,0]

Fills an embedded Neo4j with a user's own facts and with as many in each of several spaces of that user, and imports the
exports of all of them as another user, who has the same facts in one group. Starts `graphmem serve` with each size of
the memory for active users, 0 for none, and asks both users the same questions in turns, one request at a time. Writes
the durations and their ratio to `spaces.md` and `spaces.json` in the report folder.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import random
import tempfile
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import httpx

from benches.bench_http import wait_until_idle
from benches.bench_scale import load, make_questions, sample_fact_texts
from benches.english_words import load_english_words
from benches.machine import describe_machine
from benches.metrics import quantile
from benches.server_process import ServerProcess, running_neo4j
from benches.synthetic_data import SyntheticData
from graphmem.app.components import open_components
from graphmem.runtime import process
from graphmem.runtime.settings import Settings
from graphmem.tenants.owners import Owner

TENANT = "default"
"""The tenant of the server's first key."""

MEMBER, ALONE = "member", "alone"
"""The user with spaces, and the one who has the same facts alone."""

WARM_UP = 60
"""Questions to each user before the first that is measured."""


@dataclass(frozen=True, slots=True)
class SpacesResult:
    """What one size of the memory for active users gives; durations in milliseconds.

    `alone_source` and `member_source` say where the facts of each user were searched: in memory or in the database.
    """

    resident_mb: int
    questions: int
    alone_p50_ms: float
    alone_p95_ms: float
    member_p50_ms: float
    member_p95_ms: float
    alone_source: str
    member_source: str

    @property
    def ratios(self) -> tuple[float, float]:
        """How much longer the user with spaces waits, at the median and at the 95th percentile."""
        return self.member_p50_ms / self.alone_p50_ms, self.member_p95_ms / self.alone_p95_ms


async def _fill(settings: Settings, given: argparse.Namespace) -> list[str]:
    """Write the facts of the user and of the spaces, and all of them once more as another user; return questions."""
    spaces = [f"space{number}" for number in range(given.spaces)]
    words = await load_english_words(settings)
    server = ServerProcess(settings.data_dir)
    await server.start()
    try:
        async with server.open_client() as client, open_components(settings) as components:
            await _make_spaces(client, spaces)
            data = SyntheticData(7, components.embedder.dimension, words)
            for owner in (Owner(TENANT, MEMBER), *(Owner.of_space(TENANT, space) for space in spaces)):
                started = time.perf_counter()
                await load(components, data, owner, given.facts, components.embedder)
                print(f"{given.facts:,} facts in {time.perf_counter() - started:.0f} s", flush=True)
            await _import_all(client, spaces)
            await components.graph.fetch("schema.await_indexes")
            facts = await sample_fact_texts(components, Owner(TENANT, ALONE))
    finally:
        await server.stop()
    return make_questions(SyntheticData(13, 1, words), facts, given.questions)


async def _make_spaces(client: httpx.AsyncClient, spaces: Sequence[str]) -> None:
    """Make the spaces, of which the user is a member."""
    for space in spaces:
        body = {"title": space.title(), "members": [{"user": MEMBER, "role": "writer"}]}
        (await client.put(f"/v1/spaces/{space}", json=body)).raise_for_status()


async def _import_all(client: httpx.AsyncClient, spaces: Sequence[str]) -> None:
    """Import what the user has, alone and in spaces, as the other user."""
    for space in (None, *spaces):
        params = {"space": space} if space else {}
        document = (await client.get(f"/v1/users/{MEMBER}/export", params=params)).raise_for_status().content
        headers = {"Content-Type": "application/json"}
        imported = await client.post(f"/v1/users/{ALONE}/import", content=document, headers=headers)
        counts = imported.raise_for_status().json()["imported"]
        print(f"imported {counts}", flush=True)


async def _measure(data_dir: Path, resident_mb: int, questions: Sequence[str]) -> SpacesResult:
    """Ask both users the questions in turns."""
    server = ServerProcess(data_dir, settings={"GRAPHMEM_RESIDENT_MB": str(resident_mb)})
    await server.start()
    try:
        durations: dict[str, list[float]] = {ALONE: [], MEMBER: []}
        async with server.open_client() as client:
            await _warm_up(client, ([*questions] * WARM_UP)[:WARM_UP])
            await wait_until_idle(server.pids.values())
            await _ask(client, questions, durations)
            sources = {user: await _find_source(client, user, questions[0]) for user in durations}
    finally:
        await server.stop()
    alone, member = durations[ALONE], durations[MEMBER]
    return SpacesResult(
        resident_mb,
        len(questions),
        quantile(alone, 0.5),
        quantile(alone, 0.95),
        quantile(member, 0.5),
        quantile(member, 0.95),
        sources[ALONE],
        sources[MEMBER],
    )


async def _find_source(client: httpx.AsyncClient, user: str, question: str) -> str:
    """Return where the facts of a user are searched."""
    body = {"query": question, "explain": True}
    answer = (await client.post(f"/v1/users/{user}/search", json=body)).raise_for_status().json()
    source: str = answer["results"][0]["explain"]["source"]
    return source


async def _warm_up(client: httpx.AsyncClient, questions: Sequence[str]) -> None:
    """Ask both users questions, of which the first may take longer than a busy database has time for."""
    for question in questions:
        for user in (ALONE, MEMBER):
            answer = await client.post(f"/v1/users/{user}/search", json={"query": question, "limit": 10})
            if answer.status_code == httpx.codes.SERVICE_UNAVAILABLE:
                print(f"not ready yet: {answer.json()['detail']}", flush=True)
                await asyncio.sleep(float(answer.headers["Retry-After"]))
            else:
                answer.raise_for_status()


async def _ask(client: httpx.AsyncClient, questions: Sequence[str], durations: dict[str, list[float]]) -> None:
    """Ask each user each question; who is first changes at random, since the second finds caches filled."""
    order = random.Random(7)
    for question in questions:
        for user in order.sample([ALONE, MEMBER], k=2):
            started = time.perf_counter()
            answer = await client.post(f"/v1/users/{user}/search", json={"query": question, "limit": 10})
            durations[user].append((time.perf_counter() - started) * 1000)
            assert answer.raise_for_status().json()["results"], question


async def run(folder: Path, given: argparse.Namespace) -> list[SpacesResult]:
    """Fill the database and measure with each size of the memory for active users."""
    async with running_neo4j(folder / "data") as settings:
        questions = await _fill(settings, given)
        results = []
        for size in (int(size) for size in given.resident.split(",")):
            results.append(await _measure(settings.data_dir, size, questions))
            print(asdict(results[-1]), flush=True)
        return results


def make_report(results: Sequence[SpacesResult], given: argparse.Namespace, machine: str, out: Path) -> str:
    """Write the report; return its Markdown."""
    rows = [
        f"| {found.resident_mb} | {found.alone_source} / {found.member_source} | {found.alone_p50_ms:.1f} / "
        f"{found.alone_p95_ms:.1f} | {found.member_p50_ms:.1f} / {found.member_p95_ms:.1f} | "
        f"{found.ratios[0]:.2f} / {found.ratios[1]:.2f} |"
        for found in results
    ]
    total = given.facts * (given.spaces + 1)
    text = "\n".join(
        [
            machine,
            "",
            f"{given.questions} questions over HTTP to each of two users in turns, one request at a time. Both read "
            f"the same {total:,} facts: one has them alone, the other {given.facts:,} of them and as many in each of "
            f"{given.spaces} spaces.",
            "",
            "| memory for active users, MB | searched in: alone / with spaces | alone, p50 / p95, ms | "
            "with spaces, p50 / p95, ms | ratio |",
            "|---:|---|---:|---:|---:|",
            *rows,
            "",
        ]
    )
    out.mkdir(parents=True, exist_ok=True)
    (out / "spaces.md").write_text(text, "utf-8")
    document = {"machine": machine, "results": [asdict(found) for found in results]}
    (out / "spaces.json").write_text(json.dumps(document, indent=2), "utf-8")
    return text


def main() -> None:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--spaces", type=int, default=5, help="spaces of the user")
    parser.add_argument("--facts", type=int, default=2_000, help="facts of the user, and of each space")
    parser.add_argument("--questions", type=int, default=400, help="questions to each user")
    parser.add_argument("--resident", default="512,256,0", help="sizes of the memory for active users in MB")
    parser.add_argument("--out", type=Path, default=Path("report"), help="folder of the report")
    given = parser.parse_args()
    load_before = os.getloadavg()
    with tempfile.TemporaryDirectory() as folder:
        results = process.run(run(Path(folder), given))
    print(make_report(results, given, describe_machine(load_before), given.out))


if __name__ == "__main__":
    main()
