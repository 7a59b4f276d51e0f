"""Measures how much slower a small user gets as the graph fills with facts of other users.

    python -m benches.bench_growth [--facts 1000,100000,1000000] [--rounds 10] [--data FOLDER] [--out report]

Starts an embedded Neo4j in a folder, by default a temporary one, and fills it up to each number of facts with users of
500 and of 10,000 facts. At each size it runs every operation in each round, as a new user with 30 memories and 20
messages who is forgotten at the end of the round; the rounds of the warm-up are not timed. The report `growth.md`
contains the median of each operation at each size, and its ratio to that of the smallest graph. The goal is a ratio of
at most 1.5.
"""

from __future__ import annotations

import argparse
import tempfile
import time
import uuid
from collections.abc import Awaitable, Sequence
from pathlib import Path
from typing import TypeVar

from benches.bench_scale import BIG, SMALL, load
from benches.metrics import quantile
from benches.server_process import running_neo4j
from benches.synthetic_data import SyntheticData, users
from graphmem.app.bootstrap import Services
from graphmem.app.components import ConsolidationComponents
from graphmem.consolidation.models import RunListQuery, RunPhase, RunTrigger, parse_proposals
from graphmem.context.models import ContextRequest
from graphmem.conversations.session import MessageIn, MessageRole, MessagesIn, SessionListQuery
from graphmem.memories.filters import ListFilters
from graphmem.memories.memory import MemoryIn, MemoryPatch
from graphmem.runtime import process
from graphmem.runtime.paging import PageQuery
from graphmem.runtime.times import utc_now
from graphmem.search.models import EntityGraphQuery, EntityListQuery, EntityMemoriesQuery, SearchQuery
from graphmem.tenants.owners import Owner

GOAL = 1.5
"""Greatest ratio of a median to that of the smallest graph."""

FIRST_WARM_UP_ROUNDS = 40
"""Rounds at the first size that are not timed: a new server compiles its own code meanwhile."""

WARM_UP_ROUNDS = 5
"""Rounds at each further size that are not timed, in which the server plans the queries again."""

PLACES = ["Lund", "Turin", "Porto", "Oslo", "Gdansk", "Leeds", "Graz", "Nantes", "Bergen", "Split"]
"""Places that the statements of a user name."""

Result = TypeVar("Result")


class Stopwatch:
    """The durations of operations in milliseconds, by name, in the order of their first occurrence."""

    def __init__(self) -> None:
        self.durations_ms: dict[str, list[float]] = {}

    async def time(self, name: str, work: Awaitable[Result]) -> Result:
        """Return the result of some work and record its duration."""
        started = time.perf_counter()
        result = await work
        self.durations_ms.setdefault(name, []).append((time.perf_counter() - started) * 1000)
        return result


async def run_round(memory: Services, owner: Owner, watch: Stopwatch) -> None:
    """Run every operation as one new user."""
    friends = [{"name": "Frederick", "type": "Person"}, {"name": "Fred", "type": "Person"}]
    await memory.memories.save(
        owner,
        [
            MemoryIn(content=f"Mara visited {place} {n} times", object={"name": place})
            for n in range(3)
            for place in PLACES
        ]
        + [MemoryIn(content=f"{friend['name']} likes tea", subject=friend) for friend in friends],
    )
    saved = await watch.time("save", memory.memories.save(owner, [MemoryIn(content="Mara moved to Lund")]))
    assert saved[0].memory
    memory_id = saved[0].memory.id
    await watch.time("patch", memory.memories.patch(owner, memory_id, MemoryPatch(content="Mara moved to Oslo")))
    await watch.time("get", memory.memories.get(owner, memory_id))
    await watch.time("history", memory.memories.history(owner, memory_id))
    await watch.time("list", memory.memories.page(owner, ListFilters()))
    await post_messages(memory, owner, watch)
    await read_and_search(memory, owner, watch)
    await consolidate(memory, owner, watch)
    document = await watch.time("export", memory.exports.export(owner))
    twin = Owner(owner.tenant, f"{owner.user_id}-twin")
    await watch.time("import", memory.imports.import_(twin, document))
    await watch.time("delete", memory.memories.delete(owner, memory_id))
    await watch.time("hard delete", memory.forgetting.erase_memory(owner, memory_id))
    await watch.time("forget", memory.forgetting.forget(owner))
    await memory.forgetting.forget(twin)


async def post_messages(memory: Services, owner: Owner, watch: Stopwatch) -> None:
    """Post messages, and read them and their session."""
    for number in range(10):
        turns = [
            MessageIn(role=MessageRole.USER, content=f"Tell me about {PLACES[number]}.", intent="travel"),
            MessageIn(role=MessageRole.ASSISTANT, content=f"{PLACES[number]} is a city."),
        ]
        batch = MessagesIn(session_id="talk", messages=turns, extract=False)
        await watch.time("message post", memory.messages.add(owner, batch))
    await watch.time("messages", memory.messages.list_messages(owner, "talk", PageQuery()))
    await watch.time("sessions", memory.messages.list_sessions(owner, SessionListQuery()))


