"""Measures the disk that a fact takes: what each file of the database and each index holds of it.

    python -m benches.bench_disk [--facts 50000] [--data FOLDER] [--recall]

Fills an embedded Neo4j in a folder, by default a temporary one, with synthetic users of 500 and of 10,000 facts by the
query with which an import writes facts, and stops it, so that everything is in its files. Prints bytes a fact by file,
without the logs of transactions and the space that Neo4j reserves, which do not grow with the facts. With `--recall`,
it also measures the share of the 20 nearest facts of some questions that the vector index finds.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import tempfile
from collections import Counter
from collections.abc import Mapping
from contextlib import AsyncExitStack
from dataclasses import replace
from pathlib import Path

from benches.bench_scale import BIG, SyntheticEmbedder, index_recall, load, make_questions, sample_fact_texts
from benches.machine import describe_machine
from benches.server_process import running_neo4j
from benches.synthetic_data import SyntheticData, users
from graphmem.app.components import RetrievalComponents, open_components
from graphmem.neo4j.driver import Graph
from graphmem.tenants.owners import Owner

QUESTIONS = 100
"""Questions whose nearest facts are looked for."""

CHUNK_BYTES = 1 << 20
"""Bytes that are read at once."""

SEED = 7
"""The facts of every run are the same."""


async def list_indexes(graph: Graph) -> dict[str, str]:
    """Return the type and the name of every index by its id, which names its folder."""
    rows = await graph.read(
        lambda transaction: transaction.run_text("SHOW INDEXES YIELD id, name, type RETURN id, name, type", {})
    )
    return {str(row["id"]): f"{row['type'].lower()} {row['name']}" for row in rows}


def measure_files(database: Path, indexes: Mapping[str, str]) -> Counter[str]:
    """Return the bytes of each store and of each index of a database that is stopped."""
    sizes = Counter[str]()
    for path in database.rglob("*"):
        if not path.is_file():
            continue
        parts = path.relative_to(database).parts
        name = (
            parts[0] if parts[0] != "schema" else next((indexes[part] for part in parts if part in indexes), "schema")
        )
        sizes[name] += used_bytes(path)
    return sizes


def used_bytes(path: Path) -> int:
    """Return the bytes of a file up to the last one that is not zero: Neo4j makes stores longer by 32 MB at a time."""
    with path.open("rb") as file:
        end = file.seek(0, os.SEEK_END)
        while end > 0:
            start = max(0, end - CHUNK_BYTES)
            file.seek(start)
            if used := len(file.read(end - start).rstrip(b"\0")):
                return start + used
            end = start
    return 0


async def fill(folder: Path, facts: int, with_recall: bool) -> dict[str, str]:
    """Fill the database of a folder, and return its indexes by id."""
    async with AsyncExitStack() as stack:
        settings = await stack.enter_async_context(running_neo4j(folder))
        components = await stack.enter_async_context(open_components(settings))
        data = SyntheticData(SEED, components.embedder.dimension)
        components = replace(components, embedder=SyntheticEmbedder(data, components.embedder.dimension))
        owners: list[Owner] = []
        for owner, count in users(facts, "disk"):
            await load(components, data, owner, count)
            owners += [owner] if count < BIG else []
        await components.graph.fetch("schema.await_indexes")
        if with_recall:
            retrieval, asked = RetrievalComponents.build(components), []
            for owner in owners[:10]:
                texts = await sample_fact_texts(components, owner)
                asked += [(owner, text) for text in make_questions(data, texts, QUESTIONS // 10)]
            print(f"recall@20 of the vector index: {await index_recall(components, retrieval, data, asked):.4f}")
        return await list_indexes(components.graph)


def report(sizes: Mapping[str, int], facts: int) -> str:
    """Return bytes a fact as a table, the largest first."""
    rows = [(name, size / facts) for name, size in sizes.items()]
    lines = ["| file or index | bytes a fact |", "|---|---:|", f"| all | {sum(size for _, size in rows):,.0f} |"]
    lines += [f"| {name} | {size:,.0f} |" for name, size in sorted(rows, key=lambda row: -row[1]) if size >= 1]
    return "\n".join(lines)


async def run(folder: Path, facts: int, with_recall: bool) -> None:
    """Fill a folder and print what its files hold."""
    load_before = os.getloadavg()
    indexes = await fill(folder, facts, with_recall)
    print(f"\n{describe_machine(load_before)}\n")
    print(report(measure_files(folder / "neo4j" / "data" / "databases" / "neo4j", indexes), facts))


def main() -> None:
    """Read the arguments and measure."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--facts", type=int, default=50_000)
    parser.add_argument("--data", type=Path, help="a new folder for the database; absent: a temporary one")
    parser.add_argument("--recall", action="store_true", help="measure the recall of the vector index too")
    options = parser.parse_args()
    if options.data:
        asyncio.run(run(options.data, options.facts, options.recall))
        return
    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(run(Path(folder), options.facts, options.recall))


if __name__ == "__main__":
    main()
