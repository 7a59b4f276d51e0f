"""Draws flame graphs of a search, a context and a lookup over HTTP: what the API computes while it answers.

    python -m benches.bench_flames [--facts 10000] [--seconds 15] [--out docs/images]

Starts `graphmem serve` with one user of synthetic facts, has an agent send one request after another, and samples the
stacks of the API with py-spy: of the thread that runs Python's code, not of those that wait or compute in libraries
such as the embedder. Writes `flame-search.png`, `flame-context.png` and `flame-lookup.png`, and prints the CPU
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
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator, Sequence
from pathlib import Path

import httpx

from benches.bench_active import cpu_seconds
from benches.bench_http import wait_until_idle
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

LEAST_SHARE = 0.004
"""Least share of the samples of a function that is drawn."""

CHARACTERS, SHORTEST_LABEL = 330, 3
"""Characters that fit into the width of the picture, and those of a label too short to be read."""

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


async def sample(pid: int, seconds: float) -> Counter[tuple[str, ...]]:
    """Return how often each stack, the outermost function first, ran Python's code in a process."""
    with tempfile.NamedTemporaryFile() as file:
        sampler = await asyncio.create_subprocess_exec(
            find_py_spy(), "record", "--gil", "--pid", str(pid), "--duration", f"{seconds:.0f}", "--format", "raw",
            "--rate", str(SAMPLES_PER_SECOND), "--output", file.name,
            stdout=asyncio.subprocess.DEVNULL, stderr=asyncio.subprocess.PIPE,
        )  # fmt: skip
        _, errors = await sampler.communicate()
        if sampler.returncode:
            raise RuntimeError(f"py-spy could not read the stacks: {errors.decode()[-500:]}")
        return parse_stacks(await asyncio.to_thread(Path(file.name).read_text, "utf-8"))


def parse_stacks(text: str) -> Counter[tuple[str, ...]]:
    """Return the stacks of py-spy's raw format, a line each: functions with semicolons between them, and a count."""
    stacks: Counter[tuple[str, ...]] = Counter()
    for line in text.splitlines():
        stack, _, count = line.rpartition(" ")
        stacks[tuple(stack.split(";"))] += int(count)
    return stacks


def draw(stacks: Counter[tuple[str, ...]], title: str, file: Path) -> None:
    """Draw each function as wide as its share of the samples, below it the one that calls it."""
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot as plt

    boxes = list(lay_out(stacks))
    height = 1 + max(depth for depth, *_ in boxes)
    figure, axes = plt.subplots(figsize=(14, 0.16 * height + 0.6))
    for depth, left, width, name in boxes:
        colour = "#f2a65a" if "graphmem" in name else "#d9d9d9"
        axes.barh(depth, width, left=left, height=1, align="edge", color=colour, edgecolor="white", linewidth=0.3)
        label = name.partition(" (")[0][: int(width * CHARACTERS)]
        if len(label) > SHORTEST_LABEL:
            axes.text(left + 0.001, depth + 0.5, label, fontsize=4.5, va="center", clip_on=True)
    axes.set(xlim=(0, 1), ylim=(0, height), xticks=[], yticks=[], title=title)
    axes.set_frame_on(False)
    figure.tight_layout()
    figure.savefig(file, dpi=130)
    plt.close(figure)


def lay_out(stacks: Counter[tuple[str, ...]]) -> Iterator[tuple[int, float, float, str]]:
    """Yield depth, left edge, width and name of each function that has at least `LEAST_SHARE` of the samples."""
    total = sum(stacks.values())
    pending = [(0, 0.0, stacks)]
    while pending:
        depth, left, found = pending.pop()
        callees: dict[str, Counter[tuple[str, ...]]] = {}
        for stack, count in found.items():
            if stack:
                callees.setdefault(stack[0], Counter())[stack[1:]] += count
        for name, inner in sorted(callees.items()):
            width = sum(inner.values()) / total
            if width >= LEAST_SHARE:
                yield depth, left, width, name
                pending.append((depth + 1, left, inner))
                left += width


def find_py_spy() -> str:
    """Return the command of py-spy next to this Python."""
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
                    await wait_until_idle(server.pids.values())
                    before = cpu_seconds(server.pids)
                    count = await send_for(seconds, client, send)
                    after = cpu_seconds(server.pids)
                    used = {process: (after[process] - before[process]) * 1000 / count for process in after}
                    print(f"{name}: CPU {used['API']:.1f} ms of the API, {used['Neo4j']:.1f} of Neo4j", flush=True)
                    stacks, _ = await asyncio.gather(
                        sample(server.pids["API"], seconds), send_for(seconds + 1, client, send)
                    )
                    draw(stacks, f"{name} over HTTP", out / f"flame-{name}.png")
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
