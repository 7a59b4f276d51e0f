"""The context verbs on the real database, by a clock that is advanced by hand."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

import pytest

from graphmem.bootstrap import Services
from graphmem.domain.context_models import ContextRequest, ContextResponse
from graphmem.domain.identity import Owner
from graphmem.domain.memory import Memory, MemoryIn
from graphmem.domain.policy import SecretPolicy
from graphmem.domain.session import Message, MessageIn
from graphmem.embedding import Embedder
from graphmem.ingestion.memory_writer import MemoryWriter
from graphmem.retrieval.entity_name_cache import EntityNameCache
from graphmem.retrieval.hybrid_search import HybridSearch
from graphmem.retrieval.lookup import EntityLookup
from graphmem.retrieval.reinforcement import ReinforcementBuffer
from graphmem.service.context import ContextService
from graphmem.settings import Settings
from graphmem.store.context import ContextStore
from graphmem.store.driver import Graph
from graphmem.store.entities import EntityStore
from graphmem.store.episode_mapping import PreparedMessage
from graphmem.store.episodes import EpisodeStore
from graphmem.store.facts import FactStore
from graphmem.store.search import SearchStore
from tests.conftest import FakeClock


@dataclass
class ContextHarness:
    """One user's context verbs, with short ways to say and save things."""

    owner: Owner
    clock: FakeClock
    graph: Graph
    embedder: Embedder
    episodes: EpisodeStore
    memory_writer: MemoryWriter
    store: ContextStore
    contexts: ContextService
    reinforcement: ReinforcementBuffer

    async def add_messages(self, session_id: str, *turns: MessageIn | str, learn: bool = False) -> list[Message]:
        """Store turns, and learn from them with `learn`; plain texts are the user's and the assistant's in turn."""
        told = [
            turn if isinstance(turn, MessageIn) else MessageIn(role=("user", "assistant")[place % 2], content=turn)
            for place, turn in enumerate(turns)
        ]
        vectors = await self.embedder.embed([each.content for each in told])
        ready = [PreparedMessage(each, vector) for each, vector in zip(told, vectors, strict=True)]
        stored = await self.episodes.append_messages(self.owner, session_id, ready, job_id=None)
        messages = await self.episodes.load_messages(self.owner, stored.message_ids)
        if learn:
            await self.contexts.learn_from_messages(self.owner, messages)
        return messages

    async def save_memories(self, *memories: MemoryIn | str, owner: Owner | None = None) -> list[Memory]:
        """Save memories; plain texts are facts."""
        given = [each if isinstance(each, MemoryIn) else MemoryIn(content=each) for each in memories]
        results = await self.memory_writer.save(owner or self.owner, given, actor="test", kind="api")
        return [each.memory for each in results if each.memory]

    async def build_context(self, question: str, **more: Any) -> ContextResponse:
        """Build a context."""
        return await self.contexts.build(self.owner, ContextRequest(question=question, **more))

    async def add_daily_messages(self, days: int, each: int = 1, **more: Any) -> list[Message]:
        """Say something on each of the last `days` days."""
        noon = self.clock()
        return await self.add_messages(
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
async def harness(graph: Graph, owner: Owner, embedder: Embedder, clock: FakeClock) -> AsyncIterator[ContextHarness]:
    """The context verbs of a fresh user."""
    entities, policy = EntityStore(graph), SecretPolicy()
    facts, episodes, searching = FactStore(graph, entities, clock), EpisodeStore(graph, clock), SearchStore(graph)
    names, reinforcement = EntityNameCache(searching, facts, clock), ReinforcementBuffer(graph, facts, clock)
    search = HybridSearch(searching, entities, episodes, names, reinforcement, embedder, clock)
    lookup = EntityLookup(searching, names, reinforcement, clock)
    store = ContextStore(graph, clock)
    yield ContextHarness(
        owner=owner,
        clock=clock,
        graph=graph,
        embedder=embedder,
        episodes=episodes,
        memory_writer=MemoryWriter(facts, embedder, policy),
        store=store,
        contexts=ContextService(store, episodes, search, lookup, reinforcement, policy, clock),
        reinforcement=reinforcement,
    )
    await reinforcement.close()
    await lookup.close()


@pytest.fixture(scope="package")
async def memory(database: Settings, graph: Graph) -> AsyncIterator[Services]:
    """The wired service with a worker, which learns from messages behind the reply."""
    async with Services.open(database) as memory:
        yield memory
