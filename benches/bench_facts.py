"""Measures how well questions about numbered facts are answered, of which a newer one replaces an older one.

    python -m benches.bench_facts FILE [--rows ID …] [--out report]

The file is JSON: `{rows: [{id, facts: [{n, text, subject, predicate, object}], questions: [{question, answers,
hops}]}]}`. Every row becomes a user of a tenant that is erased at the end. A question counts as a hit if the object of
one of the first 5 or 10 memories is one of its answers; a memory that a newer fact has replaced counts as outdated.
Writes `facts.md` into the report folder.
"""

from __future__ import annotations

import argparse
import json
import time
import uuid
from collections.abc import Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from benches.metrics import quantile
from graphmem.app.components import (
    Components,
    RetrievalComponents,
    open_components,
    running_database,
)
from graphmem.memories.entity import EntityIn
from graphmem.memories.memory import MemoryIn
from graphmem.memories.new_memory import NewMemory
from graphmem.runtime import process
from graphmem.runtime.field_types import name_key
from graphmem.runtime.settings import Settings
from graphmem.search.models import SearchQuery
from graphmem.tenants.owners import Owner
from graphmem.user_data.forget import ForgetStore

CUTOFFS = (5, 10)
"""Numbers of first memories among which an answer is looked for."""

FIRST_FACT = datetime(2020, 1, 1, tzinfo=UTC)
"""When the fact with the number 0 becomes valid; each later one is a minute younger."""


@dataclass(slots=True)
class Hits:
    """The questions asked and answered, by number of hops and cutoff; `outdated` counts replaced facts returned."""

    asked: dict[str, int] = field(default_factory=dict)
    answered: dict[tuple[str, int], int] = field(default_factory=dict)
    outdated: int = 0
    durations_ms: list[float] = field(default_factory=list)

    def add(self, kind: str, objects: Sequence[str], answers: Sequence[str]) -> None:
        """Count one question by the objects of the memories found."""
        self.asked[kind] = self.asked.get(kind, 0) + 1
        for cutoff in CUTOFFS:
            key = (kind, cutoff)
            self.answered[key] = self.answered.get(key, 0) + (not set(answers).isdisjoint(objects[:cutoff]))


async def load(row: dict[str, Any], components: Components, tenant: str) -> Owner:
    """Store the facts of a row for a new user in their order; return the user."""
    owner = Owner(tenant, row["id"])
    memories = [
        MemoryIn(
            content=fact["text"],
            subject=EntityIn(name=fact["subject"]),
            predicate=fact["predicate"],
            object=EntityIn(name=fact["object"]),
            single_valued=True,
            valid_at=FIRST_FACT + timedelta(minutes=fact["n"]),
        )
        for fact in row["facts"]
    ]
    names = sorted({named.name for memory in memories for named in (memory.subject, memory.object) if named})
    vectors = await components.embedder.embed([memory.content for memory in memories] + names)
    statements = [NewMemory(memory, vector) for memory, vector in zip(memories, vectors, strict=False)]
    by_key = {name_key(name): vector for name, vector in zip(names, vectors[len(memories) :], strict=True)}
    for start in range(0, len(statements), 100):
        await components.facts.save(owner, statements[start : start + 100], by_key, None)
    return owner


def current_objects(row: dict[str, Any]) -> set[tuple[str, str, str]]:
    """Return subject, predicate and object of each fact that no later one replaces."""
    latest = {(fact["subject"], fact["predicate"]): fact["object"] for fact in row["facts"]}
    return {(subject, predicate, value) for (subject, predicate), value in latest.items()}


async def ask(row: dict[str, Any], retrieval: RetrievalComponents, owner: Owner) -> Hits:
    """Ask the questions of a row."""
    hits, current = Hits(), current_objects(row)
    for question in row["questions"]:
        started = time.perf_counter()
        query = SearchQuery(query=question["question"], limit=max(CUTOFFS), reinforce=False)
        found = [hit.memory for hit in (await retrieval.search.search(owner, query)).results]
        hits.durations_ms.append((time.perf_counter() - started) * 1000)
        objects = [memory.object.name if memory.object else memory.subject.name for memory in found]
        hops = question["hops"]
        hits.add("single-hop" if hops == 1 else "multi-hop" if hops else "no chain", objects, question["answers"])
        stated = zip(found, objects, strict=True)
        hits.outdated += sum((one.subject.name, one.predicate, value) not in current for one, value in stated)
    return hits


async def run(rows: Sequence[dict[str, Any]]) -> dict[str, Hits]:
    """Load, ask and erase each row; return the hits by row."""
    results: dict[str, Hits] = {}
    async with AsyncExitStack() as stack:
        settings = await stack.enter_async_context(running_database(Settings()))
        components = await stack.enter_async_context(open_components(settings))
        retrieval = RetrievalComponents.build(components)
        tenant = f"bench{uuid.uuid4().hex[:8]}"
        for row in rows:
            owner = await load(row, components, tenant)
            await components.graph.fetch("schema.await_indexes")
            results[row["id"]] = await ask(row, retrieval, owner)
            await (await ForgetStore(components.graph, components.clock).begin(owner)).end()
    return results


def table(results: dict[str, Hits]) -> str:
    """Return the report in Markdown."""
    lines = ["| facts | questions | hit@5 | hit@10 | outdated facts | p50 ms |", "|---|---|---:|---:|---:|---:|"]
    for row, hits in results.items():
        for kind, asked in sorted(hits.asked.items()):
            shares = " | ".join(f"{hits.answered[kind, cutoff] / asked:.2f}" for cutoff in CUTOFFS)
            lines.append(
                f"| {row} | {kind}, {asked} | {shares} | {hits.outdated} | {quantile(hits.durations_ms, 0.5):.0f} |"
            )
    return "\n".join(lines) + "\n"


def main() -> None:
    """Run the benchmark on a file."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", type=Path, help="numbered facts with questions")
    parser.add_argument("--rows", nargs="+", help="only the rows with these ids")
    parser.add_argument("--out", type=Path, default=Path("report"), help="folder of the report")
    given = parser.parse_args()
    rows = json.loads(given.file.read_text("utf-8"))["rows"]
    report = table(process.run(run([row for row in rows if not given.rows or row["id"] in given.rows])))
    given.out.mkdir(parents=True, exist_ok=True)
    (given.out / "facts.md").write_text(report, "utf-8")
    print(report)


if __name__ == "__main__":
    main()
