"""Graphiti as a compared system (extra `graphiti`): its search on graphmem's graph, and its own extraction.

Graphiti rejects group ids with a colon, which graphmem's have. For its search, a user therefore gets an alias, which
the driver replaces by the group id on the way to Neo4j.

With its own extraction, every message becomes an episode, `speaker: text`, with the message's time, as Graphiti's
documentation describes. Its prompts go to graphmem's extraction model through graphmem's client, its texts to the same
embedder. It writes into the same database, into a separate group per conversation, which is removed once all contexts
of the run are built.
"""

from __future__ import annotations

import hashlib
import json
import logging
import time
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from graphmem.evaluation.benchmark import AskedQuestion, BenchmarkConversation, BenchmarkMessage
from graphmem.evaluation.compared_system import (
    MAX_HITS,
    NUMBER_BYTES,
    ExtractingSystem,
    SystemResources,
    complete_usably,
)
from graphmem.evaluation.context_lines import FoundLine, describe_fact, fill_context
from graphmem.evaluation.plan import GRAPHITI
from graphmem.evaluation.run_folder import AnswerContext, StoredSize
from graphmem.models.embedder import Embedder
from graphmem.models.language_model import LanguageModel, Receipt
from graphmem.runtime.errors import GraphmemError
from graphmem.runtime.settings import Settings
from graphmem.search.graphiti import PLACEHOLDER_API_KEY, connect_graphiti, graphiti_environment
from graphmem.tenants.owners import Owner
from graphmem.user_data.graphiti import read_group

if TYPE_CHECKING:
    from graphiti_core import Graphiti
    from graphiti_core.edges import EntityEdge
    from graphiti_core.llm_client.client import LLMClient

    from graphmem.neo4j.driver import Graph


@dataclass(frozen=True, slots=True)
class GraphitiBaseline:
    """An open Graphiti; `aliases` maps users' aliases to group ids."""

    graphiti: Any
    aliases: dict[str, str]

    async def search(self, owner: Owner, question: str, limit: int) -> list[list[str]]:
        """Return the uuids of the episodes of each fact found, best first."""
        return [edge.episodes for edge in await self.find_edges(owner, question, limit)]

    async def find_edges(self, owner: Owner, question: str, limit: int) -> list[Any]:
        """Return the facts found as Graphiti's edges, best first."""
        found: list[Any] = await self.graphiti.search(question, group_ids=[self._alias(owner)], num_results=limit)
        return found

    async def search_episodes(self, owner: Owner, question: str, limit: int) -> list[str]:
        """Return the uuids of the episodes found by Graphiti's combined search, best first."""
        from graphiti_core.search.search_config import SearchConfig
        from graphiti_core.search.search_config_recipes import COMBINED_HYBRID_SEARCH_RRF

        config = SearchConfig(episode_config=COMBINED_HYBRID_SEARCH_RRF.episode_config, limit=limit)
        found = await self.graphiti.search_(question, config=config, group_ids=[self._alias(owner)])
        return [episode.uuid for episode in found.episodes]

    def _alias(self, owner: Owner) -> str:
        alias = "g" + hashlib.sha256(owner.group_id.encode()).hexdigest()[:24]
        self.aliases[alias] = owner.group_id
        return alias


@asynccontextmanager
async def open_graphiti_baseline(settings: Settings, embedder: Embedder) -> AsyncIterator[GraphitiBaseline]:
    """Open Graphiti on the database of the settings with the vectors of an embedder; needs the extra `graphiti`."""
    # Graphiti's queries name a property that graphmem's graph lacks, so Neo4j would warn at every question.
    logging.getLogger("neo4j.notifications").setLevel(logging.ERROR)
    with graphiti_environment(embedder):
        from graphiti_core.driver.neo4j_driver import Neo4jDriver

    aliases: dict[str, str] = {}

    def replace_aliases(value: Any) -> Any:
        if isinstance(value, str):
            for alias, group_id in aliases.items():
                value = value.replace(alias, group_id)
            return value
        return [replace_aliases(item) for item in value] if isinstance(value, list) else value

    class AliasDriver(Neo4jDriver):
        async def build_indices_and_constraints(self, delete_existing: bool = False) -> None:
            """Keep graphmem's schema."""

        async def execute_query(self, cypher_query_: Any, **parameters: Any) -> Any:
            for name in ("group_ids", "query"):
                if name in parameters:
                    parameters[name] = replace_aliases(parameters[name])
            return await super().execute_query(cypher_query_, **parameters)

    password = settings.neo4j_password.get_secret_value() if settings.neo4j_password else ""
    driver = AliasDriver(settings.neo4j_uri or "", settings.neo4j_user, password, settings.neo4j_database)
    async with connect_graphiti(driver, embedder) as graphiti:
        yield GraphitiBaseline(graphiti, aliases)


