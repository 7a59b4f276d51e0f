"""The context verbs on the real database, by a clock that is advanced by hand."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

import pytest

from graphmem.bootstrap import GraphMemory
from graphmem.domain.context import Context, ContextRequest
from graphmem.domain.identity import Owner
from graphmem.domain.memory import Memory, MemoryIn
from graphmem.domain.policy import SecretPolicy
from graphmem.domain.session import Message, MessageIn
from graphmem.embedding import Embedder
from graphmem.ingestion.saving import Saving
from graphmem.retrieval.entities import NamesAtHand
from graphmem.retrieval.lookup import Lookup
from graphmem.retrieval.reinforce import Reinforcement
from graphmem.retrieval.search import Search
from graphmem.service.context import Contexts
from graphmem.settings import Settings
from graphmem.store.context import ContextStore
from graphmem.store.driver import Graph
from graphmem.store.entities import EntityStore
from graphmem.store.episode_rows import Turn
from graphmem.store.episodes import EpisodeStore
from graphmem.store.facts import FactStore
from graphmem.store.search import SearchStore
from tests.conftest import FakeClock


@dataclass
class Ground:
    """One user's context verbs, with short ways to say and save things."""

    owner: Owner
    clock: FakeClock
    graph: Graph
    embedder: Embedder
    episodes: EpisodeStore
    saving: Saving
    store: ContextStore
    contexts: Contexts
    reinforcement: Reinforcement

    async def say(self, session_id: str, *turns: MessageIn | str, learn: bool = False) -> list[Message]:
        """Store turns, and learn from them with `learn`; plain texts are the user's and the assistant's in turn."""
        told = [
            turn if isinstance(turn, MessageIn) else MessageIn(role=("user", "assistant")[place % 2], content=turn)
            for place, turn in enumerate(turns)
        ]
        vectors = await self.embedder.embed([each.content for each in told])
        ready = [Turn(each, vector) for each, vector in zip(told, vectors, strict=True)]
        stored = await self.episodes.append(self.owner, session_id, ready, job_id=None)
        messages = await self.episodes.load(self.owner, stored.message_ids)
        if learn:
            await self.contexts.on_messages(self.owner, messages)
        return messages

    async def save(self, *memories: MemoryIn | str, owner: Owner | None = None) -> list[Memory]:
        """Save memories; plain texts are facts."""
        given = [each if isinstance(each, MemoryIn) else MemoryIn(content=each) for each in memories]
        results = await self.saving.save(owner or self.owner, given, actor="test", kind="api")
        return [each.memory for each in results if each.memory]

    async def ask(self, question: str, **more: Any) -> Context:
        """Build a context."""
        return await self.contexts.build(self.owner, ContextRequest(question=question, **more))

    async def spread(self, days: int, each: int = 1, **more: Any) -> list[Message]:
        """Say something on each of the last `days` days."""
        noon = self.clock()
        return await self.say(
            "spread",
            *(
                MessageIn(
                    role="user",
                    content=f"question {day}-{number}",
                    timestamp=noon - timedelta(days=day, minutes=number),
                    **more,
                )
                for day in range(days)
                for number in range(each)
            ),
            learn=True,
        )


def message(content: str, *, role: str = "user", at: datetime | None = None, **more: Any) -> Message:
    """A message that is not stored anywhere."""
    moment = at or datetime.fromisoformat("2026-06-01T12:00:00+00:00")
    filled: dict[str, Any] = {
        "id": "m", "session_id": "s", "user_id": "mara", "role": role, "content": content, "name": None,
        "timestamp": moment, "created_at": moment, "intent": None, "entities": {}, "metadata": {}, "rich_content": None,
        "confidence": None, "sql_executed": None, "query_results": None, "execution_time_ms": None,
        "feedback_score": None, "feedback_text": None, "position": 1, "extracted_at": None, **more,
    }  # fmt: skip
    return Message(**filled)


@pytest.fixture
async def ground(graph: Graph, owner: Owner, embedder: Embedder, clock: FakeClock) -> AsyncIterator[Ground]:
    """The context verbs of a fresh user."""
    entities, policy = EntityStore(graph), SecretPolicy()
    facts, episodes, searching = FactStore(graph, entities, clock), EpisodeStore(graph, clock), SearchStore(graph)
    names, reinforcement = NamesAtHand(searching, facts, clock), Reinforcement(graph, facts, clock)
    search = Search(searching, entities, episodes, names, reinforcement, embedder, clock)
    lookup = Lookup(searching, names, reinforcement, clock)
    store = ContextStore(graph, clock)
    yield Ground(
        owner=owner,
        clock=clock,
        graph=graph,
        embedder=embedder,
        episodes=episodes,
        saving=Saving(facts, embedder, policy),
        store=store,
        contexts=Contexts(store, episodes, search, lookup, reinforcement, policy, clock),
        reinforcement=reinforcement,
    )
    await reinforcement.close()
    await lookup.close()


@pytest.fixture(scope="package")
async def memory(database: Settings, graph: Graph) -> AsyncIterator[GraphMemory]:
    """The wired service with a worker, which learns from messages behind the reply."""
    async with GraphMemory.open(database) as memory:
        yield memory
