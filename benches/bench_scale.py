"""Measures how fast reads are as the graph grows, and the recall of the vector index.

    python -m benches.bench_scale [--sizes 1000,10000,100000,1000000] [--data FOLDER] [--out report] [--peer]

Starts an embedded Neo4j in a folder, by default a temporary one, fills it up to each size with users of 500 and of
10,000 facts, and measures at each size: loading, search without and with the time of an embedding, lookup with a cold
and a warm cache, the share of the 20 nearest facts that the vector index finds, memory and disk. With `--peer`,
Graphiti's search answers the same questions. Writes `scale.md`, `scale.json` and `scale.png` into the report folder.
"""

from __future__ import annotations

import argparse
import itertools
import json
import math
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import AsyncExitStack, contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import psutil

from benches.metrics import quantile
from benches.server_process import find_neo4j, running_neo4j
from benches.synthetic_data import SyntheticData, users
from graphmem.app.components import Components, RetrievalComponents, open_components
from graphmem.evaluation.graphiti_system import GraphitiBaseline, open_graphiti_baseline
from graphmem.memories.filters import FactFilters, SortOrder
from graphmem.models.embedder import Embedder
from graphmem.runtime import process
from graphmem.search.lookup import EntityLookup, EntityNameCache
from graphmem.search.models import SearchQuery
from graphmem.search.source import ANN_CANDIDATES
from graphmem.tenants.owners import Owner
from graphmem.tenants.spaces import scope_of

TENANT = "scale"
"""Prefix of the tenants of the benchmark."""

BIG, SMALL = 10_000, 500
"""Facts of the two kinds of users."""

BATCH = 1_000
"""Entities or facts that are written in one query."""

QUESTIONS = 100
"""Questions that are timed at each size, for each kind of user."""

WARM_UP = 100
"""Questions that are asked before any is timed."""

ROUND_SECONDS = 10.0
"""Duration of one round of the warm-up."""

MAX_ROUNDS = 18
"""Most rounds of the warm-up."""

STEADY_RATIO = 0.95
"""The warm-up ends when the median of a round is not below this share of the best median before."""

QUANTILES = (0.5, 0.95, 0.99)
"""Quantiles of durations that are reported."""


class SyntheticEmbedder:
    """An embedder of synthetic texts, which can take as long as a real one."""

    def __init__(self, data: SyntheticData, dimension: int) -> None:
        self._data = data
        self._real: Embedder | None = None
        self.dimension = dimension
        self.model = "synthetic"

    async def open(self) -> None:
        """Do nothing: there is no model to load."""

    async def embed(self, texts: Sequence[str], *, query: bool = False) -> list[list[float]]:
        """Return the vectors of texts."""
        if self._real:
            await self._real.embed([f"{text} {time.perf_counter_ns()}" for text in texts], query=query)
        return [self._data.vector(text) for text in texts]

    async def aclose(self) -> None:
        """Do nothing: there is no model to close."""

    @contextmanager
    def as_slow_as(self, real: Embedder) -> Iterator[None]:
        """Make `embed` take the time of a real embedder."""
        self._real = real
        try:
            yield
        finally:
            self._real = None


@dataclass(slots=True)
class ScaleResult:
    """The measurements at one size of the graph; `durations_ms` are by operation and number of facts of the user."""

    facts: int
    seconds_to_load: float = 0.0
    loaded: int = 0
    durations_ms: dict[str, list[float]] = field(default_factory=dict)
    recall: dict[int, float] = field(default_factory=dict)
    memory_mb: float = 0.0
    disk_mb: float = 0.0

    @property
    def speedups(self) -> dict[int, float]:
        """Median duration of Graphiti's search over that of graphmem's, by number of facts of the user."""
        return {
            size: quantile(self.durations_ms[f"Graphiti search {size}"], 0.5)
            / quantile(self.durations_ms[f"search {size}"], 0.5)
            for size in self.recall
            if f"Graphiti search {size}" in self.durations_ms
        }


async def load(
    components: Components, data: SyntheticData, owner: Owner, count: int, embedder: Embedder | None = None
) -> None:
    """Write a user with `count` facts; with an embedder, their vectors are its own instead of synthetic ones."""
    made, group = data.user(owner, count), {"group_id": owner.group_id}
    await components.graph.write(lambda transaction: components.facts.lock_or_create_user(transaction, owner))
    for start in range(0, len(made.entities), BATCH):
        await components.graph.execute(
            "entities.create_entities", entities=made.entities[start : start + BATCH], **group
        )
    for start in range(0, len(made.facts), BATCH):
        rows = made.facts[start : start + BATCH]
        if embedder:
            vectors = await embedder.embed([row["properties"]["fact"] for row in rows])
            for row, vector in zip(rows, vectors, strict=True):
                row["properties"]["fact_embedding"] = vector
        await components.graph.execute("import.create_versions", rows=rows, **group)


