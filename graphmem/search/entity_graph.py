"""Reads the profile of an entity, and the graph around it."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from graphmem.memories.entity import EntityProfile, entity_from_columns, profile_from_columns
from graphmem.memories.fact import memory_from_columns
from graphmem.memories.filters import FactFilters
from graphmem.memories.memory import Memory
from graphmem.neo4j.driver import Graph
from graphmem.search.models import EntityGraph
from graphmem.tenants.spaces import Reader, scope_of


async def load_profiles(
    graph: Graph, group_ids: Sequence[str], entity_ids: Sequence[str], filters: FactFilters
) -> dict[str, EntityProfile]:
    """Return profiles as of the times of filters, without those of which a memory has changed or does not hold."""
    if not entity_ids:
        return {}
    found = await graph.fetch_value(
        "profiles.load", group_ids=list(group_ids), entity_ids=list(entity_ids), **filters.as_of_params
    )
    profiles = [profile_from_columns(*columns) for columns in found]
    return {profile.entity_id: profile for profile in profiles}


class EntityGraphStore:
    """Reads the profile of an entity, and the graph around it."""

    def __init__(self, graph: Graph) -> None:
        self._graph = graph

    async def load_profile(self, reader: Reader, entity_id: str, now: datetime) -> EntityProfile | None:
        """Return the profile of an entity that holds at `now`, None without one."""
        filters = FactFilters(valid_at=now)
        return (await load_profiles(self._graph, scope_of(reader).group_ids, [entity_id], filters)).get(entity_id)

    async def load_entity_graph(
        self, reader: Reader, entity_id: str, filters: FactFilters, depth: int, limit: int, now: datetime
    ) -> EntityGraph:
        """Return the entities and facts within `depth` steps of an entity: up to `limit` facts, the nearer first."""
        group_ids = scope_of(reader).group_ids
        edges: dict[str, Memory] = {}
        reached, frontier = {entity_id}, {entity_id}
        for _ in range(depth):
            found = await self._graph.fetch_value(
                "search.list_entity_edges",
                entity_ids=sorted(frontier),
                group_ids=group_ids,
                limit=limit - len(edges),
                **filters.as_of_params,
            )
            edges.update((columns[0]["uuid"], memory_from_columns(columns, now)) for columns in found)
            frontier = {end for _, _, subject_id, object_id, _ in found for end in (subject_id, object_id)} - reached
            reached |= frontier
            if not frontier or len(edges) >= limit:
                break
        nodes = await self._graph.fetch_value("search.load_entities", group_ids=group_ids, ids=sorted(reached))
        return EntityGraph(nodes=[entity_from_columns(*columns) for columns in nodes], edges=list(edges.values()))
