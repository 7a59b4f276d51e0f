"""Graphiti's own search on graphmem's graph, as a system to compare with.

Graphiti rejects group ids with a colon, which graphmem's have. A user therefore gets an alias, and the driver replaces
it by the group id on the way to Neo4j.
"""

from __future__ import annotations

import hashlib
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

from graphmem.models.embedder import Embedder
from graphmem.runtime.settings import Settings
from graphmem.search.graphiti import connect_graphiti, driver_of_graphmem, graphiti_environment
from graphmem.tenants.owners import Owner


@dataclass(frozen=True, slots=True)
class GraphitiBaseline:
    """An open Graphiti; `aliases` maps the aliases of users to their group ids."""

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
        """Return the uuids of the episodes found, best first, as Graphiti's combined search finds them."""
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
    # Graphiti's queries name a property that graphmem's graph does not have; Neo4j warns of it with every question.
    logging.getLogger("neo4j.notifications").setLevel(logging.ERROR)
    with graphiti_environment(embedder):
        driver_class: Any = driver_of_graphmem()

    aliases: dict[str, str] = {}

    def replace_aliases(value: Any) -> Any:
        if isinstance(value, str):
            for alias, group_id in aliases.items():
                value = value.replace(alias, group_id)
            return value
        return [replace_aliases(item) for item in value] if isinstance(value, list) else value

    class AliasDriver(driver_class):  # type: ignore[misc]
        async def build_indices_and_constraints(self, delete_existing: bool = False) -> None:
            """Leave the schema as graphmem made it."""

        async def execute_query(self, cypher_query_: Any, **parameters: Any) -> Any:
            for name in ("group_ids", "query"):
                if name in parameters:
                    parameters[name] = replace_aliases(parameters[name])
            return await super().execute_query(cypher_query_, **parameters)

    password = settings.neo4j_password.get_secret_value() if settings.neo4j_password else ""
    driver = AliasDriver(settings.neo4j_uri or "", settings.neo4j_user, password, settings.neo4j_database)
    async with connect_graphiti(driver, embedder) as graphiti:
        yield GraphitiBaseline(graphiti, aliases)