async def timed(step: ScaleResult, name: str, work: Awaitable[Any]) -> None:
    """Record the duration of some work."""
    started = time.perf_counter()
    await work
    step.durations_ms.setdefault(name, []).append((time.perf_counter() - started) * 1000)


def make_questions(data: SyntheticData, facts: Sequence[str], count: int) -> list[str]:
    """Return questions that share some words with facts."""
    questions = []
    for _ in range(count):
        words = data.rng.choice(facts).split()
        questions.append(" ".join([*data.rng.sample(words, k=min(5, len(words))), *data.sentence(2)]))
    return questions


async def sample_fact_texts(components: Components, owner: Owner) -> list[str]:
    """Return the texts of some facts of a user."""
    filters = FactFilters(valid_at=datetime.now(UTC))
    memories, _ = await components.facts.list_page(owner, filters, sort=SortOrder.CREATED_AT, limit=500)
    return [memory.content for memory in memories]


async def measure(
    components: Components,
    data: SyntheticData,
    embedder: SyntheticEmbedder,
    real: Embedder,
    baseline: GraphitiBaseline | None,
    owners: list[Owner],
    size: int,
    step: ScaleResult,
) -> None:
    """Ask questions for users of one size and record the durations."""
    asked = []
    for owner in owners:
        facts = await sample_fact_texts(components, owner)
        questions = make_questions(data, facts, (QUESTIONS + WARM_UP) // len(owners))
        asked += [(owner, question, facts) for question in questions]
    data.rng.shuffle(asked)
    retrieval = RetrievalComponents.build(components)
    warming = [(owner, question) for owner, question, _ in asked[:WARM_UP]]
    await warm_up(warming, lambda owner, question: retrieval.search.search(owner, SearchQuery(query=question)))
    if baseline:
        await warm_up(warming, lambda owner, question: baseline.search(owner, question, 10))
    for owner, question, facts in asked[WARM_UP:]:
        query = SearchQuery(query=question)
        await timed(step, f"search {size}", retrieval.search.search(owner, query))
        with embedder.as_slow_as(real):
            await timed(step, f"search with embedding {size}", retrieval.search.search(owner, query))
        name = " ".join(data.rng.choice(facts).split()[-2:])
        names = EntityNameCache(components.clock)
        lookup = EntityLookup(retrieval.sources, components.entities, names, retrieval.reinforcement, components.clock)
        await timed(step, f"lookup cold {size}", lookup.lookup(owner, name, reinforce=False))
        await timed(step, f"lookup warm {size}", lookup.lookup(owner, name, reinforce=False))
        if baseline:
            await timed(step, f"Graphiti search {size}", baseline.search(owner, question, 10))
    await retrieval.reinforcement.close()
    timed_questions = [(owner, question) for owner, question, _ in asked[WARM_UP:]]
    step.recall[size] = await index_recall(components, retrieval, data, timed_questions)


async def warm_up(asked: Sequence[tuple[Owner, str]], ask: Callable[[Owner, str], Awaitable[Any]]) -> None:
    """Ask questions in rounds until a round is no faster than those before: a server compiles frequent queries."""
    best = math.inf
    again = itertools.cycle(asked)
    for _ in range(MAX_ROUNDS):
        end = time.perf_counter() + ROUND_SECONDS
        durations = []
        while (started := time.perf_counter()) < end:
            await ask(*next(again))
            durations.append(time.perf_counter() - started)
        median = quantile(durations, 0.5)
        if median > STEADY_RATIO * best:
            return
        best = median


async def index_recall(
    components: Components, retrieval: RetrievalComponents, data: SyntheticData, asked: Sequence[tuple[Owner, str]]
) -> float:
    """Return the share of the 20 nearest facts that a search finds through the vector index."""
    filters = FactFilters(valid_at=datetime.now(UTC))
    shares = []
    for owner, question in asked:
        vector = data.vector(question)
        found = await components.graph.fetch_value(
            "search.find_facts_by_vector",
            group_ids=scope_of(owner).group_ids,
            vector=vector,
            ann_limit=ANN_CANDIDATES,
            limit=20,
            **filters.as_of_params,
        )
        nearest = await components.graph.fetch_value(
            "search.scan_facts_by_vector",
            group_ids=scope_of(owner).group_ids,
            vector=vector,
            limit=20,
            **filters.readable_params,
            filters=filters.attribute_params,
        )
        exact = {uuid for uuid, *_ in nearest}
        shares.append(len(exact & {uuid for uuid, *_ in found}) / len(exact))
    return sum(shares) / len(shares)


async def run(sizes: Sequence[int], folder: Path, with_baseline: bool) -> list[ScaleResult]:
    """Fill the graph and measure it, size by size."""
    async with AsyncExitStack() as stack:
        settings = await stack.enter_async_context(running_neo4j(folder))
        components = await stack.enter_async_context(open_components(settings))
        real = components.embedder
        data = SyntheticData(7, real.dimension)
        embedder = SyntheticEmbedder(data, real.dimension)
        components = replace(components, embedder=embedder)
        baseline = (
            await stack.enter_async_context(open_graphiti_baseline(components.settings, embedder))
            if with_baseline
            else None
        )
        steps: list[ScaleResult] = []
        owners: dict[int, list[Owner]] = {BIG: [], SMALL: []}
        total = 0
        for size in sizes:
            step = ScaleResult(size)
            started = time.perf_counter()
            for number, (owner, count) in enumerate(users(size - total, f"{TENANT}{size}", BIG, SMALL)):
                await load(components, data, owner, count)
                owners[count].append(owner)
                total += count
                step.loaded += count
                if number % 50 == 0:
                    print(f"{total} facts, {step.loaded / (time.perf_counter() - started):.0f} a second", flush=True)
            await components.graph.fetch("schema.await_indexes")
            step.seconds_to_load = time.perf_counter() - started
            for count, members in owners.items():
                if members:
                    chosen = data.rng.sample(members, min(10, len(members)))
                    await measure(components, data, embedder, real, baseline, chosen, count, step)
            step.memory_mb = psutil.Process(find_neo4j(folder)).memory_info().rss / 1e6
            step.disk_mb = disk_mb(folder)
            steps.append(step)
            print(table(steps), flush=True)
        return steps


def disk_mb(folder: Path) -> float:
    """Return the size of all files of a folder in MB."""
    return sum(file.stat().st_size for file in folder.rglob("*") if file.is_file()) / 1e6


def table(steps: Sequence[ScaleResult]) -> str:
    """Return the report in Markdown."""
    names = list(dict.fromkeys(name for step in steps for name in step.durations_ms))
    lines = [
        "# Reads as the graph grows",
        "",
        "p50 / p95 / p99 in milliseconds; the number after a name is the facts of the user.",
        "",
    ]
    lines += ["| facts | " + " | ".join(names) + " |", "|---" * (len(names) + 1) + "|"]
    for step in steps:
        cells = (
            " / ".join(f"{quantile(step.durations_ms[name], share):.1f}" for share in QUANTILES)
            if name in step.durations_ms
            else ""
            for name in names
        )
        lines.append(f"| {step.facts:,} | " + " | ".join(cells) + " |")
    lines += [
        "",
        "| facts | loaded a second | recall@20 of the index | times as fast as Graphiti (p50) | memory MB | disk MB |",
        "|---" * 6 + "|",
    ]
    for step in steps:
        recall = ", ".join(f"{value:.3f} ({size})" for size, value in step.recall.items())
        rate = step.loaded / step.seconds_to_load if step.seconds_to_load else 0
        faster = ", ".join(f"{value:.1f} ({size})" for size, value in step.speedups.items())
        lines.append(
            f"| {step.facts:,} | {rate:.0f} | {recall} | {faster} | {step.memory_mb:.0f} | {step.disk_mb:.0f} |"
        )
    return "\n".join(lines) + "\n"


def plot(steps: Sequence[ScaleResult], path: Path) -> None:
    """Draw the median durations over the size of the graph."""
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(figsize=(9, 5))
    for name in dict.fromkeys(name for step in steps for name in step.durations_ms):
        points = [(step.facts, quantile(step.durations_ms[name], 0.5)) for step in steps if name in step.durations_ms]
        axes.plot(*zip(*points, strict=True), marker="o", label=name)
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xlabel("facts in the graph")
    axes.set_ylabel("p50, milliseconds")
    axes.legend(fontsize="small", loc="center left", bbox_to_anchor=(1, 0.5))
    figure.savefig(path, dpi=150, bbox_inches="tight")


def main() -> None:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--sizes", default="1000,10000,100000,1000000", help="numbers of facts in the graph, separated by commas"
    )
    parser.add_argument("--data", type=Path, help="folder of the database; a temporary one by default")
    parser.add_argument("--out", type=Path, default=Path("report"), help="folder of the report")
    parser.add_argument("--peer", action="store_true", help="measure Graphiti too")
    given = parser.parse_args()
    sizes = sorted(int(size) for size in given.sizes.split(","))
    with tempfile.TemporaryDirectory() as temporary:
        steps = process.run(run(sizes, given.data or Path(temporary), given.peer))
    given.out.mkdir(parents=True, exist_ok=True)
    (given.out / "scale.md").write_text(table(steps), "utf-8")
    numbers = [
        {
            "facts": step.facts,
            "milliseconds": {
                name: [quantile(values, share) for share in QUANTILES] for name, values in step.durations_ms.items()
            },
            "recall": step.recall,
            "times_as_fast_as_graphiti": step.speedups,
            "loaded_a_second": step.loaded / step.seconds_to_load if step.seconds_to_load else None,
            "memory_mb": step.memory_mb,
            "disk_mb": step.disk_mb,
        }
        for step in steps
    ]
    (given.out / "scale.json").write_text(json.dumps(numbers, indent=2), "utf-8")
    plot(steps, given.out / "scale.png")
    print(table(steps))


if __name__ == "__main__":
    main()
