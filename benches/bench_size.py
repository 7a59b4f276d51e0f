"""Measures what graphmem takes: disk, memory, and the time until it is installed, imported, ready and fast.

    python -m benches.bench_size [--venv FOLDER] [--keep-cache] [--idle-seconds 20] [--warm-seconds 60] [--out report]

Installs graphmem with its constraints into a new virtual environment and runs the quickstart in it, with an empty
folder of downloads, as `make quickstart` does in a new clone; pip uses its own cache. Then it starts Python, the
command line, the embedded Neo4j and the server, one after the other. `--venv` measures an existing environment
instead, and `--keep-cache` uses what is downloaded. Writes `size.md` and `size.json` into the report folder.
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

import httpx
import psutil

from benches.machine import describe_machine
from benches.metrics import quantile
from benches.previous import read_previous
from benches.server_process import ROOT, ServerProcess
from benches.size_report import table
from graphmem.runtime import process

REPEATS = 5
"""Runs of each command that are measured, after one that is not."""

FACTS = 500
"""Facts of the user whose memories are searched."""

FIRST_SEARCHES = 100
"""Searches after a start that are compared with warm ones."""

WARM_SEARCHES = 300
"""Searches of which the warm median is taken, the last ones of the warm-up."""

LARGEST = 10
"""Packages that are named."""

PLACES = ["Lund", "Turin", "Porto", "Oslo", "Gdansk", "Leeds", "Graz", "Nantes", "Bergen", "Split"]
USER = "/v1/users/mara"

LIST_PACKAGES = """
import importlib.metadata, json
sizes = {}
for package in importlib.metadata.distributions():
    files = {package.locate_file(file).resolve() for file in package.files or ()}
    sizes[package.name] = sum(file.stat().st_size for file in files if file.is_file())
