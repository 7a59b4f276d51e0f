"""Contexts of one size from graphmem's context, graphmem's search and Graphiti's search on the same graph."""

from __future__ import annotations

import uuid
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from benches.conversations import Conversation, load
from benches.graphiti_baseline import GraphitiBaseline, open_graphiti_baseline
from evaluation.answers.questions import AskedQuestion
from graphmem.app.components import (
    Components,
    RetrievalComponents,
    open_components,
    running_database,
)
from graphmem.context.builder import ContextBuilder, SnapshotCache
from graphmem.context.models import ContextRequest
from graphmem.context.store import ContextStore
from graphmem.context.surroundings import SurroundingsStore
from graphmem.runtime.settings import Settings
from graphmem.search.models import SearchQuery
from graphmem.tenants.owners import Owner
from graphmem.text.token_counts import count_tokens, truncate_to_tokens
from graphmem.user_data.forget import ForgetStore

BUDGETS = (250, 500, 1_000, 2_000)
"""Tokens of a context at most; the question is not counted."""

CONTEXT, SEARCH, GRAPHITI = "graphmem context", "graphmem search", "Graphiti search"
"""What a context is from."""

SYSTEMS = (CONTEXT, SEARCH, GRAPHITI)

MAX_HITS = 100
"""Facts or messages that a search returns; more than the largest context can hold."""

MIN_TRUNCATED_TOKENS = 16
"""Tokens that a truncated line keeps at least; a shorter one is left out."""


@dataclass(frozen=True, slots=True)
class AnswerContext:
    """A context for a question; `covered` are the messages that are in it or that facts in it were taken from."""

    question: AskedQuestion
    system: str
    budget: int
    text: str
    covered: frozenset[str]


@dataclass(frozen=True, slots=True)
class FoundLine:
    """A fact or a message found, as a line of a context, and the ids of its messages."""

    text: str
    message_ids: Sequence[str]


@dataclass(frozen=True, slots=True)
class LoadedConversation:
    """A conversation in the graph; `messages` are its messages by id, `ids` their ids by the uuid of the episode."""

    owner: Owner
    has_facts: bool
    messages: Mapping[str, dict[str, Any]]
    ids: Mapping[str, str]


def fill_budget(lines: Iterable[FoundLine], budget: int) -> tuple[str, frozenset[str]]:
    """Return the lines that fit into a budget, best first, and the messages that they cover.

    A line that is too long is left out for a shorter one; the first one that is too long is truncated at the end.
    """
    chosen: list[FoundLine] = []
    first_left_out: FoundLine | None = None
    used = 0
    for line in lines:
        cost = count_tokens(line.text) + 1
        if used + cost <= budget:
            chosen.append(line)
            used += cost
        elif first_left_out is None:
            first_left_out = line
    if first_left_out and budget - used > MIN_TRUNCATED_TOKENS:
        text = truncate_to_tokens(first_left_out.text, budget - used - 1)
        chosen.append(FoundLine(text, first_left_out.message_ids))
    text = "\n".join(line.text for line in chosen)
    return text, frozenset(key for line in chosen for key in line.message_ids)


def describe_fact(fact: str, valid_at: datetime | None, invalid_at: datetime | None) -> str:
    """Return a fact of Graphiti as a line with the days between which it holds."""
    since = f"{valid_at:%Y-%m-%d}" if valid_at else "date unknown"
    until = f"{invalid_at:%Y-%m-%d}" if invalid_at else "present"
    return f"- {_single_line(fact)} ({since} - {until})"


def describe_message(message: Mapping[str, Any]) -> str:
    """Return a message of a conversation as a line with its day and its speaker."""
    speaker = message.get("name") or message["role"]
    return f"- {message['timestamp'][:10]}, {speaker}: {_single_line(message['content'])}"


