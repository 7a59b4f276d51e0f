"""Measures the quality of search, compared with Graphiti's search on the same graph in the same run.

    python -m benches.bench_retrieval FILE [--out report] [--no-peer]

`benches/conversations.py` describes the file. Every conversation becomes a user of a tenant that is erased at the end.
For each question that the conversation answers, the share of the messages that answer it is measured among the first 5,
10 and 20 messages found; facts count as their source messages, in the order of the facts. Conversations without facts
are measured if the whole file has none: Graphiti then searches its episodes. BM25 ranks all messages of a conversation
by their words. The durations are those of questions whose vector is cached; the embedding of a new question is measured
apart. Writes `retrieval.md`, `retrieval.json` and `retrieval.png` into the report folder.
"""

from __future__ import annotations

import argparse
import json
import time
import uuid
from collections.abc import Awaitable, Sequence
from contextlib import AsyncExitStack
from pathlib import Path
from typing import TypeVar

from benches.conversations import BenchmarkQuestion, Conversation, load, read
from benches.metrics import RECALL_CUTOFFS, Measurements, quantile
from graphmem.app.components import (
    Components,
    RetrievalComponents,
    open_components,
    running_database,
)
from graphmem.evaluation.graphiti_system import GraphitiBaseline, open_graphiti_baseline
from graphmem.runtime import process
from graphmem.runtime.settings import Settings
from graphmem.search.bm25 import bm25_scores
from graphmem.search.models import MessageSearchQuery, SearchQuery
from graphmem.tenants.owners import Owner
from graphmem.text.tokenising import tokenize
from graphmem.user_data.forget import ForgetStore

T = TypeVar("T")

MESSAGES, FACTS, EVIDENCE = "messages", "facts", "evidence (fused)"
BM25, BASELINE = "BM25 over the messages", "Graphiti search"
TOP_K = 20


async def timed(measured: Measurements, work: Awaitable[T]) -> T:
    """Return the result of `work` and record its duration."""
    started = time.perf_counter()
    result = await work
    measured.durations_ms.append((time.perf_counter() - started) * 1000)
    return result


async def ask(
    retrieval: RetrievalComponents, owner: Owner, question: BenchmarkQuestion, results: dict[str, Measurements]
) -> None:
    """Ask graphmem one question in two ways, and in a third one if there are facts."""
    messages = await timed(
        results[MESSAGES], retrieval.search.search_messages(owner, MessageSearchQuery(query=question.text, limit=TOP_K))
    )
    results[MESSAGES].add(question.category, [hit.message.id for hit in messages.results], question.evidence)
    plain = SearchQuery(query=question.text, limit=TOP_K, reinforce=False)
    if FACTS in results:
        facts = await timed(results[FACTS], retrieval.search.search(owner, plain))
        sources = dict.fromkeys(key for hit in facts.results for key in hit.memory.source.message_ids)
        results[FACTS].add(question.category, list(sources), question.evidence)
    fused = await timed(
        results[EVIDENCE], retrieval.search.search(owner, plain.model_copy(update={"include_messages": True}))
    )
    results[EVIDENCE].add(question.category, [evidence.message_id for evidence in fused.evidence], question.evidence)


async def ask_baseline(
    baseline: GraphitiBaseline,
    owner: Owner,
    question: BenchmarkQuestion,
    ids: dict[str, str],
    measured: Measurements,
    *,
    has_facts: bool,
) -> None:
    """Ask Graphiti one question; `ids` are the message ids by the uuid of the episode."""
    if has_facts:
        facts = await timed(measured, baseline.search(owner, question.text, TOP_K))
        found = [uuid for episodes in facts for uuid in episodes]
    else:
        found = await timed(measured, baseline.search_episodes(owner, question.text, TOP_K))
    order = dict.fromkeys(ids[uuid] for uuid in found if uuid in ids)
    measured.add(question.category, list(order), question.evidence)


def rank_by_words(conversation: Conversation, question: str) -> list[str]:
    """Return the ids of all messages of a conversation, those with the highest BM25 score first."""
    ids = [message["id"] for message in conversation.messages]
    scores = bm25_scores(tokenize(question), [tokenize(message["content"]) for message in conversation.messages])
    return [message_id for _, message_id in sorted(zip(scores, ids, strict=True), key=lambda item: -item[0])]