async def read_and_search(memory: Services, owner: Owner, watch: Stopwatch) -> None:
    """Search, look up, build a context, and read entities."""
    question = "What do I know about Turin?"
    await watch.time("search", memory.retrieval.search(owner, SearchQuery(query=question, include_messages=True)))
    await watch.time("lookup", memory.retrieval.lookup(owner, question))
    await watch.time("context", memory.contexts.build(owner, ContextRequest(question=question, session_id="talk")))
    entities = await watch.time("entities", memory.entities.page(owner, EntityListQuery(query="turin")))
    entity_id = entities.items[0].id
    await watch.time("entity", memory.entities.get(owner, entity_id))
    await watch.time("entity memories", memory.entities.list_memories(owner, entity_id, EntityMemoriesQuery()))
    await watch.time("entity graph", memory.entities.get_graph(owner, entity_id, EntityGraphQuery()))


async def consolidate(memory: Services, owner: Owner, watch: Stopwatch) -> None:
    """Make two entities one, read the runs, and roll the run back."""
    parts = ConsolidationComponents.build(memory.components)
    named = {entity.name: entity.id for entity in (await memory.entities.page(owner, EntityListQuery())).items}
    proposals = [{"action": "LINK_ENTITIES", "keep_id": named["Frederick"], "merge_id": named["Fred"]}]
    run_id = str(uuid.uuid4())
    reviewed = await parts.executor.attach_versions(owner, parse_proposals(proposals))
    await parts.runs.create(run_id, owner.tenant, owner, RunTrigger.CURATED, utc_now(), phase=RunPhase.ANALYSED)
    result = await watch.time("merge", parts.executor.execute(owner, run_id, reviewed, curated=True))
    assert result.change_count
    await watch.time("runs", memory.consolidations.page(owner.tenant, RunListQuery(user_id=owner.user_id)))
    await watch.time("rollback", memory.consolidations.rollback(owner.tenant, run_id))


async def measure(memory: Services, rounds: int, warm_up_rounds: int) -> dict[str, list[float]]:
    """Return the durations of every operation in milliseconds."""
    watch = Stopwatch()
    for number in range(warm_up_rounds + rounds):
        owner = Owner(f"round{uuid.uuid4().hex[:8]}", "mara")
        await run_round(memory, owner, watch if number >= warm_up_rounds else Stopwatch())
    return watch.durations_ms


async def run(sizes: Sequence[int], rounds: int, folder: Path) -> dict[int, dict[str, list[float]]]:
    """Fill the graph and measure it, size by size."""
    async with running_neo4j(folder) as settings, Services.open(settings, worker=False) as memory:
        data = SyntheticData(7, memory.components.embedder.dimension)
        found: dict[int, dict[str, list[float]]] = {}
        total = 0
        for size in sizes:
            for owner, count in users(size - total, f"growth{size}", BIG, SMALL):
                await load(memory.components, data, owner, count)
                total += count
            await memory.components.graph.fetch("schema.await_indexes")
            print(f"{total:,} facts", flush=True)
            found[total] = await measure(memory, rounds, WARM_UP_ROUNDS if found else FIRST_WARM_UP_ROUNDS)
        return found


def table(found: dict[int, dict[str, list[float]]]) -> str:
    """Return the report in Markdown."""
    sizes = list(found)
    heads = [f"{size:,}" for size in sizes] + [f"ratio at {size:,}" for size in sizes[1:]]
    lines = [
        "# Operations of a small user among facts of others",
        "",
        f"Medians in milliseconds, by facts of others; the goal is a ratio of at most {GOAL}.",
        "",
        f"| operation | {' | '.join(heads)} |",
        "|---" * (len(heads) + 1) + "|",
    ]
    for name in found[sizes[0]]:
        medians = [quantile(found[size][name], 0.5) for size in sizes]
        ratios = [median / medians[0] for median in medians[1:]]
        cells = [f"{median:.1f}" for median in medians] + [
            f"**{ratio:.2f}**" if ratio > GOAL else f"{ratio:.2f}" for ratio in ratios
        ]
        lines.append(f"| {name} | {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def main() -> None:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--facts", default="1000,100000,1000000", help="numbers of facts of other users, separated by commas"
    )
    parser.add_argument("--rounds", type=int, default=10, help="rounds that are timed at each size")
    parser.add_argument("--data", type=Path, help="folder of the database; a temporary one by default")
    parser.add_argument("--out", type=Path, default=Path("report"), help="folder of the report")
    given = parser.parse_args()
    sizes = sorted(int(size) for size in given.facts.split(","))
    with tempfile.TemporaryDirectory() as temporary:
        found = process.run(run(sizes, given.rounds, given.data or Path(temporary)))
    given.out.mkdir(parents=True, exist_ok=True)
    (given.out / "growth.md").write_text(table(found), "utf-8")
    print(table(found))


if __name__ == "__main__":
    main()