class ContextSource:
    """Builds the contexts of questions about loaded conversations; the database is migrated and empty of them."""

    def __init__(self, components: Components, baseline: GraphitiBaseline) -> None:
        self._components = components
        self._baseline = baseline
        self._search = RetrievalComponents.build(components).search
        store = ContextStore(components.graph, components.clock)
        snapshots = SnapshotCache(store, components.clock)
        self._builder = ContextBuilder(
            store,
            SurroundingsStore(components.graph, components.clock),
            snapshots,
            self._search,
            components.profiles,
            components.clock,
        )

    @asynccontextmanager
    async def load(self, entry: dict[str, Any], tenant: str) -> AsyncIterator[LoadedConversation]:
        """Store a conversation of a file for a new user, who is erased at the end."""
        components = self._components
        messages = [{"name": None, **message} for message in entry["messages"]]
        conversation = Conversation(entry["id"], messages, entry.get("facts") or [], [])
        owner = await load(conversation, tenant, components.episodes, components.facts, components.embedder)
        try:
            await components.graph.fetch("schema.await_indexes")
            by_id = {message["id"]: message for message in messages}
            rows = await components.graph.fetch(
                "episodes.fetch_texts", group_id=owner.group_id, message_ids=list(by_id)
            )
            ids = {row["uuid"]: row["message_id"] for row in rows}
            yield LoadedConversation(owner, bool(conversation.facts), by_id, ids)
        finally:
            erasure = await ForgetStore(components.graph, components.clock).begin(owner)
            await erasure.end()

    async def build(
        self, loaded: LoadedConversation, question: AskedQuestion, budgets: Sequence[int] = BUDGETS
    ) -> list[AnswerContext]:
        """Return the contexts for a question of every system and size."""
        contexts = []
        for budget in budgets:
            request = ContextRequest(question=question.text, token_budget=budget + count_tokens(question.text))
            built = await self._builder.build(loaded.owner, request)
            facts = (key for memory in built.context.memories for key in memory.source.message_ids)
            covered = frozenset([*facts, *(line.key for line in built.quotes)])
            contexts.append(AnswerContext(question, CONTEXT, budget, built.context.preamble, covered))
        for system, lines in (
            (SEARCH, await self._find_lines(loaded, question)),
            (GRAPHITI, await self._find_graphiti_lines(loaded, question)),
        ):
            for budget in budgets:
                contexts.append(AnswerContext(question, system, budget, *fill_budget(lines, budget)))
        return contexts

    async def _find_lines(self, loaded: LoadedConversation, question: AskedQuestion) -> list[FoundLine]:
        query = SearchQuery(query=question.text, limit=MAX_HITS, include_messages=not loaded.has_facts, reinforce=False)
        found = await self._search.search(loaded.owner, query)
        if not loaded.has_facts:
            return [_message_line(loaded, hit.message.id) for hit in found.messages]
        return [
            FoundLine(f"- {_single_line(hit.memory.content)}", hit.memory.source.message_ids) for hit in found.results
        ]

    async def _find_graphiti_lines(self, loaded: LoadedConversation, question: AskedQuestion) -> list[FoundLine]:
        """Search facts as Graphiti recommends; in a graph without facts, search its episodes."""
        alias = f"g{uuid.uuid4().hex}"
        self._baseline.aliases[alias] = loaded.owner.group_id
        graphiti = self._baseline.graphiti
        if loaded.has_facts:
            edges = await graphiti.search(question.text, group_ids=[alias], num_results=MAX_HITS)
            return [
                FoundLine(
                    describe_fact(edge.fact, edge.valid_at, edge.invalid_at),
                    [loaded.ids[episode] for episode in edge.episodes if episode in loaded.ids],
                )
                for edge in edges
            ]
        found = await graphiti.search_(question.text, config=_episode_search(), group_ids=[alias])
        return [_message_line(loaded, loaded.ids[episode.uuid]) for episode in found.episodes]


@asynccontextmanager
async def open_source(settings: Settings) -> AsyncIterator[ContextSource]:
    """Open graphmem's retrieval and Graphiti on the database of the settings."""
    async with AsyncExitStack() as stack:
        found = await stack.enter_async_context(running_database(settings))
        components = await stack.enter_async_context(open_components(found))
        yield ContextSource(
            components, await stack.enter_async_context(open_graphiti_baseline(found, components.embedder))
        )


def _episode_search() -> Any:
    from graphiti_core.search.search_config import SearchConfig
    from graphiti_core.search.search_config_recipes import COMBINED_HYBRID_SEARCH_RRF

    return SearchConfig(episode_config=COMBINED_HYBRID_SEARCH_RRF.episode_config, limit=MAX_HITS)


def _message_line(loaded: LoadedConversation, message_id: str) -> FoundLine:
    return FoundLine(describe_message(loaded.messages[message_id]), [message_id])


def _single_line(text: str) -> str:
    return " ".join(text.split())