_receipts: ContextVar[list[Receipt]] = ContextVar("graphiti_receipts")


class _RequestFailed(BaseException):
    """A failed Graphiti request; not an `Exception`, after which Graphiti would go on without the dates of a fact."""

    def __init__(self, error: GraphmemError) -> None:
        super().__init__(error.detail)
        self.error = error


class GraphitiSystem:
    """Graphiti's `add_episode` and `search`."""

    messages_per_add = 1
    conversations_at_once = 1
    """One, since a full-text index weighs words over all groups: concurrent conversations would sometimes change the
    order of known facts in prompts, and a run could not be replayed."""

    def __init__(self, resources: SystemResources, graphiti: Graphiti) -> None:
        self._resources = resources
        self._graphiti = graphiti
        self._message_ids: dict[str, dict[str, str]] = {}

    async def add(self, conversation: BenchmarkConversation, messages: Sequence[BenchmarkMessage]) -> Receipt:
        """Store messages that are not stored yet and extract from them; return the cost of the requests.

        Raises ModelUnavailable if a request failed; nothing of that message is stored then.
        """
        from graphiti_core.nodes import EpisodeType

        stored = set((await self._read_message_ids(conversation)).values())
        with _counting_costs() as receipts:
            for message in messages:
                if message.id in stored:
                    continue
                # Graphiti compares with facts found by words, so graphmem's index must be up to date after each write.
                await self._resources.graph.fetch("schema.await_indexes")
                try:
                    await self._graphiti.add_episode(
                        name=message.id,
                        episode_body=f"{message.speaker}: {message.content}",
                        source_description="chat message",
                        reference_time=message.timestamp or datetime.now(UTC),
                        source=EpisodeType.message,
                        group_id=self._group_id(conversation),
                    )
                except _RequestFailed as failed:
                    raise failed.error from None
        return sum(receipts, Receipt())

    async def find(
        self, conversation: BenchmarkConversation, question: AskedQuestion, budgets: Sequence[int]
    ) -> list[AnswerContext]:
        """Return the context of each budget: the facts found, with their valid dates."""
        if conversation.id not in self._message_ids:
            self._message_ids[conversation.id] = await self._read_message_ids(conversation)
        ids = self._message_ids[conversation.id]
        started = time.perf_counter()
        edges = await self._graphiti.search(
            question.text, group_ids=[self._group_id(conversation)], num_results=MAX_HITS
        )
        seconds = time.perf_counter() - started
        lines = describe_edges(edges, ids)
        return [fill_context(question, GRAPHITI, budget, lines, seconds) for budget in budgets]

    async def measure(self, conversation: BenchmarkConversation) -> StoredSize:
        """Return the stored size of a conversation."""
        group_id, dimension = self._group_id(conversation), self._resources.embedder.dimension
        return await measure_group(self._resources.graph, GRAPHITI, conversation, group_id, dimension)

    async def remove(self, conversations: Sequence[BenchmarkConversation]) -> None:
        """Remove the groups of conversations from the database."""
        from graphiti_core.utils.maintenance.graph_data_operations import clear_data

        groups = [self._group_id(conversation) for conversation in conversations]
        await clear_data(self._graphiti.driver, group_ids=groups)

    def _group_id(self, conversation: BenchmarkConversation) -> str:
        return graphiti_group(self._resources.tenant, conversation.id)

    async def _read_message_ids(self, conversation: BenchmarkConversation) -> dict[str, str]:
        """Return the ids of the stored messages by the uuids of their episodes."""
        rows = await self._resources.graph.fetch("graphiti.list_episodes", group_id=self._group_id(conversation))
        return {row["properties"]["uuid"]: row["properties"]["name"] for row in rows}


