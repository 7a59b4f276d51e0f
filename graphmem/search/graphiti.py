"""Graphiti (extra `graphiti`): its own search on graphmem's graph, and reading a graph that it wrote.

Graphiti rejects group ids with a colon, so its search is limited to a user by the entities that the user's facts start
at. It may miss the words of the latest writes: no write waits for the full-text index that only Graphiti uses.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Mapping, Set
from contextlib import AbstractContextManager, asynccontextmanager
from datetime import datetime
from typing import TYPE_CHECKING, Any

from neo4j import EagerResult

from graphmem.models.embedder import Embedder
from graphmem.neo4j.driver import Graph, Transaction
from graphmem.runtime.errors import ConfigurationError, NotFound
from graphmem.runtime.process import environment_defaults
from graphmem.runtime.settings import Settings
from graphmem.tenants.owners import Owner

if TYPE_CHECKING:
    from graphiti_core import Graphiti
    from graphiti_core.driver.driver import GraphDriver
    from graphiti_core.driver.neo4j_driver import Neo4jDriver
    from graphiti_core.llm_client.client import LLMClient
    from graphiti_core.search.search_filters import SearchFilters


_ENTITY_PROPERTIES = frozenset({"uuid", "name", "group_id", "name_embedding", "summary", "created_at", "labels"})
_FACT_PROPERTIES = frozenset(
    {"uuid", "name", "fact", "fact_embedding", "group_id", "episodes", "created_at", "expired_at", "valid_at"}
    | {"invalid_at", "reference_time", "source_node_uuid", "target_node_uuid", "source_uuid", "target_uuid"}
)
"""Properties that Graphiti gives every node and every edge; the others are attributes."""


async def read_group(graph: Graph, group_id: str) -> dict[str, Any]:
    """Return the nodes, edges and episodes of a group; nothing is written."""

    async def work(transaction: Transaction) -> dict[str, Any]:
        entities = await transaction.run("graphiti.list_entities", group_id=group_id)
        facts = await transaction.run("graphiti.list_facts", group_id=group_id)
        episodes = await transaction.run("graphiti.list_episodes", group_id=group_id)
        return {
            "nodes": [
                {
                    **_select(row["properties"], _ENTITY_PROPERTIES - {"name_embedding", "labels"}),
                    "labels": row["labels"],
                    "attributes": _attributes(row["properties"], _ENTITY_PROPERTIES),
                }
                for row in entities
            ],
            "edges": [
                {
                    **_select(row["properties"], _FACT_PROPERTIES - {"fact_embedding"}),
                    "source_node_uuid": row["source"],
                    "target_node_uuid": row["target"],
                    "attributes": _attributes(row["properties"], _FACT_PROPERTIES),
                }
                for row in facts
            ],
            "episodes": [_to_json(row["properties"]) for row in episodes],
        }

    return await graph.read(work)


def _select(properties: Mapping[str, Any], names: Set[str]) -> dict[str, Any]:
    return {name: _to_json(value) for name, value in properties.items() if name in names and value is not None}


def _attributes(properties: Mapping[str, Any], known: Set[str]) -> dict[str, Any]:
    return {name: _to_json(value) for name, value in properties.items() if name not in known and value is not None}


def _to_json(value: Any) -> Any:
    """Return a value with times as text."""
    if isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, dict):
        return {key: _to_json(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_to_json(item) for item in value]
    return value


PLACEHOLDER_API_KEY = "unused"
"""Key of the model clients that Graphiti requires and that its search does not call."""


@asynccontextmanager
async def open_graphiti(settings: Settings, uri: str, password: str, embedder: Embedder) -> AsyncIterator[Graphiti]:
    """Open Graphiti on graphmem's database with graphmem's vectors; raise ConfigurationError without the extra."""
    try:
        with graphiti_environment(embedder):
            driver_class = driver_of_graphmem()
    except ImportError as error:
        raise ConfigurationError("Graphiti is not installed: `pip install 'graphmem[graphiti]'`.") from error
    async with connect_graphiti(driver_class(uri, settings.neo4j_user, password), embedder) as graphiti:
        yield graphiti


_LISTS = ("episodes", "entity_edges")
"""Lists that every fact and episode of Graphiti has; graphmem stores no empty list."""


def driver_of_graphmem() -> type[Neo4jDriver]:
    """Return the driver with which Graphiti reads graphmem's graph; raise ImportError without Graphiti."""
    from graphiti_core.driver.neo4j_driver import Neo4jDriver

    class GraphmemDriver(Neo4jDriver):
        async def execute_query(self, cypher_query_: Any, **parameters: Any) -> Any:
            records, summary, keys = await super().execute_query(cypher_query_, **parameters)
            lists = [name for name in _LISTS if name in keys]
            rows: Any = [{**record, **{name: record[name] or [] for name in lists}} for record in records]
            return EagerResult(rows, summary, keys)

    return GraphmemDriver


