"""Measures how soon a server on an existing data folder is ready, and what it takes when it has nothing to do.

    python -m benches.bench_start [--python PYTHON] [--starts 5] [--idle-seconds 20] [--data FOLDER]

Neo4j runs all the time, in a data folder that holds the memories of a user. Each kind of server is started once to
compile its modules, then `--starts` times: from starting the process until /readyz answers 200, with the CPU time of
the process by then. Its resident memory is read after some idle seconds, in which it builds the contexts of its
warm-up. `--python` is the interpreter of another environment, such as one without what only developers need.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

import psutil

from benches.bench_size import run_graphmem, save_facts
from benches.machine import describe_machine
from benches.metrics import quantile
from benches.server_process import ServerProcess
from graphmem.runtime import process

KINDS = (("serve",), ("serve", "--no-worker"), ("worker",))
"""The commands that are measured."""

MOST_SECONDS = 3.0
"""The goal for the time until `graphmem serve` is ready."""

MOST_MEGABYTES = 250.0
"""The goal for the resident memory of an idle `graphmem serve`."""


@dataclass(frozen=True, slots=True)
class Start:
    """One start: seconds until the server was ready, seconds of CPU by then, and its resident memory when idle."""

    ready: float
    cpu: float
    idle_mb: float


async def measure_start(server: ServerProcess, idle_seconds: float) -> Start:
    """Start a server, let it be idle and stop it."""
    ready = await server.start()
    try:
        times = psutil.Process(server.pids["API"]).cpu_times()
        await asyncio.sleep(idle_seconds)
        return Start(ready, times.user + times.system, server.memory_mb()["API"])
    finally:
        await server.stop()


async def measure(folder: Path, given: argparse.Namespace) -> dict[str, list[Start]]:
    """Start every kind of server; return its starts by the command."""
    found: dict[str, list[Start]] = {}
    server = ServerProcess(folder, given.python)
    await asyncio.to_thread(run_graphmem, given.python, server.environment, "db", "start")
    try:
        await server.start()
        await save_facts(server)
        await server.stop()
        for command in KINDS:
            server = ServerProcess(folder, given.python, command=command)
            await measure_start(server, 0)
            found[" ".join(command)] = [await measure_start(server, given.idle_seconds) for _ in range(given.starts)]
    finally:
        await asyncio.to_thread(run_graphmem, given.python, server.environment, "db", "stop")
    return found


def table(found: dict[str, list[Start]]) -> str:
    """Return medians in Markdown; `serve` has goals."""
    lines = ["| command | ready | CPU by then | idle memory |", "|---|---:|---:|---:|"]
    for command, starts in found.items():
        ready, cpu, idle = (
            quantile([getattr(start, name) for start in starts], 0.5) for name in ("ready", "cpu", "idle_mb")
        )
        lines.append(f"| `graphmem {command}` | {ready:.2f} s | {cpu:.2f} s | {idle:.0f} MB |")
    lines.append(f"| goal for `graphmem serve` | ≤ {MOST_SECONDS:.0f} s | | ≤ {MOST_MEGABYTES:.0f} MB |")
    return "\n".join(lines)


def main() -> None:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--python", type=Path, default=Path(sys.executable), help="the interpreter that runs graphmem")
    parser.add_argument("--starts", type=int, default=5, help="starts of each kind that are measured")
    parser.add_argument("--idle-seconds", type=float, default=20, help="seconds after which memory is measured")
    parser.add_argument("--data", type=Path, help="a data folder to use; by default a new one")
    given = parser.parse_args()
    load_before = os.getloadavg()
    with tempfile.TemporaryDirectory() as temporary:
        found = process.run(measure(given.data or Path(temporary) / "data", given))
    print(table(found), describe_machine(load_before), sep="\n\n")


if __name__ == "__main__":
    main()
