"""Contexts on a real database, with a clock that tests advance."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

import pytest

from graphmem.app.bootstrap import Services
from graphmem.context.learning import ContextLearner
from graphmem.context.models import ContextRequest, ContextResponse
from graphmem.context.service import ContextService
from graphmem.context.store import ContextStore
from graphmem.context.surroundings import SurroundingsStore
from graphmem.context.usage import ContextUsage, ContextUseStore
from graphmem.conversations.episode_store import EpisodeStore
from graphmem.conversations.session import Message, MessageIn
from graphmem.conversations.stored import PreparedMessage
from graphmem.memories.entity_store import EntityStore
from graphmem.memories.fact_store import FactStore, ReinforcementBuffer
from graphmem.memories.memory import Memory, MemoryIn
from graphmem.memories.vectors import StoredVectors
from graphmem.memories.writer import MemoryWriter
from graphmem.models.embedder import Embedder
from graphmem.neo4j.driver import Graph
from graphmem.runtime.settings import Settings
from graphmem.search.hybrid_search import HybridSearch
from graphmem.search.lookup import EntityLookup, EntityNameCache
from graphmem.search.resident.copies import ResidentCopies
from graphmem.secrets.scanner import SecretPolicy
from graphmem.tenants.owners import Owner
from graphmem.tenants.profiles import TenantProfiles
from graphmem.tenants.rights import Rights
from graphmem.tenants.tenant_settings import TrustService
from tests.conftest import FakeClock


@dataclass
class ContextHarness:
    """One user's contexts and what is learned from them."""

    owner: Owner
    clock: FakeClock
    graph: Graph
    embedder: Embedder
    episodes: EpisodeStore
    memory_writer: MemoryWriter
    store: ContextStore
    contexts: ContextService
    learner: ContextLearner
    reinforcement: ReinforcementBuffer

    async def add_messages(self, session_id: str, *turns: MessageIn | str, learn: bool = False) -> list[Message]:
        """Store messages, and learn from them with `learn`; texts are of the user and the assistant in turn."""
        given = [
            turn if isinstance(turn, MessageIn) else MessageIn(role=("user", "assistant")[number % 2], content=turn)
            for number, turn in enumerate(turns)
        ]
        vectors = await self.embedder.embed([message.content for message in given])
        prepared = [PreparedMessage(message, vector) for message, vector in zip(given, vectors, strict=True)]
        stored = await self.episodes.append_messages(self.owner, session_id, prepared)
        messages = await self.episodes.load_messages(self.owner, stored.message_ids)
        if learn:
            await self.learner.learn_from_messages(self.owner, messages)
        return messages

    async def save_memories(self, *memories: MemoryIn | str, owner: Owner | None = None) -> list[Memory]:
        """Save memories; texts are facts."""
        given = [memory if isinstance(memory, MemoryIn) else MemoryIn(content=memory) for memory in memories]
        results = await self.memory_writer.save(owner or self.owner, given, actor="test", kind="user")
        return [result.memory for result in results if result.memory]

    async def build_context(self, question: str | None = None, **fields: Any) -> ContextResponse:
        """Build a context."""
        return await self.contexts.build(self.owner, ContextRequest(question=question, **fields))

    async def add_daily_messages(self, days: int, per_day: int = 1, **fields: Any) -> list[Message]:
        """Store messages on each of the last `days` days and learn from them."""
        noon = self.clock()
        messages = [
            MessageIn(
                role="user",
                content=f"question {day}-{number}",
                timestamp=noon - timedelta(days=day, minutes=number),
                **fields,
            )
            for day in range(days)
            for number in range(per_day)
        ]
        return await self.add_messages("spread", *messages, learn=True)


def message(content: str, *, role: str = "user", at: datetime | None = None, **fields: Any) -> Message:
    """Return a message that is not stored."""
    moment = at or datetime.fromisoformat("2026-06-01T12:00:00+00:00")
    filled: dict[str, Any] = {
        "id": "m", "session_id": "s", "user_id": "mara", "role": role, "content": content, "name": None,
        "timestamp": moment, "created_at": moment, "intent": None, "entities": {}, "metadata": {}, "rich_content": None,
        "confidence": None, "sql_executed": None, "query_results": None, "execution_time_ms": None,
        "feedback_score": None, "feedback_text": None, "position": 1, "extracted_at": None, **fields,
    }  # fmt: skip
    return Message(**filled)


@asynccontextmanager
async def open_harness(
    graph: Graph, owner: Owner, embedder: Embedder, clock: FakeClock, profiles: TenantProfiles
) -> AsyncIterator[ContextHarness]:
    entities, policy = EntityStore(graph), SecretPolicy()
    facts, episodes, vectors = FactStore(graph, entities, clock), EpisodeStore(graph, clock), StoredVectors(graph)
    sources = ResidentCopies(graph, vectors, Rights(graph), clock, max_bytes=50_000_000)
    names, reinforcement = EntityNameCache(clock), ReinforcementBuffer(facts, clock)
    search = HybridSearch(sources, entities, names, reinforcement, embedder, clock)
    lookup = EntityLookup(sources, entities, names, reinforcement, clock)
    store = ContextStore(graph, clock)
    usage = ContextUsage(ContextUseStore(graph, clock), facts, clock, days=30)
    yield ContextHarness(
        owner=owner,
        clock=clock,
        graph=graph,
        embedder=embedder,
        episodes=episodes,
        memory_writer=MemoryWriter(facts, embedder, policy, profiles),
        store=store,
        contexts=ContextService(
            store, SurroundingsStore(graph, clock), search, reinforcement, profiles, policy, clock, usage
        ),
        learner=ContextLearner(store, episodes, lookup, policy, profiles, clock, usage, TrustService(graph, clock)),
        reinforcement=reinforcement,
    )
    await usage.buffer.close()
    await reinforcement.close()
    await lookup.close()


@pytest.fixture
async def harness(graph: Graph, owner: Owner, embedder: Embedder, clock: FakeClock) -> AsyncIterator[ContextHarness]:
    """The contexts of a new user under the general profile."""
    async with open_harness(graph, owner, embedder, clock, TenantProfiles()) as harness:
        yield harness


@pytest.fixture
async def finance_harness(
    graph: Graph, owner: Owner, embedder: Embedder, clock: FakeClock
) -> AsyncIterator[ContextHarness]:
    """The contexts of a new user under the profile of a finance assistant."""
    async with open_harness(graph, owner, embedder, clock, TenantProfiles(["finance"])) as harness:
        yield harness


@pytest.fixture(scope="package")
async def memory(database: Settings, graph: Graph, embedder: Embedder) -> AsyncIterator[Services]:
    """The wired service with a worker, which learns from messages behind the reply."""
    async with Services.open(database, embedder=embedder) as memory:
        yield memory
