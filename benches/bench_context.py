"""Measures how long a context takes for a user with 5,000 memories and 500 sessions.

    python -m benches.bench_context [--memories 5000] [--sessions 500] [--turns 20] [--questions 200]

Runs on the database of the settings (GRAPHMEM_NEO4J_URI …, else the embedded one), as a tenant that is erased at the
end. `written` are contexts built right after a write to the user, `unwritten` the others.
"""

from __future__ import annotations

import argparse
import random
import statistics
import time
import uuid
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

from graphmem.app.bootstrap import Services
from graphmem.app.components import Components
from graphmem.context.models import ContextRequest
from graphmem.conversations.session import MessageIn, MessageRole
from graphmem.conversations.stored import PreparedMessage
from graphmem.memories.memory import MemoryIn
from graphmem.memories.new_memory import NewMemory
from graphmem.runtime import process
from graphmem.runtime.settings import Settings
from graphmem.tenants.owners import Owner

TOPICS = [
    "rent", "groceries", "cycling", "chess", "pottery", "Lisbon", "sourdough", "gardening", "taxes", "violin", "hiking",
    "printers", "Python", "jazz", "ferries",
]  # fmt: skip
"""Words that the statements are about."""

VERBS = ["likes", "avoids", "plans", "asks about", "works on", "reads about", "saves for", "teaches"]
"""What the user of the statements does with them."""

WARM_UP = 100
"""Contexts that are built before any is timed, so that the server has compiled the queries."""

DOMAINS = [None, None, None, None, "coding", "cooking", "travel", "finance"]
"""Domains of memories and questions; half of them have none."""


def make_statements(count: int, rng: random.Random) -> list[str]:
    """Return distinct statements."""
    return [
        f"The user {rng.choice(VERBS)} {rng.choice(TOPICS)} and {rng.choice(TOPICS)} (note {number})"
        for number in range(count)
    ]


def format_percentiles(seconds: Sequence[float]) -> str:
    """Return median and 95th percentile in milliseconds."""
    ordered = sorted(seconds)
    high = ordered[int(0.95 * (len(ordered) - 1))]
    return f"p50 {statistics.median(ordered) * 1000:6.1f} ms   p95 {high * 1000:6.1f} ms"


async def fill(components: Components, owner: Owner, memories: int, sessions: int, turns: int) -> None:
    """Write the user's memories and sessions."""
    rng = random.Random(7)
    embedder, facts, episodes = components.embedder, components.facts, components.episodes
    texts = make_statements(memories, rng)
    vectors = await embedder.embed(texts)
    names = {owner.user_id: (await embedder.embed([owner.user_id]))[0]}
    for start in range(0, memories, 250):
        statements = [
            NewMemory(MemoryIn(content=text, importance=round(rng.random(), 2), domain=rng.choice(DOMAINS)), vector)
            for text, vector in zip(texts[start : start + 250], vectors[start : start + 250], strict=True)
        ]
        await facts.save(owner, statements, names, "bench")
    begin = datetime.now(UTC) - timedelta(days=sessions)
    for number in range(sessions):
        messages = [
            MessageIn(
                role=MessageRole.USER if turn % 2 == 0 else MessageRole.ASSISTANT,
                content=rng.choice(texts),
                intent=rng.choice(["spending_analysis", "planning", "small_talk"]) if turn % 2 == 0 else None,
                timestamp=begin + timedelta(days=number, minutes=turn),
            )
            for turn in range(turns)
        ]
        stored = [PreparedMessage(message, rng.choice(vectors)) for message in messages]
        await episodes.append_messages(owner, f"session-{number}", stored)


async def ask(memory: Services, owner: Owner, questions: int) -> dict[str, list[float]]:
    """Return the durations of contexts in seconds: right after a write, and otherwise."""
    rng = random.Random(11)
    durations: dict[str, list[float]] = {"written": [], "unwritten": []}
    followup = PreparedMessage(
        MessageIn(role=MessageRole.USER, content="and then?"), [0.1] * memory.components.embedder.dimension
    )
    for number in range(WARM_UP + questions):
        if number % 2:
            await memory.components.episodes.append_messages(owner, "session-1", [followup])
        reference = rng.choice([" from our last talk", "", ""])
        request = ContextRequest(
            question=f"What do I know about {rng.choice(TOPICS)} and {rng.choice(TOPICS)}{reference}?",
            session_id="session-1",
            domain=rng.choice(DOMAINS),
        )
        started = time.perf_counter()
        await memory.contexts.build(owner, request)
        if number >= WARM_UP:
            durations["written" if number % 2 else "unwritten"].append(time.perf_counter() - started)
    return durations


async def main() -> None:
    """Fill the database, build contexts, print their durations, erase the data."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name, default in (("memories", 5_000), ("sessions", 500), ("turns", 20), ("questions", 200)):
        parser.add_argument(f"--{name}", type=int, default=default)
    given = parser.parse_args()
    owner = Owner(f"bench{uuid.uuid4().hex[:8]}", "rich")
    async with Services.open(Settings(), worker=False) as memory:
        try:
            await fill(memory.components, owner, given.memories, given.sessions, given.turns)
            durations = await ask(memory, owner, given.questions)
        finally:
            await memory.forgetting.forget(owner)
    everything = [seconds for group in durations.values() for seconds in group]
    for name, seconds in {**durations, "all": everything}.items():
        print(f"{name:10} {format_percentiles(seconds)}")


if __name__ == "__main__":
    process.run(main())