async def run(conversations: Sequence[Conversation], with_baseline: bool) -> tuple[dict[str, Measurements], float]:
    """Load, ask and erase; return the measurements and the median duration of an embedding in milliseconds."""
    has_facts = any(conversation.facts for conversation in conversations)
    names = [MESSAGES, *([FACTS] if has_facts else []), EVIDENCE, BM25, *([BASELINE] if with_baseline else [])]
    results = {name: Measurements() for name in names}
    embedding: list[float] = []
    async with AsyncExitStack() as stack:
        settings = await stack.enter_async_context(running_database(Settings()))
        components = await stack.enter_async_context(open_components(settings))
        baseline = (
            await stack.enter_async_context(open_graphiti_baseline(settings, components.embedder))
            if with_baseline
            else None
        )
        retrieval = RetrievalComponents.build(components)
        tenant = f"bench{uuid.uuid4().hex[:8]}"
        for conversation in conversations:
            if has_facts and not conversation.facts:
                print(f"{conversation.id}: no facts, left out")
                continue
            owner = await load(conversation, tenant, components.episodes, components.facts, components.embedder)
            stack.push_async_callback(erase, components, owner)
            await components.graph.fetch("schema.await_indexes")
            ids = [message["id"] for message in conversation.messages]
            rows = await components.graph.fetch("episodes.fetch_texts", group_id=owner.group_id, message_ids=ids)
            stored = {row["uuid"]: row["message_id"] for row in rows}
            for question in conversation.questions:
                started = time.perf_counter()
                await components.embedder.embed([question.text])
                embedding.append((time.perf_counter() - started) * 1000)
                await ask(retrieval, owner, question, results)
                results[BM25].add(question.category, rank_by_words(conversation, question.text), question.evidence)
                if baseline:
                    await ask_baseline(baseline, owner, question, stored, results[BASELINE], has_facts=has_facts)
            print(f"{conversation.id}: {len(conversation.questions)} questions")
    return results, quantile(embedding, 0.5)


async def erase(components: Components, owner: Owner) -> None:
    """Erase a user of the benchmark."""
    erasure = await ForgetStore(components.graph, components.clock).begin(owner)
    await erasure.end()


def table(results: dict[str, Measurements], categories: dict[int, str], embedding: float) -> str:
    """Return the report in Markdown."""
    total = len(next(iter(results.values())).rows)
    asked = {key: name for key, name in categories.items() if key in results[EVIDENCE].categories}
    head = [
        "| | " + " | ".join(f"R@{cut}" for cut in RECALL_CUTOFFS) + " | MRR | p50 ms | p95 ms |",
        "|---" * (len(RECALL_CUTOFFS) + 4) + "|",
    ]
    lines = [f"# Evidence found, {total} questions", "", *head]
    for name, measured in results.items():
        values = [f"{value:.3f}" for value in measured.mean()]
        durations = [f"{quantile(measured.durations_ms, share):.1f}" for share in (0.5, 0.95) if measured.durations_ms]
        lines.append("| " + " | ".join([name, *values, *(durations or ["", ""])]) + " |")
    lines += ["", f"A new question adds its embedding: {embedding:.1f} ms (p50).", ""]
    cutoffs = " / ".join(f"R@{cut}" for cut in RECALL_CUTOFFS)
    lines += [f"## {cutoffs} by category", "", f"| | {' | '.join(results)} |", "|---" * (len(results) + 1) + "|"]
    for key, name in asked.items():
        figures = [measured.mean(key)[: len(RECALL_CUTOFFS)] for measured in results.values()]
        cells = " | ".join(" / ".join(f"{value:.3f}" for value in recalls) for recalls in figures)
        lines.append(f"| {name} | {cells} |")
    return "\n".join(lines) + "\n"


def plot(results: dict[str, Measurements], categories: dict[int, str], path: Path) -> None:
    """Draw recall@10 by category."""
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot

    keys = [key for key in categories if key in results[EVIDENCE].categories]
    figure, axes = pyplot.subplots(figsize=(5 + len(keys), 4.5))
    width = 0.8 / len(results)
    for index, (name, measured) in enumerate(results.items()):
        heights = [measured.mean()[1], *(measured.mean(key)[1] for key in keys)]
        axes.bar([place + index * width for place in range(len(heights))], heights, width, label=name)
    axes.set_xticks(
        [place + 0.4 - width / 2 for place in range(len(keys) + 1)],
        ["all", *(categories[key].replace(" ", "\n") for key in keys)],
    )
    axes.set_ylabel("evidence among the first 10 messages")
    axes.set_ylim(0, 1)
    axes.legend(loc="lower left")
    figure.tight_layout()
    figure.savefig(path, dpi=150)


def main() -> None:
    """Run the benchmark on a file."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", type=Path, nargs="?", help="conversations with questions")
    parser.add_argument("--data", type=Path, help="the same, as an option")
    parser.add_argument("--out", type=Path, default=Path("report"), help="folder of the report")
    parser.add_argument("--no-peer", action="store_true", help="do not measure Graphiti")
    given = parser.parse_args()
    source = given.data or given.file
    if source is None or not source.is_file():
        parser.error("name a file of conversations: python -m benches.bench_retrieval FILE")
    conversations, categories = read(source)
    results, embedding = process.run(run(conversations, not given.no_peer))
    if not results[EVIDENCE].rows:
        parser.error("the file has no question that a conversation answers")
    given.out.mkdir(parents=True, exist_ok=True)
    report = table(results, categories, embedding)
    (given.out / "retrieval.md").write_text(report, "utf-8")
    numbers = {
        name: {"all": measured.mean(), **{category: measured.mean(key) for key, category in categories.items()}}
        for name, measured in results.items()
    }
    (given.out / "retrieval.json").write_text(json.dumps(numbers, indent=2), "utf-8")
    plot(results, categories, given.out / "retrieval.png")
    print(report)


if __name__ == "__main__":
    main()