def describe_edges(edges: Sequence[EntityEdge], message_ids: Mapping[str, str]) -> list[FoundLine]:
    """Return Graphiti's edges as lines; `message_ids` has message ids by the uuids of their episodes. Pure."""
    return [
        FoundLine(
            describe_fact(edge.fact, edge.valid_at, edge.invalid_at),
            [message_ids[episode] for episode in edge.episodes if episode in message_ids],
            edge.uuid,
        )
        for edge in edges
    ]


def graphiti_group(tenant: str, conversation: str) -> str:
    """Return the group of a conversation in the run of this tenant, in characters that Graphiti accepts. Pure."""
    return f"evaluate-{hashlib.sha256(f'{tenant}:{conversation}'.encode()).hexdigest()[:24]}"


async def measure_group(
    graph: Graph, system: str, conversation: BenchmarkConversation, group_id: str, dimension: int
) -> StoredSize:
    """Return the size of a group in the graph: all versions of facts, entities and messages."""
    values = json.dumps(await read_group(graph, group_id), ensure_ascii=False, default=str)
    counted = (await graph.fetch("graphiti.count_stored", group_id=group_id))[0]
    return StoredSize(
        system=system,
        conversation=conversation.id,
        facts=counted["facts"],
        entities=counted["entities"],
        messages=counted["episodes"],
        size=len(values.encode()) + counted["vectors"] * dimension * NUMBER_BYTES,
    )


@asynccontextmanager
async def open_graphiti_system(resources: SystemResources) -> AsyncIterator[ExtractingSystem]:
    """Open Graphiti on the run's database, with graphmem's extraction model; needs its package."""
    # Graphiti's queries name properties that no node has yet, so Neo4j would warn at every episode.
    logging.getLogger("neo4j.notifications").setLevel(logging.ERROR)
    settings = resources.settings
    with graphiti_environment(resources.embedder):
        from graphiti_core.driver.neo4j_driver import Neo4jDriver

    class GraphmemSchemaDriver(Neo4jDriver):
        async def build_indices_and_constraints(self, delete_existing: bool = False) -> None:
            """Keep graphmem's schema, which has every index that Graphiti reads, under the same names."""

    password = settings.neo4j_password.get_secret_value() if settings.neo4j_password else ""
    driver = GraphmemSchemaDriver(settings.neo4j_uri or "", settings.neo4j_user, password, settings.neo4j_database)
    async with (
        resources.open_model() as model,
        connect_graphiti(driver, resources.embedder, _to_graphiti_client(model)) as graphiti,
    ):
        yield GraphitiSystem(resources, graphiti)


def _to_graphiti_client(model: LanguageModel) -> LLMClient:
    """Return Graphiti's client for servers with the OpenAI API, sending its requests through `model`."""
    from graphiti_core.llm_client.config import LLMConfig
    from graphiti_core.llm_client.openai_generic_client import OpenAIGenericClient

    class GraphmemClient(OpenAIGenericClient):
        async def _generate_response(
            self, messages: Any, response_model: Any = None, *options: Any, **more_options: Any
        ) -> dict[str, Any]:
            prompt = [{"role": message.role, "content": self._clean_input(message.content)} for message in messages]
            try:
                answer = await complete_usably(model, prompt, response_model)
            except GraphmemError as error:
                raise _RequestFailed(error) from None
            _receipts.get().append(answer.receipt)
            values: dict[str, Any] = answer.value.model_dump(mode="json")
            return values

    return GraphmemClient(LLMConfig(api_key=PLACEHOLDER_API_KEY), client=model)


@contextmanager
def _counting_costs() -> Iterator[list[Receipt]]:
    """Yield the receipts of Graphiti's requests in this block, excluding those of concurrent conversations."""
    receipts: list[Receipt] = []
    token = _receipts.set(receipts)
    try:
        yield receipts
    finally:
        _receipts.reset(token)
