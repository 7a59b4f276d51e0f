"""Measures searches of many users of whom some are active, by how much memory the API may hold them in.

    python -m benches.bench_active [--users 1000] [--facts 100] [--agents 16] [--seconds 20]
        [--resident 0,64,128,256,512]

Fills an embedded Neo4j with users of synthetic facts, starts `graphmem serve` anew for each size of the memory, and has
agents send one search after another; whom they ask for is Zipf-distributed over the users, so that few are asked for
often. Writes throughput, durations, CPU of both processes and the share of searches that were answered in memory to
`active.md`, `active.json` and `active.png` in the report folder.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import random
import re
import tempfile
import time
from collections.abc import Sequence
from contextlib import AsyncExitStack
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import psutil

from benches.bench_http import wait_until_idle
from benches.bench_scale import load
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

ZIPF = 1.0
"""Exponent of the distribution of the users who are asked for."""

_READS = re.compile(r'graphmem_cache_reads_total\{cache="resident",result="(hit|miss)"\} (\S+)')


@dataclass(frozen=True, slots=True)
class ActiveResult:
    """What one size of the memory gives; durations and CPU in milliseconds a search."""

    resident_mb: int
    searches: int
    per_second: float
    p50_ms: float
    p95_ms: float
    api_cpu_ms: float
    neo4j_cpu_ms: float
    share_in_memory: float
    api_mb: float


class ActiveServer(ServerProcess):
    """A server that holds active users in a number of megabytes."""

    def __init__(self, data_dir: Path, resident_mb: int) -> None:
        super().__init__(data_dir)
        self._resident_mb = resident_mb

    @property
    def environment(self) -> dict[str, str]:
        """The environment of the process."""
        return {**super().environment, "GRAPHMEM_RESIDENT_MB": str(self._resident_mb)}


class Agents:
    """Agents who search in a closed loop."""

    def __init__(self, clients: Sequence[httpx.AsyncClient], users: int, data: SyntheticData) -> None:
        self._clients = clients
        weights = 1.0 / np.arange(1, users + 1) ** ZIPF
        self._odds = (weights / weights.sum()).tolist()
        self._users = range(users)
        self._data = data

    async def run(self, seconds: float) -> list[float]:
        """Send searches for a time; return how long each took with the waits for capacity, in milliseconds."""
        end = time.perf_counter() + seconds
        found = await asyncio.gather(*(self._search(client, end) for client in self._clients))
        return [duration for durations in found for duration in durations]

    async def _search(self, client: httpx.AsyncClient, end: float) -> list[float]:
        durations = []
        while (started := time.perf_counter()) < end:
            (number,) = random.choices(self._users, self._odds)
            body = {"query": " ".join(self._data.sentence(5)), "limit": 10}
            await _post_patiently(client, f"/v1/users/active{number}/search", body)
            durations.append((time.perf_counter() - started) * 1000)
        return durations


async def _post_patiently(client: httpx.AsyncClient, path: str, body: dict[str, Any]) -> None:
    """Send a request, again as often as the server has no capacity for it: one just started plans its queries."""
    answer = await client.post(path, json=body)
    if answer.status_code == httpx.codes.SERVICE_UNAVAILABLE:
        await asyncio.sleep(float(answer.headers["Retry-After"]))
        await _post_patiently(client, path, body)
    else:
        answer.raise_for_status()


async def _fill(settings: Settings, users: int, facts: int) -> SyntheticData:
    """Write the users, each with as many facts, into the running database."""
    async with open_components(settings) as components:
        data = SyntheticData(7, components.embedder.dimension)
        started = time.perf_counter()
        for number in range(users):
            await load(components, data, Owner(TENANT, f"active{number}"), facts)
            if number % 100 == 99:
                print(f"{(number + 1) * facts:,} facts after {time.perf_counter() - started:.0f} s", flush=True)
        await components.graph.fetch("schema.await_indexes")
    return data


async def _measure(server: ActiveServer, agents: int, users: int, seconds: float, data: SyntheticData) -> list[float]:
    """Return the durations of the searches of a run, after one of the same length that is not measured."""
    async with AsyncExitStack() as stack:
        clients = [await stack.enter_async_context(server.open_client()) for _ in range(agents)]
        return await Agents(clients, users, data).run(seconds)


async def _reads(server: ActiveServer) -> dict[str, float]:
    """Return how many searches were answered in memory, and how many were not."""
    async with server.open_client() as client:
        text = (await client.get("/metrics")).raise_for_status().text
    return {result: float(count) for result, count in _READS.findall(text)}


def cpu_seconds(pids: dict[str, int]) -> dict[str, float]:
    """Return the seconds of CPU that processes have used, by name."""
    times = {name: psutil.Process(pid).cpu_times() for name, pid in pids.items()}
    return {name: found.user + found.system for name, found in times.items()}


async def _run_size(data_dir: Path, resident_mb: int, given: argparse.Namespace, data: SyntheticData) -> ActiveResult:
    server = ActiveServer(data_dir, resident_mb)
    await server.start()
    try:
        await _measure(server, given.agents, given.users, given.seconds, data)
        await wait_until_idle(server.pids.values())
        before, reads_before, started = cpu_seconds(server.pids), await _reads(server), time.perf_counter()
        durations = await _measure(server, given.agents, given.users, given.seconds, data)
        elapsed, after, reads = time.perf_counter() - started, cpu_seconds(server.pids), await _reads(server)
        hits, misses = (reads.get(name, 0) - reads_before.get(name, 0) for name in ("hit", "miss"))
        return ActiveResult(
            resident_mb=resident_mb,
            searches=len(durations),
            per_second=len(durations) / elapsed,
            p50_ms=quantile(durations, 0.5),
            p95_ms=quantile(durations, 0.95),
            api_cpu_ms=(after["API"] - before["API"]) * 1000 / len(durations),
            neo4j_cpu_ms=(after["Neo4j"] - before["Neo4j"]) * 1000 / len(durations),
            share_in_memory=hits / (hits + misses) if hits + misses else 0.0,
            api_mb=server.memory_mb()["API"],
        )
    finally:
        await server.stop()


async def run(folder: Path, given: argparse.Namespace) -> list[ActiveResult]:
    """Fill the database and measure each size of the memory."""
    async with running_neo4j(folder / "data") as settings:
        data = await _fill(settings, given.users, given.facts)
        results = []
        for size in (int(size) for size in given.resident.split(",")):
            results.append(await _run_size(settings.data_dir, size, given, data))
            print(asdict(results[-1]), flush=True)
        return results


def make_report(results: Sequence[ActiveResult], given: argparse.Namespace, machine: str, out: Path) -> str:
    """Write the report; return its Markdown."""
    rows = [
        f"| {found.resident_mb} | {found.per_second:.0f} | {found.p50_ms:.0f} / {found.p95_ms:.0f} | "
        f"{found.api_cpu_ms:.1f} + {found.neo4j_cpu_ms:.1f} | {found.share_in_memory:.0%} | {found.api_mb:.0f} |"
        for found in results
    ]
    text = "\n".join(
        [
            machine,
            "",
            f"{given.agents} agents search in a closed loop for {given.seconds:g} s on the cores of the server, after "
            f"as long a warm-up; {given.users:,} users of {given.facts} synthetic facts, asked for by Zipf's law.",
            "",
            "| memory for users, MB | searches a second | p50 / p95, ms | CPU, API + Neo4j, ms | in memory | API, MB |",
            "|---:|---:|---:|---:|---:|---:|",
            *rows,
            "",
        ]
    )
    out.mkdir(parents=True, exist_ok=True)
    (out / "active.md").write_text(text, "utf-8")
    document = {"machine": machine, "results": [asdict(found) for found in results]}
    (out / "active.json").write_text(json.dumps(document, indent=2), "utf-8")
    _plot(results, out / "active.png")
    return text


def _plot(results: Sequence[ActiveResult], file: Path) -> None:
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot as plt

    figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.2))
    sizes = [found.resident_mb for found in results]
    left.plot(sizes, [found.per_second for found in results], marker="o")
    left.set(xlabel="memory for users, MB", ylabel="searches a second", ylim=(0, None))
    right.plot(sizes, [found.p50_ms for found in results], marker="o", label="p50")
    right.plot(sizes, [found.p95_ms for found in results], marker="o", label="p95")
    right.set(xlabel="memory for users, MB", ylabel="ms", ylim=(0, None))
    right.legend()
    figure.tight_layout()
    figure.savefig(file, dpi=120)


def main() -> None:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--users", type=int, default=1_000, help="users in the graph")
    parser.add_argument("--facts", type=int, default=100, help="facts of each user")
    parser.add_argument("--agents", type=int, default=16, help="agents")
    parser.add_argument("--seconds", type=float, default=20, help="seconds of each measurement, and of its warm-up")
    parser.add_argument("--resident", default="0,64,128,256,512", help="sizes of the memory in MB")
    parser.add_argument("--out", type=Path, default=Path("report"), help="folder of the report")
    given = parser.parse_args()
    load_before = os.getloadavg()
    with tempfile.TemporaryDirectory() as folder:
        results = process.run(run(Path(folder), given))
    print(make_report(results, given, describe_machine(load_before), given.out))


if __name__ == "__main__":
    main()
