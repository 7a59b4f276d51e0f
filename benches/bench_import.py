"""Measures an offline import of synthetic facts with their vectors: each phase apart, memory and disk.

    python -m benches.bench_import [--facts 100000] [--users 100] [--keep FOLDER]

Writes exports as `graphmem export` does, each fact with a vector of random numbers in single precision, and imports
them into a new data folder. The peak is that of this process, of the processes that write files, and of Java together.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import tempfile
import threading
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import psutil

from benches.machine import describe_machine
from graphmem.models.embedder import create_embedder
from graphmem.runtime.settings import Settings
from graphmem.user_data.offline_import import import_offline

FACTS_PER_ENTITY = 10
"""Facts about one entity, beside the user."""

SAMPLE_SECONDS = 0.2
"""Seconds between two looks at the memory."""


def write_export(path: Path, user: str, facts: int, model: str, vectors: np.random.Generator, dimension: int) -> None:
    """Write the export of a user with as many facts, a tenth as many entities and no messages."""

    def vector() -> list[float]:
        return [round(float(number), 8) for number in vectors.standard_normal(dimension, dtype=np.float32)]

    at = {"$time": "2026-05-01T12:00:00+00:00"}
    names = [user, *(f"Place {number} of {user}" for number in range(max(1, facts // FACTS_PER_ENTITY)))]
    ids = [str(uuid.uuid4()) for _ in names]
    head = {
        "format": "graphmem-export", "schema_version": "1.1", "user_id": user,
        "embedding": {"model": model, "dimension": dimension}, "user": {"created_at": at},
    }  # fmt: skip
    with path.open("w", encoding="utf-8") as file:
        file.write(json.dumps(head)[:-1] + ',"entities":[')
        for number, (name, key) in enumerate(zip(names, ids, strict=True)):
            properties: dict[str, object] = {
                "uuid": key, "name": name, "name_key": name.lower(), "type": "Thing", "labels": ["Entity", "Thing"],
                "summary": "", "aliases": [], "alias_keys": [], "alias_text": "", "attributes": "{}",
                "is_user": number == 0, "name_embedding": vector(), "created_at": at, "updated_at": at,
            }  # fmt: skip
            entry: dict[str, object] = {"key": key, "labels": ["Entity", "Thing"], "properties": properties}
            file.write(("," if number else "") + json.dumps(entry))
        file.write('],"memories":[')
        for number in range(facts):
            place = 1 + number % (len(names) - 1)
            properties = {
                "memory_id": str(uuid.uuid4()), "uuid": str(uuid.uuid4()), "version": 1,
                "fact": f"{user} went to {names[place]} for the {number}th time", "name": "WENT_TO", "type": "fact",
                "scope": "profile", "status": "active", "tags": [], "metadata": "{}", "confidence": 0.9,
                "importance": 0.5, "strength": 1.0, "decay_rate": 0.01, "access_count": 0, "created_at": at,
                "first_created_at": at, "updated_at": at, "immutable": False, "single_valued": False,
                "retired": False, "content_hash": uuid.uuid4().hex, "source_kind": "user",
                "entity_ids": [ids[0], ids[place]], "search_text": f"{user} {names[place]}",
            }  # fmt: skip
            entry = {"subject_id": ids[0], "object_id": ids[place], "properties": properties, "vector": vector()}
            file.write(("," if number else "") + json.dumps(entry))
        file.write('],"records":[],"links":[]}')


@contextmanager
def sampled_memory() -> Iterator[dict[str, int]]:
    """Yield the peak of the memory of this process and its children, `peak` in bytes, while the block runs."""
    result, stopped = {"peak": 0}, threading.Event()

    def sample() -> None:
        while not stopped.wait(SAMPLE_SECONDS):
            total = 0
            for process in [psutil.Process(), *psutil.Process().children(recursive=True)]:
                try:
                    total += process.memory_info().rss
                except psutil.Error:
                    continue
            result["peak"] = max(result["peak"], total)

    thread = threading.Thread(target=sample)
    thread.start()
    try:
        yield result
    finally:
        stopped.set()
        thread.join()


def folder_bytes(folder: Path) -> int:
    """Return the size of all files of a folder."""
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


async def measure(folder: Path, facts: int, users: int) -> None:
    """Write exports, import them and print what each phase took."""
    settings = Settings().model_copy(update={"neo4j_uri": None, "data_dir": folder / "data"})
    embedder = create_embedder(settings)
    exports, load_before = folder / "exports", os.getloadavg()
    exports.mkdir(parents=True)
    random = np.random.default_rng(1)
    began = time.monotonic()
    for number in range(users):
        path = exports / f"user{number}.json"
        write_export(path, f"user{number}", facts // users, embedder.model, random, embedder.dimension)
    print(
        f"{facts:,} facts of {users} users in {folder_bytes(exports) / 1e6:,.0f} MB, {time.monotonic() - began:.0f} s"
    )
    with sampled_memory() as memory:
        result = await import_offline(settings, "bench", exports)
    print(f"\n{describe_machine(load_before)}\n\n| phase | seconds | facts a second |\n|---|---:|---:|")
    for phase, seconds in result.seconds.items():
        print(f"| {phase} | {seconds:,.1f} | {facts / max(seconds, 0.1):,.0f} |")
    print(f"| all | {sum(result.seconds.values()):,.1f} | {result.facts_per_second:,} |")
    print(f"\npeak memory {memory['peak'] / 1e6:,.0f} MB, database {folder_bytes(settings.data_dir) / 1e6:,.0f} MB")


def main() -> None:
    """Read the arguments and measure."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--facts", type=int, default=100_000)
    parser.add_argument("--users", type=int, default=100)
    parser.add_argument("--keep", type=Path, help="a new folder for exports and data; absent: a temporary one")
    options = parser.parse_args()
    if options.keep:
        asyncio.run(measure(options.keep, options.facts, options.users))
        return
    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(measure(Path(folder), options.facts, options.users))


if __name__ == "__main__":
    main()
