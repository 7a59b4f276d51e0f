"""Draws flame graphs of a search, a context and a lookup over HTTP: what the API computes while it answers.

    python -m benches.bench_flames [--facts 10000] [--seconds 15] [--out docs/images]

Starts `graphmem serve` with one user of synthetic facts, has an agent send one request after another, and samples the
stacks of the API with py-spy: of the thread that runs Python's code, not of those that wait or compute in libraries
such as the embedder. Writes `flame-search.svg`, `flame-context.svg` and `flame-lookup.svg`, and prints the CPU
time of a request of each kind.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import random
import shutil
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path

import httpx

from benches.bench_active import cpu_seconds
from benches.bench_http import settle
from benches.bench_scale import load
from benches.machine import describe_machine
from benches.server_process import ServerProcess, running_neo4j
from benches.synthetic_data import SyntheticData
from graphmem.app.components import open_components
from graphmem.runtime import process
from graphmem.runtime.settings import Settings
from graphmem.tenants.owners import Owner

OWNER = Owner("default", "flames")
"""A user of the tenant of the server's first key."""

SAMPLES_PER_SECOND = 200
"""How often the stacks are read."""

Send = Callable[[httpx.AsyncClient], Awaitable[httpx.Response]]


def make_requests(data: SyntheticData, names: Sequence[str]) -> dict[str, Send]:
    """Return how a request of each kind is sent; questions are random, and lookups name one of the entities."""
    path = f"/v1/users/{OWNER.user_id}"

    def question() -> str:
        return " ".join(data.sentence(5))

    return {
        "search": lambda client: client.post(f"{path}/search", json={"query": question(), "limit": 10}),
        "context": lambda client: client.post(f"{path}/context", json={"question": question()}),
        "lookup": lambda client: client.get(f"{path}/entities/lookup", params={"q": random.choice(names)}),
    }


async def fill(settings: Settings, facts: int) -> SyntheticData:
    """Write the user's facts into the running database."""
    async with open_components(settings) as components:
        data = SyntheticData(7, components.embedder.dimension)
        await load(components, data, OWNER, facts)
        await components.graph.fetch("schema.await_indexes")
    return data


async def list_names(client: httpx.AsyncClient) -> list[str]:
    """Return the names of some entities."""
    found = (await client.get(f"/v1/users/{OWNER.user_id}/entities", params={"limit": 100})).raise_for_status()
    return [entity["name"] for entity in found.json()["items"]]


async def send_for(seconds: float, client: httpx.AsyncClient, send: Send) -> int:
    """Send one request after another for a time; return how many were answered."""
    end, count = time.perf_counter() + seconds, 0
    while time.perf_counter() < end:
        (await send(client)).raise_for_status()
        count += 1
    return count


async def draw(pid: int, seconds: float, title: str, file: Path) -> None:
    """Sample the stack that runs Python's code in a process, and write what was found as a flame graph."""
    sampler = await asyncio.create_subprocess_exec(
        find_py_spy(), "record", "--gil", "--pid", str(pid), "--duration", f"{seconds:.0f}", "--format", "flamegraph",
        "--rate", str(SAMPLES_PER_SECOND), "--output", str(file),
        stdout=asyncio.subprocess.DEVNULL, stderr=asyncio.subprocess.PIPE,
    )  # fmt: skip
    _, errors = await sampler.communicate()
    if sampler.returncode:
        raise RuntimeError(f"py-spy could not draw {title}: {errors.decode()[-500:]}")
    set_title(file, title)


def set_title(file: Path, title: str) -> None:
    """Give a flame graph a title of its own."""
    file.write_text(file.read_text("utf-8").replace(">py-spy<", f">{title}<"), "utf-8")


def find_py_spy() -> str:
    """Return the command of py-spy beside this Python."""
    return shutil.which("py-spy", path=f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}") or "py-spy"


async def run(folder: Path, facts: int, seconds: float, out: Path) -> None:
    """Fill the database, and draw a flame graph of each kind of request."""
    async with running_neo4j(folder / "data") as settings:
        data = await fill(settings, facts)
        server = ServerProcess(settings.data_dir)
        await server.start()
        try:
            async with server.open_client() as client:
                for name, send in make_requests(data, await list_names(client)).items():
                    await send_for(seconds, client, send)
                    await settle(server.pids.values())
                    before = cpu_seconds(server.pids)
                    count = await send_for(seconds, client, send)
                    after = cpu_seconds(server.pids)
                    used = {process: (after[process] - before[process]) * 1000 / count for process in after}
                    print(f"{name}: CPU {used['API']:.1f} ms of the API, {used['Neo4j']:.1f} of Neo4j", flush=True)
                    await asyncio.gather(
                        draw(server.pids["API"], seconds, f"{name} over HTTP", out / f"flame-{name}.svg"),
                        send_for(seconds + 1, client, send),
                    )
        finally:
            await server.stop()


def main() -> None:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--facts", type=int, default=10_000, help="facts of the user")
    parser.add_argument("--seconds", type=float, default=15, help="seconds of each part")
    parser.add_argument("--out", type=Path, default=Path("docs/images"), help="folder of the flame graphs")
    given = parser.parse_args()
    load_before = os.getloadavg()
    with tempfile.TemporaryDirectory() as folder:
        process.run(run(Path(folder), given.facts, given.seconds, given.out))
    print(describe_machine(load_before))


if __name__ == "__main__":
    main()