print(json.dumps(sizes))
"""


def install(folder: Path) -> float:
    """Make a virtual environment and install this checkout into it as `make install` does; return the seconds."""
    started = time.perf_counter()
    subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True)
    pip = [str(folder / "bin" / "python"), "-m", "pip", "--disable-pip-version-check", "install", "--quiet"]
    subprocess.run([*pip, "pip>=25.1"], check=True)
    subprocess.run([*pip, "-c", "constraints.txt", "-e", "."], check=True, cwd=ROOT)
    return time.perf_counter() - started


def folder_mb(folder: Path) -> float:
    """Return the size of the files of a folder in MB, without what links lead to."""
    files = (Path(parent) / name for parent, _, names in os.walk(folder) for name in names)
    return sum(file.lstat().st_size for file in files) / 1e6


def largest_packages(python: Path) -> list[tuple[str, float]]:
    """Return the largest packages of an environment with their MB."""
    printed = subprocess.run([str(python), "-c", LIST_PACKAGES], check=True, capture_output=True, text=True).stdout
    sizes: dict[str, int] = json.loads(printed)
    largest = sorted(sizes.items(), key=lambda item: -item[1])[:LARGEST]
    return [(name, size / 1e6) for name, size in largest]


def time_command(command: Sequence[str], environment: Mapping[str, str]) -> tuple[float, float]:
    """Return the median milliseconds that a command takes, and that of its CPU time."""
    wall, cpu = [], []
    for _ in range(REPEATS + 1):
        started = time.perf_counter()
        process = subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL)
        _, status, usage = os.wait4(process.pid, 0)
        wall.append((time.perf_counter() - started) * 1000)
        cpu.append((usage.ru_utime + usage.ru_stime) * 1000)
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode:
            raise subprocess.CalledProcessError(process.returncode, command)
    return quantile(wall[1:], 0.5), quantile(cpu[1:], 0.5)


def measure_commands(python: Path, environment: Mapping[str, str]) -> dict[str, float]:
    """Measure Python, imports and the help of the command line."""
    commands = {
        "python": [str(python), "-c", "pass"],
        "import": [str(python), "-c", "import graphmem"],
        "import_graph_memory": [str(python), "-c", "from graphmem import GraphMemory"],
        "help": [str(python.with_name("graphmem")), "--help"],
    }
    found = {}
    for name, command in commands.items():
        found[f"{name}_wall_ms"], found[f"{name}_cpu_ms"] = time_command(command, environment)
    return found


def run_graphmem(python: Path, environment: Mapping[str, str], *arguments: str) -> float:
    """Run the command line once; return the seconds that it took."""
    started = time.perf_counter()
    command = [str(python.with_name("graphmem")), *arguments]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, stdin=subprocess.DEVNULL)
    if done.returncode:
        raise RuntimeError(f"{' '.join(command)} ended with {done.returncode}: {done.stderr[-2000:]}")
    return time.perf_counter() - started


async def measure_server(
    server: ServerProcess, python: Path, idle_seconds: float, warm_seconds: float
) -> dict[str, float]:
    """Start Neo4j and the server twice, the second time with memories, and measure the second start."""
    environment = server.environment
    found: dict[str, float] = {}
    try:
        found["neo4j_first_start_s"] = await asyncio.to_thread(run_graphmem, python, environment, "db", "start")
        await server.start()
        await save_facts(server)
        await server.stop()
        await asyncio.to_thread(run_graphmem, python, environment, "db", "stop")
        found["neo4j_second_start_s"] = await asyncio.to_thread(run_graphmem, python, environment, "db", "start")
        found["serve_ready_s"] = await server.start()
        await asyncio.sleep(idle_seconds)
        memory = server.memory_mb()
        found |= {"api_idle_mb": memory["API"], "neo4j_idle_mb": memory["Neo4j"]}
        durations = await _search(server, warm_seconds)
        first, warm = durations[:FIRST_SEARCHES], durations[-WARM_SEARCHES:]
        found |= {"first_searches_ms": quantile(first, 0.5), "warm_search_ms": quantile(warm, 0.5)}
        found["first_over_warm"] = found["first_searches_ms"] / found["warm_search_ms"]
        found["torch_files"] = _count_torch_files(server.pids["API"])
    finally:
        await server.stop()
        await asyncio.to_thread(run_graphmem, python, environment, "db", "stop")
    return found


async def save_facts(server: ServerProcess) -> None:
    """Save the memories that are searched."""
    memories = [
        {"content": f"Friend {friend} visited {place}", "object": {"name": place}}
        for friend in range(FACTS // len(PLACES))
        for place in PLACES
    ]
    async with server.open_client() as client:
        for batch in (memories[start : start + 100] for start in range(0, len(memories), 100)):
            (await client.post(f"{USER}/memories", json={"memories": batch})).raise_for_status()


async def _search(server: ServerProcess, seconds: float) -> list[float]:
    """Search one question after the other for some seconds, at least as often as is compared; return milliseconds."""
    durations: list[float] = []
    end = time.perf_counter() + seconds
    async with server.open_client() as client:
        for number in itertools.count():
            if number >= FIRST_SEARCHES + WARM_SEARCHES and time.perf_counter() >= end:
                return durations
            question = f"Which friend visited {PLACES[number % len(PLACES)]} with {number % 97}?"
            started = time.perf_counter()
            response: httpx.Response = await client.post(f"{USER}/search", json={"query": question})
            durations.append((time.perf_counter() - started) * 1000)
            response.raise_for_status()
    return durations


def _count_torch_files(pid: int) -> int:
    return sum("torch" in Path(mapped.path).parts for mapped in psutil.Process(pid).memory_maps())


def measure(folder: Path, given: argparse.Namespace) -> tuple[dict[str, float], list[tuple[str, float]]]:
    """Measure everything; return the figures by key, and the largest packages."""
    found: dict[str, float] = {}
    venv: Path = given.venv or folder / "venv"
    python = venv.absolute() / "bin" / "python"
    if given.venv is None:
        found["install_s"] = install(venv)
        print(f"installed in {found['install_s']:.0f} s", flush=True)
    if not given.keep_cache:
        os.environ["GRAPHMEM_CACHE_DIR"] = str(folder / "cache")
    server = ServerProcess(folder / "data", python)
    if given.venv is None and not given.keep_cache:
        environment = {**server.environment, "GRAPHMEM_DATA_DIR": str(folder / "quickstart")}
        found["quickstart_s"] = found["install_s"] + run_graphmem(python, environment, "quickstart")
        print(f"quickstart after {found['quickstart_s']:.0f} s", flush=True)
    found["venv_mb"] = folder_mb(venv)
    found |= measure_commands(python, server.environment)
    print(found, flush=True)
    found |= process.run(measure_server(server, python, given.idle_seconds, given.warm_seconds))
    return found, largest_packages(python)


def main() -> None:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--venv", type=Path, help="an environment to measure; by default a new one")
    parser.add_argument("--keep-cache", action="store_true", help="use the downloads of this user; no quickstart")
    parser.add_argument("--idle-seconds", type=float, default=20, help="seconds after which memory is measured")
    parser.add_argument("--warm-seconds", type=float, default=60, help="seconds of searches after a start")
    parser.add_argument("--out", type=Path, default=Path("report"), help="folder of the report")
    given = parser.parse_args()
    load_before = os.getloadavg()
    with tempfile.TemporaryDirectory() as temporary:
        found, packages = measure(Path(temporary), given)
    machine = describe_machine(load_before)
    text = table(found, read_previous(), packages, [machine])
    given.out.mkdir(parents=True, exist_ok=True)
    (given.out / "size.md").write_text(text, "utf-8")
    document = {"machine": machine, "figures": found, "packages_mb": dict(packages), "before": read_previous().size}
    (given.out / "size.json").write_text(json.dumps(document, indent=2), "utf-8")
    print(text)


if __name__ == "__main__":
    main()
