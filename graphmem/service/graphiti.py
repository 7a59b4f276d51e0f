"""Reading a user's memories with Graphiti's own search, over the same graph (extra `graphiti`).

Graphiti refuses group ids with a colon, so a user is named to it by the entities the facts begin at. Words of what was
written a moment ago may be missing: no write waits for the full-text index that only Graphiti asks.
"""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from graphmem.domain.identity import Owner
from graphmem.embedding import Embedder
from graphmem.errors import ConfigurationError
from graphmem.settings import Settings
from graphmem.store.driver import Graph

if TYPE_CHECKING:
    from graphiti_core import Graphiti
    from graphiti_core.search.search_filters import SearchFilters

PLACEHOLDER_API_KEY = "unused"
"""Key for the model clients that Graphiti insists on and its search never calls."""


@asynccontextmanager
async def open_graphiti(settings: Settings, uri: str, password: str, embedder: Embedder) -> AsyncIterator[Graphiti]:
    """Open Graphiti on graphmem's database with graphmem's vectors; raise ConfigurationError without the extra."""
    os.environ.setdefault("GRAPHITI_TELEMETRY_ENABLED", "false")
    # Graphiti reads the size of vectors from the environment when it is first imported.
    os.environ.setdefault("EMBEDDING_DIM", str(embedder.dimension))
    try:
        from graphiti_core import Graphiti
        from graphiti_core.cross_encoder.openai_reranker_client import OpenAIRerankerClient
        from graphiti_core.embedder.client import EmbedderClient
        from graphiti_core.llm_client.config import LLMConfig
        from graphiti_core.llm_client.openai_client import OpenAIClient
    except ImportError as error:
        raise ConfigurationError("Graphiti is not installed: `pip install 'graphmem[graphiti]'`.") from error

    class SharedEmbedder(EmbedderClient):
        async def create(self, input_data: str | list[str] | Iterable[int] | Iterable[Iterable[int]]) -> list[float]:
            texts: Any = [input_data] if isinstance(input_data, str) else list(input_data)
            return (await embedder.embed(texts))[0]

        async def create_batch(self, input_data_list: list[str]) -> list[list[float]]:
            return await embedder.embed(input_data_list)

    config = LLMConfig(api_key=PLACEHOLDER_API_KEY)
    graphiti = Graphiti(
        uri,
        settings.neo4j_user,
        password,
        llm_client=OpenAIClient(config),
        embedder=SharedEmbedder(),
        cross_encoder=OpenAIRerankerClient(config),
    )
    try:
        yield graphiti
    finally:
        await graphiti.close()  # type: ignore[no-untyped-call]


async def build_user_filter(graph: Graph, owner: Owner, *, current: bool = True) -> SearchFilters:
    """Return the filter that keeps Graphiti's search to one user, and to what is believed and open with `current`."""
    from graphiti_core.search.search_filters import ComparisonOperator, DateFilter, SearchFilters

    rows = await graph.fetch("entities.list_ids", group_id=owner.group_id)
    filters = SearchFilters(edge_source_node_uuids=[row["id"] for row in rows])
    if current:
        is_null = [[DateFilter(comparison_operator=ComparisonOperator.is_null)]]
        filters.expired_at = filters.invalid_at = is_null
    return filters