def graphiti_environment(embedder: Embedder) -> AbstractContextManager[None]:
    """Switch telemetry off and set the size of vectors, which Graphiti reads when it is first imported and opened."""
    return environment_defaults(GRAPHITI_TELEMETRY_ENABLED="false", EMBEDDING_DIM=str(embedder.dimension))


@asynccontextmanager
async def connect_graphiti(
    driver: GraphDriver, embedder: Embedder, model: LLMClient | None = None
) -> AsyncIterator[Graphiti]:
    """Open Graphiti over a driver with graphmem's vectors; close both at the end.

    `model` answers the prompts of its extraction; its search needs none.
    """
    from graphiti_core import Graphiti
    from graphiti_core.cross_encoder.openai_reranker_client import OpenAIRerankerClient
    from graphiti_core.embedder.client import EmbedderClient
    from graphiti_core.llm_client.config import LLMConfig
    from graphiti_core.llm_client.openai_client import OpenAIClient

    class SharedEmbedder(EmbedderClient):
        async def create(self, input_data: str | list[str] | Iterable[int] | Iterable[Iterable[int]]) -> list[float]:
            texts: Any = [input_data] if isinstance(input_data, str) else list(input_data)
            return (await embedder.embed(texts))[0]

        async def create_batch(self, input_data_list: list[str]) -> list[list[float]]:
            return await embedder.embed(input_data_list)

    config = LLMConfig(api_key=PLACEHOLDER_API_KEY)
    with graphiti_environment(embedder):
        graphiti = Graphiti(
            graph_driver=driver,
            llm_client=model or OpenAIClient(config),
            embedder=SharedEmbedder(),
            cross_encoder=OpenAIRerankerClient(config),
        )
    try:
        yield graphiti
    finally:
        await graphiti.close()  # type: ignore[no-untyped-call]


async def read_graph(uri: str, user: str, password: str, database: str, group_id: str) -> dict[str, Any]:
    """Return a group of a live graph of Graphiti as a document of the import format `graphiti`.

    The graph is only read. Raises DatabaseUnavailable, ConfigurationError for wrong credentials, and NotFound for a
    group without facts.
    """
    graph = Graph(uri, user, password, database)
    try:
        await graph.verify_connectivity()
        document = await read_group(graph, group_id)
    finally:
        await graph.close()
    if not document["edges"]:
        raise NotFound("The graph has no facts in this group: check --group and the address.")
    return document


async def build_user_filter(graph: Graph, owner: Owner, *, current: bool = True) -> SearchFilters:
    """Return the filter that limits Graphiti's search to one user and, with `current`, to believed and open facts."""
    from graphiti_core.search.search_filters import ComparisonOperator, DateFilter, SearchFilters

    rows = await graph.fetch("entities.list_ids", group_id=owner.group_id)
    filters = SearchFilters(edge_source_node_uuids=[row["id"] for row in rows])
    if current:
        is_null = [[DateFilter(comparison_operator=ComparisonOperator.is_null)]]
        filters.expired_at = filters.invalid_at = is_null
    return filters
