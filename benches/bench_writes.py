"""Measures writes over HTTP, in turns with those of another checkout.

    python -m benches.bench_writes [--before FOLDER] [--rounds 15] [--out report]

Starts `graphmem serve` with an embedded Neo4j in a temporary folder for this checkout, and for the one in `--before`.
Each round sends one request of each kind to one after the other, so that what else the machine does falls on both. The
report `writes.md` has the medians of wall time, of CPU of the API and of Neo4j, and what follows from them: facts or
messages a second on two cores that do nothing else.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import statistics
import tempfile
import time
import uuid
from collections import defaultdict
from collections.abc import Iterator
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any

import httpx
import psutil

from benches.english_words import load_english_words
from benches.http_verbs import LoadPlan, PlannedRequest, Verb, make_verbs
from benches.machine import describe_machine
from benches.server_process import ROOT, ServerProcess
from graphmem.runtime import process
from graphmem.runtime.settings import Settings

WARM_UP_ROUNDS = 8
"""Rounds that are not counted: a new server compiles its own code meanwhile."""

BUSY_SECONDS = 5
"""Seconds before another request is sent to a server that was too busy for one."""

IMPORTED_FACTS = 500
"""Memories of the export that is imported."""

CORES = 2
"""Cores by which throughput is computed from CPU time."""

KINDS = ("save_one", "save_many", "import_small", "long_messages")
"""The kinds of requests of `http_verbs` that are sent."""


@dataclass(slots=True)
class Sample:
    """Milliseconds of one request: passed, and of CPU in the API and in Neo4j."""

    wall: float
    api: float
    neo4j: float


@dataclass(slots=True)
class Contender:
    """A checkout with its running server."""

    name: str
    server: ServerProcess
    client: httpx.AsyncClient
    requests: dict[str, Iterator[PlannedRequest]] = field(default_factory=dict)
    samples: dict[str, list[Sample]] = field(default_factory=lambda: defaultdict(list))

    async def send(self, kind: str) -> Sample:
        """Send the next request of a kind, and another one while the server is too busy.

        Raises RuntimeError when it is refused for another reason.
        """
        while True:
            try:
                return await self._send(next(self.requests[kind]))
            except httpx.HTTPStatusError:
                await asyncio.sleep(BUSY_SECONDS)

    async def _send(self, request: PlannedRequest) -> Sample:
        processes = [psutil.Process(pid) for pid in self.server.pids.values()]
        before, started = [_cpu_ms(each) for each in processes], time.perf_counter()
        content: dict[str, Any] = (
            {"content": request.body} if isinstance(request.body, bytes) else {"json": request.body}
        )
        headers = {"Content-Type": "application/json"}
        response = await self.client.request(request.method, request.path, headers=headers, **content)
        wall = (time.perf_counter() - started) * 1000
        if response.status_code == httpx.codes.SERVICE_UNAVAILABLE:
            response.raise_for_status()
        if response.is_error:
            raise RuntimeError(f"{request.path} answered {response.status_code}: {response.text[:500]}")
        api, neo4j = (_cpu_ms(each) - was for each, was in zip(processes, before, strict=True))
        return Sample(wall, api, neo4j)


def _cpu_ms(of: psutil.Process) -> float:
    times = of.cpu_times()
    return (times.user + times.system) * 1000


async def measure(contenders: list[Contender], verbs: list[Verb], rounds: int) -> None:
    """Send the requests of all rounds."""
    for number in range(WARM_UP_ROUNDS + rounds):
        for verb in verbs:
            for contender in contenders if number % 2 else reversed(contenders):
                sample = await contender.send(verb.key)
                if number >= WARM_UP_ROUNDS:
                    contender.samples[verb.key].append(sample)
        print(f"round {number + 1} of {WARM_UP_ROUNDS + rounds}", flush=True)


async def run(before: Path | None, rounds: int) -> tuple[list[Contender], list[Verb]]:
    """Start the servers, fill them alike and measure."""
    words = await load_english_words(Settings())
    roots = {"now": ROOT, **({"before": before} if before else {})}
    async with AsyncExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="graphmem-writes-")))
        contenders = []
        for name, root in roots.items():
            server = ServerProcess(folder / name, root=root)
            stack.push_async_callback(server.stop)
            print(f"{name}: ready after {await server.start():.0f} s", flush=True)
            contenders.append(Contender(name, server, await stack.enter_async_context(server.open_client())))
        verbs = [verb for verb in make_verbs({"small": IMPORTED_FACTS}) if verb.key in KINDS]
        exports = {"small": folder / "export.json"}
        plan = LoadPlan(address="", key="", pids={}, run=uuid.uuid4().hex[:8], users={}, words=words, exports=exports)
        save = next(verb for verb in verbs if verb.key == "save_many")
        requests = list(islice(save.make_requests(plan, 0), IMPORTED_FACTS // save.units))
        for request in requests:
            await contenders[0].client.request(request.method, request.path, json=request.body)
        exported = await contenders[0].client.get(requests[-1].path.replace("/memories", "/export"))
        exports["small"].write_bytes(exported.content)
        for contender in contenders:
            contender.requests = {verb.key: verb.make_requests(plan, 1) for verb in verbs}
        await measure(contenders, verbs, rounds)
        return contenders, verbs


def table(contenders: list[Contender], verbs: list[Verb], machine: str) -> str:
    """Return the report in Markdown."""
    lines = [
        "# Writes",
        "",
        machine,
        "",
        f"Medians in milliseconds. The rate is that of {CORES} cores which do nothing else, from the CPU time.",
        "",
        "| request | | passed | CPU, API + Neo4j | a second |",
        "|---|---|---:|---:|---:|",
    ]
    for verb in verbs:
        for contender in contenders:
            samples = contender.samples[verb.key]
            wall, api, neo4j = (
                statistics.median(getattr(sample, part) for sample in samples) for part in ("wall", "api", "neo4j")
            )
            rate = verb.units * CORES * 1000 / (api + neo4j) if api + neo4j else 0
            lines.append(
                f"| {verb.title} | {contender.name} | {wall:.0f} | {api:.0f} + {neo4j:.0f} | {rate:.0f} {verb.unit} |"
            )
    return "\n".join(lines) + "\n"


def main() -> None:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--before", type=Path, help="a checkout of another commit")
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--out", type=Path, default=Path("report"))
    options = parser.parse_args()
    load = os.getloadavg()
    contenders, verbs = process.run(run(options.before, options.rounds))
    text = table(contenders, verbs, describe_machine(load))
    options.out.mkdir(parents=True, exist_ok=True)
    (options.out / "writes.md").write_text(text, "utf-8")
    print(text)


if __name__ == "__main__":
    main()
