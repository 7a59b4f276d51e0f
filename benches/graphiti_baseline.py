"""Graphiti's own search on graphmem's graph, without touching the data.

Graphiti refuses group ids with a colon, which graphmem's have. A user is therefore called by an alias, and the driver
puts the true id in its place on the way to Neo4j.
"""

from __future__ import annotations

import hashlib
import logging
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

from graphmem.domain.identity import Owner
from graphmem.embedding import Embedder
from graphmem.settings import Settings


@dataclass(frozen=True, slots=True)
class GraphitiBaseline:
    """Graphiti, ready to be asked."""

    graphiti: Any
    aliases: dict[str, str]

    async def search(self, owner: Owner, question: str, limit: int) -> list[list[str]]:
        """Return the uuids of the episodes of each fact found, best first."""
        alias = "g" + hashlib.sha256(owner.group_id.encode()).hexdigest()[:24]
        self.aliases[alias] = owner.group_id
        edges = await self.graphiti.search(question, group_ids=[alias], num_results=limit)
        return [edge.episodes for edge in edges]


@asynccontextmanager
async def open_graphiti_baseline(settings: Settings, embedder: Embedder) -> AsyncIterator[GraphitiBaseline]:
    """Open Graphiti on the database of some settings with an embedder's vectors; needs the extra `graphiti`."""
    os.environ.setdefault("GRAPHITI_TELEMETRY_ENABLED", "false")
    # Its queries name a property that our graph has no use for; the driver would warn of it at each question.
    logging.getLogger("neo4j.notifications").setLevel(logging.ERROR)
    os.environ.setdefault("EMBEDDING_DIM", str(embedder.dimension))
    from graphiti_core import Graphiti
    from graphiti_core.cross_encoder.openai_reranker_client import OpenAIRerankerClient
    from graphiti_core.driver.neo4j_driver import Neo4jDriver
    from graphiti_core.embedder.client import EmbedderClient
    from graphiti_core.llm_client.config import LLMConfig
    from graphiti_core.llm_client.openai_client import OpenAIClient

    aliases: dict[str, str] = {}

    def named(value: Any) -> Any:
        if isinstance(value, str):
            for alias, group_id in aliases.items():
                value = value.replace(alias, group_id)
            return value
        return [named(each) for each in value] if isinstance(value, list) else value

    class Driver(Neo4jDriver):
        async def build_indices_and_constraints(self, delete_existing: bool = False) -> None:
            """Leave the schema as it is: graphmem made it."""

        async def execute_query(self, cypher_query_: Any, **given: Any) -> Any:
            for name in ("group_ids", "query"):
                if name in given:
                    given[name] = named(given[name])
            return await super().execute_query(cypher_query_, **given)

    class SharedEmbedder(EmbedderClient):
        async def create(self, input_data: Any) -> list[float]:
            texts = [input_data] if isinstance(input_data, str) else list(input_data)
            return (await embedder.embed(texts))[0]

    password = settings.neo4j_password.get_secret_value() if settings.neo4j_password else ""
    unused = LLMConfig(api_key="unused")
    graphiti = Graphiti(
        graph_driver=Driver(settings.neo4j_uri or "", settings.neo4j_user, password, settings.neo4j_database),
        llm_client=OpenAIClient(unused),
        embedder=SharedEmbedder(),
        cross_encoder=OpenAIRerankerClient(unused),
    )
    try:
        yield GraphitiBaseline(graphiti, aliases)
    finally:
        await graphiti.close()
