"""How fast reads are as the graph grows, and how true the vector index is to the exact answer.

    python -m benches.bench_scale [--sizes 1000,10000,100000,1000000] [--data FOLDER] [--out report] [--peer]

Starts an embedded Neo4j of its own in a folder (a temporary one unless named), fills it step by step up to each size
with users of 500 and of 10,000 facts, and measures at each: loading, search without an embedding's time and with it,
lookup cold and warm, the share of the exact 20 nearest facts that a search has from the index, memory and disk. With
`--peer`, Graphiti's search is asked the same questions. Writes `scale.md`, `scale.json` and `scale.png` into the
report folder.
"""

from __future__ import annotations

import argparse
import itertools
import json
import math
import tempfile
import time
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import psutil
from pydantic import SecretStr

from benches.graphiti_baseline import GraphitiBaseline, open_graphiti_baseline
from benches.metrics import quantile
from benches.synthetic_data import SyntheticData, users
from graphmem import eventloop
from graphmem.bootstrap import RetrievalComponents
from graphmem.components import Components, open_components
from graphmem.domain.filters import FactFilters
from graphmem.domain.identity import Owner
from graphmem.domain.listing import SortOrder
from graphmem.domain.search_models import SearchQuery
from graphmem.embedded import EmbeddedNeo4j
from graphmem.embedding import Embedder
from graphmem.retrieval.search_preparer import MIN_CANDIDATES_PER_CHANNEL
from graphmem.settings import Settings

TENANT = "scale"
BIG, SMALL = 10_000, 500
BATCH = 1_000
QUESTIONS = 100
WARM_UP = 100
"""So many questions are asked again and again before anything is timed."""
ROUND_SECONDS = 10.0
MAX_ROUNDS = 18
STEADY_RATIO = 0.95
"""Each side is asked in rounds of so many seconds before it is timed, until a round's median is no longer below this
share of the best before it: a server compiles what it does often."""
QUANTILES = (0.5, 0.95, 0.99)


class SyntheticEmbedder:
    """The vectors of a made-up world; `real` spends the time of a real embedder first, where one is given."""

    def __init__(self, world: SyntheticData, dimension: int, real: Embedder | None = None) -> None:
        self._world = world
        self.dimension = dimension
        self.model = "made-up"
        self.real = real

    async def open(self) -> None:
        """Nothing to load."""

    async def embed(self, texts: Sequence[str], *, query: bool = False) -> list[list[float]]:
        """Return the vectors of texts."""
        if self.real:
            await self.real.embed([f"{text} {time.perf_counter_ns()}" for text in texts])
        return [self._world.vector(text) for text in texts]

    async def aclose(self) -> None:
        """Nothing to close."""


@dataclass(slots=True)
class ScaleResult:
    """What was measured at one size; times in milliseconds by what was asked and how many facts the user has."""

    facts: int
    seconds_to_load: float = 0.0
    loaded: int = 0
    took: dict[str, list[float]] = field(default_factory=dict)
    recall: dict[int, float] = field(default_factory=dict)
    memory_mb: float = 0.0
    disk_mb: float = 0.0

    @property
    def times_as_fast(self) -> dict[int, float]:
        """How many times as fast as Graphiti's the median search is, by how many facts the user has."""
        return {
            size: quantile(self.took[f"Graphiti search {size}"], 0.5) / quantile(self.took[f"search {size}"], 0.5)
            for size in self.recall
            if f"Graphiti search {size}" in self.took
        }


async def load(components: Components, world: SyntheticData, owner: Owner, count: int) -> None:
    """Write a user with `count` facts."""
    made = world.user(owner, count)
    for start in range(0, len(made.entities), BATCH):
        await components.graph.execute("entities.create_entities", entities=made.entities[start : start + BATCH])
    for start in range(0, len(made.facts), BATCH):
        await components.graph.execute("facts.create_versions", rows=made.facts[start : start + BATCH])
    await components.graph.write(lambda transaction: components.facts.lock_user(transaction, owner))


async def timed(step: ScaleResult, name: str, work: Awaitable[Any]) -> None:
    """Note how long something takes."""
    started = time.perf_counter()
    await work
    step.took.setdefault(name, []).append((time.perf_counter() - started) * 1000)


