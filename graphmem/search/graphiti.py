"""Graphiti (extra `graphiti`): its own search on graphmem's graph.

Graphiti rejects group ids with a colon, so its search is limited to a user by the subjects of the user's facts. It may
miss the words of the latest writes: no write waits for the full-text index that only Graphiti uses.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable
from contextlib import AbstractContextManager, asynccontextmanager
from typing import TYPE_CHECKING, Any

from graphmem.models.embedder import Embedder
from graphmem.neo4j.driver import Graph
from graphmem.runtime.errors import ConfigurationError
from graphmem.runtime.process import environment_defaults
from graphmem.runtime.settings import Settings
from graphmem.tenants.owners import Owner

if TYPE_CHECKING:
    from graphiti_core import Graphiti
    from graphiti_core.driver.driver import GraphDriver
    from graphiti_core.llm_client.client import LLMClient
    from graphiti_core.search.search_filters import SearchFilters


PLACEHOLDER_API_KEY = "unused"
"""Key of the model clients that Graphiti requires but that its search does not call."""


@asynccontextmanager
async def open_graphiti(settings: Settings, uri: str, password: str, embedder: Embedder) -> AsyncIterator[Graphiti]:
    """Open Graphiti on graphmem's database with graphmem's vectors; raise ConfigurationError without the extra."""
    try:
        with graphiti_environment(embedder):
            from graphiti_core.driver.neo4j_driver import Neo4jDriver
    except ImportError as error:
        raise ConfigurationError("Graphiti is not installed: `pip install 'graphmem[graphiti]'`.") from error
    async with connect_graphiti(Neo4jDriver(uri, settings.neo4j_user, password), embedder) as graphiti:
        yield graphiti


def graphiti_environment(embedder: Embedder) -> AbstractContextManager[None]:
    """Switch telemetry off and set the vector size, which Graphiti reads on first import and on opening."""
    return environment_defaults(GRAPHITI_TELEMETRY_ENABLED="false", EMBEDDING_DIM=str(embedder.dimension))


@asynccontextmanager
async def connect_graphiti(
    driver: GraphDriver, embedder: Embedder, model: LLMClient | None = None
) -> AsyncIterator[Graphiti]:
    """Open Graphiti over a driver with graphmem's vectors; close both at the end.

    `model` answers its extraction prompts; its search needs none.
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
        await graphiti.close()


async def build_user_filter(graph: Graph, owner: Owner, *, current: bool = True) -> SearchFilters:
    """Return the filter that limits Graphiti's search to one user and, with `current`, to believed and open facts."""
    from graphiti_core.search.search_filters import ComparisonOperator, DateFilter, SearchFilters

    rows = await graph.fetch("entities.list_ids", group_id=owner.group_id)
    filters = SearchFilters(edge_source_node_uuids=[row["id"] for row in rows])
    if current:
        is_null = [[DateFilter(comparison_operator=ComparisonOperator.is_null)]]
        filters.expired_at = filters.invalid_at = is_null
    return filters
