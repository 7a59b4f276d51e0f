"""Measures whether use makes answers worse: evidence found on a new graph, and after many searches that reinforce.

    python -m benches.bench_habit FILE

`benches/conversations.py` describes the file; conversations without facts are left out. Each conversation becomes two
users. Of the first, all questions are asked three times, of the second one tenth of the questions fifty times. Before
and after, the share of the messages that answer each question is measured among the first 5, 10 and 20 messages, for
which facts count as their source messages, in the order of the facts. The users are erased at the end.
"""

from __future__ import annotations

import argparse
import asyncio
import uuid
from collections.abc import Sequence
from contextlib import AsyncExitStack
from pathlib import Path

from benches.bench_retrieval import TOP_K, erase
from benches.conversations import BenchmarkQuestion, Conversation, load, read
from benches.metrics import RECALL_CUTOFFS, Measurements
from graphmem.app.components import RetrievalComponents, open_components, running_database
from graphmem.runtime import process
from graphmem.runtime.settings import Settings
from graphmem.search.models import SearchQuery
from graphmem.tenants.owners import Owner

ALL_TIMES = 3
"""How often all questions are asked."""

TENTH_TIMES = 50
"""How often one tenth of the questions is asked."""

MAX_LOSS = 0.005
"""Most recall that use may cost."""

CONCURRENT_QUESTIONS = 4
"""Questions that are asked at a time."""


async def search(
    retrieval: RetrievalComponents, owner: Owner, question: BenchmarkQuestion, *, reinforce: bool
) -> list[str]:
    """Return the source messages of the facts that a search finds, in the order of the facts."""
    query = SearchQuery(query=question.text, limit=TOP_K, reinforce=reinforce)
    found = await retrieval.search.search(owner, query)
    return list(dict.fromkeys(key for hit in found.results for key in hit.memory.source.message_ids))


async def use(retrieval: RetrievalComponents, owner: Owner, questions: Sequence[BenchmarkQuestion], times: int) -> None:
    """Ask questions so often, and write what was retrieved."""
    for _ in range(times):
        for start in range(0, len(questions), CONCURRENT_QUESTIONS):
            asked = questions[start : start + CONCURRENT_QUESTIONS]
            await asyncio.gather(*(search(retrieval, owner, question, reinforce=True) for question in asked))
        await retrieval.reinforcement.flush()


async def measure(
    retrieval: RetrievalComponents, owner: Owner, questions: Sequence[BenchmarkQuestion], measured: Measurements
) -> list[list[str]]:
    """Add the evidence found for each question to the measurements; return the messages found."""
    orders = [await search(retrieval, owner, question, reinforce=False) for question in questions]
    for question, order in zip(questions, orders, strict=True):
        measured.add(question.category, order, question.evidence)
    return orders


async def run(conversations: Sequence[Conversation]) -> dict[str, Measurements]:
    """Measure on new graphs and after each use; print how many first sources changed."""
    uses = {
        f"all questions {ALL_TIMES} times": (1, ALL_TIMES),
        f"a tenth of the questions {TENTH_TIMES} times": (10, TENTH_TIMES),
    }
    results = {name: Measurements() for name in ("new graph", *uses)}
    changed = dict.fromkeys(uses, 0)
    async with AsyncExitStack() as stack:
        settings = await stack.enter_async_context(running_database(Settings()))
        components = await stack.enter_async_context(open_components(settings))
        retrieval = RetrievalComponents.build(components)
        tenant = f"bench{uuid.uuid4().hex[:8]}"
        for conversation in conversations:
            if not conversation.facts:
                continue
            for name, (step, times) in uses.items():
                owner = await load(conversation, tenant, components.episodes, components.facts, components.embedder)
                stack.push_async_callback(erase, components, owner)
                await components.graph.fetch("schema.await_indexes")
                before = Measurements() if step > 1 else results["new graph"]
                new = await measure(retrieval, owner, conversation.questions, before)
                await use(retrieval, owner, conversation.questions[::step], times)
                used = await measure(retrieval, owner, conversation.questions, results[name])
                changed[name] += sum(old[:1] != later[:1] for old, later in zip(new, used, strict=True))
            print(f"{conversation.id}: {len(conversation.questions)} questions")
    for name, count in changed.items():
        print(f"{name}: {count} first sources changed")
    return results


def main() -> None:
    """Run the benchmark on a file and print its report; fail where use costs more than `MAX_LOSS`."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", type=Path, help="conversations with facts and questions")
    conversations, _ = read(parser.parse_args().file)
    results = process.run(run(conversations))
    print("| | " + " | ".join(f"R@{cut}" for cut in RECALL_CUTOFFS) + " |")
    print("|---" * (len(RECALL_CUTOFFS) + 1) + "|")
    new = results["new graph"].mean()
    for name, measured in results.items():
        print(f"| {name} | " + " | ".join(f"{value:.3f}" for value in measured.mean()[:-1]) + " |")
    losses = [
        old - value for measured in results.values() for old, value in zip(new, measured.mean()[:-1], strict=False)
    ]
    if max(losses) > MAX_LOSS:
        raise SystemExit(f"Use costs {max(losses):.3f} of recall; at most {MAX_LOSS} is allowed.")


if __name__ == "__main__":
    main()