def questions(world: SyntheticData, made: Sequence[str], count: int) -> list[str]:
    """Return questions that share some words with what is known."""
    asked = []
    for _ in range(count):
        words = world.rng.choice(made).split()
        asked.append(" ".join([*world.rng.sample(words, k=min(5, len(words))), *world.sentence(2)]))
    return asked


async def sample_fact_texts(components: Components, owner: Owner) -> list[str]:
    """Return what some of a user's facts say."""
    filters = FactFilters(valid_at=datetime.now(UTC))
    memories, _ = await components.facts.list_page(owner, filters, sort=SortOrder.CREATED_AT, limit=500)
    return [memory.content for memory in memories]


async def measure(
    components: Components, world: SyntheticData, embedder: SyntheticEmbedder, real: Embedder, baseline: GraphitiBaseline | None, owners: list[Owner],
    size: int, step: ScaleResult,
) -> None:  # fmt: skip
    """Ask users of one size."""
    asked = []
    for owner in owners:
        known = await sample_fact_texts(components, owner)
        asked += [(owner, text, known) for text in questions(world, known, (QUESTIONS + WARM_UP) // len(owners))]
    world.rng.shuffle(asked)
    retrieval = RetrievalComponents.build(components)
    before = [(owner, text) for owner, text, _ in asked[:WARM_UP]]
    await warm_up(before, lambda owner, text: retrieval.search.search(owner, SearchQuery(query=text)))
    if baseline:
        await warm_up(before, lambda owner, text: baseline.search(owner, text, 10))
    for owner, text, known in asked[WARM_UP:]:
        query = SearchQuery(query=text)
        embedder.real = None
        await timed(step, f"search {size}", retrieval.search.search(owner, query))
        embedder.real = real
        await timed(step, f"search with embedding {size}", retrieval.search.search(owner, query))
        embedder.real = None
        name = " ".join(world.rng.choice(known).split()[-2:])
        fresh = RetrievalComponents.build(components)
        await timed(step, f"lookup cold {size}", fresh.lookup.lookup(owner, name, reinforce=False))
        await timed(step, f"lookup warm {size}", fresh.lookup.lookup(owner, name, reinforce=False))
        if baseline:
            await timed(step, f"Graphiti search {size}", baseline.search(owner, text, 10))
    await retrieval.reinforcement.close()
    step.recall[size] = await index_recall(
        components, retrieval, world, [(owner, text) for owner, text, _ in asked[WARM_UP:]]
    )


async def warm_up(asked: Sequence[tuple[Owner, str]], ask: Callable[[Owner, str], Awaitable[Any]]) -> None:
    """Ask until answers come no faster."""
    best = math.inf
    again = itertools.cycle(asked)
    for _ in range(MAX_ROUNDS):
        until = time.perf_counter() + ROUND_SECONDS
        took = []
        while (started := time.perf_counter()) < until:
            await ask(*next(again))
            took.append(time.perf_counter() - started)
        median = quantile(took, 0.5)
        if median > STEADY_RATIO * best:
            return
        best = median


async def index_recall(
    components: Components, retrieval: RetrievalComponents, world: SyntheticData, asked: Sequence[tuple[Owner, str]]
) -> float:
    """Return which share of the exact 20 nearest facts a search has from the index, of which it asks at least 60."""
    filters = FactFilters(valid_at=datetime.now(UTC))
    shares = []
    for owner, text in asked:
        vector = world.vector(text)
        found = (await retrieval.store.find_facts_by_vector(owner, vector, filters, MIN_CANDIDATES_PER_CHANNEL))[:20]
        nearest = await components.graph.fetch_value(
            "search.scan_facts_by_vector",
            group_ids=owner.readable_group_ids, vector=vector, limit=20, **filters.as_of_params, **filters.attribute_params,
        )  # fmt: skip
        exact = {uuid for uuid, *_ in nearest}
        shares.append(len(exact & {each.uuid for each in found}) / len(exact))
    return sum(shares) / len(shares)


async def run(sizes: Sequence[int], folder: Path, with_baseline: bool) -> list[ScaleResult]:
    """Fill and measure, size by size."""
    settings = Settings()
    async with AsyncExitStack() as stack:
        server = await EmbeddedNeo4j.start_or_join(folder, settings.cache_dir, mirror=settings.jar_mirror)
        stack.push_async_callback(server.stop)
        info = server.info
        here = {"neo4j_uri": info.uri, "neo4j_user": info.user, "neo4j_password": SecretStr(info.password)}
        components = await stack.enter_async_context(
            open_components(settings.model_copy(update={**here, "data_dir": folder}))
        )
        world = SyntheticData(7, components.embedder.dimension)
        embedder = SyntheticEmbedder(world, components.embedder.dimension)
        real = components.embedder
        components = replace_embedder(components, embedder)
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
                await load(components, world, owner, count)
                owners[count].append(owner)
                total += count
                step.loaded += count
                if number % 50 == 0:
                    print(f"{total} facts, {step.loaded / (time.perf_counter() - started):.0f} a second", flush=True)
            await components.graph.fetch("schema.await_indexes")
            step.seconds_to_load = time.perf_counter() - started
            for count, members in owners.items():
                if members:
                    chosen = world.rng.sample(members, min(10, len(members)))
                    await measure(components, world, embedder, real, baseline, chosen, count, step)
            step.memory_mb = psutil.Process(info.pid).memory_info().rss / 1e6
            step.disk_mb = disk_mb(folder)
            steps.append(step)
            print(table(steps), flush=True)
        return steps


def disk_mb(folder: Path) -> float:
    """Return what the files of a folder take, in MB."""
    return sum(each.stat().st_size for each in folder.rglob("*") if each.is_file()) / 1e6


def replace_embedder(components: Components, embedder: SyntheticEmbedder) -> Components:
    """Return the components with another embedder."""
    from dataclasses import replace

    return replace(components, embedder=embedder)


def table(steps: Sequence[ScaleResult]) -> str:
    """Return the report in Markdown."""
    names = list(dict.fromkeys(name for step in steps for name in step.took))
    lines = [
        "# Reads as the graph grows",
        "",
        "p50 / p95 / p99 in milliseconds; the number after a name is the facts of the user.",
        "",
    ]
    lines += ["| facts | " + " | ".join(names) + " |", "|---" * (len(names) + 1) + "|"]
    for step in steps:
        cells = (
            " / ".join(f"{quantile(step.took[name], share):.1f}" for share in QUANTILES) if name in step.took else ""
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
        faster = ", ".join(f"{value:.1f} ({size})" for size, value in step.times_as_fast.items())
        lines.append(
            f"| {step.facts:,} | {rate:.0f} | {recall} | {faster} | {step.memory_mb:.0f} | {step.disk_mb:.0f} |"
        )
    return "\n".join(lines) + "\n"


def plot(steps: Sequence[ScaleResult], path: Path) -> None:
    """Draw the medians over the size of the graph."""
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(figsize=(9, 5))
    for name in dict.fromkeys(name for step in steps for name in step.took):
        points = [(step.facts, quantile(step.took[name], 0.5)) for step in steps if name in step.took]
        axes.plot(*zip(*points, strict=True), marker="o", label=name)
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xlabel("facts in the graph")
    axes.set_ylabel("p50, milliseconds")
    axes.legend(fontsize="small", loc="center left", bbox_to_anchor=(1, 0.5))
    figure.savefig(path, dpi=150, bbox_inches="tight")


def main() -> None:
    """Run the bench for the sizes asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", default="1000,10000,100000,1000000", help="numbers of facts, rising")
    parser.add_argument("--data", type=Path, help="folder of the database; absent: a temporary one")
    parser.add_argument("--out", type=Path, default=Path("report"), help="folder of the report")
    parser.add_argument("--peer", action="store_true", help="ask Graphiti too")
    given = parser.parse_args()
    sizes = sorted(int(each) for each in given.sizes.split(","))
    with tempfile.TemporaryDirectory() as temporary:
        steps = eventloop.run(run(sizes, given.data or Path(temporary), given.peer))
    given.out.mkdir(parents=True, exist_ok=True)
    (given.out / "scale.md").write_text(table(steps), "utf-8")
    numbers = [
        {
            "facts": step.facts,
            "milliseconds": {
                name: [quantile(values, share) for share in QUANTILES] for name, values in step.took.items()
            },
            "recall": step.recall,
            "times_as_fast_as_graphiti": step.times_as_fast,
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
