"""Profiles of entities in the graph."""

from __future__ import annotations

from collections.abc import Sequence

from graphmem.memories.entity_profile import EntityProfile, profile_from_columns
from graphmem.memories.filters import FactFilters
from graphmem.neo4j.driver import Graph
from graphmem.tenants.scopes import Reader, scope_of


class ProfileStore:
    """Reads the profiles that hold as of two times."""

    def __init__(self, graph: Graph) -> None:
        self._graph = graph

    async def load(self, reader: Reader, entity_ids: Sequence[str], filters: FactFilters) -> dict[str, EntityProfile]:
        """Return profiles by the ids of their entities, as of the times of filters.

        One that rests on something that has changed since, or that does not hold, is left out.
        """
        if not entity_ids:
            return {}
        times = FactFilters(valid_at=filters.valid_at, known_at=filters.known_at)
        found = await self._graph.fetch_value(
            "profiles.load", group_ids=scope_of(reader).group_ids, entity_ids=list(entity_ids), **times.as_of_params
        )
        profiles = [profile_from_columns(*columns) for columns in found]
        return {profile.entity_id: profile for profile in profiles}
