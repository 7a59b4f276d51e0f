"""Discovery: what a run of consolidation should analyse, read from the graph and planned as batches."""

from __future__ import annotations

from datetime import datetime

import numpy as np

from graphmem.consolidation.batch_planning import (
    DEFAULT_COLD_MEMORY_POLICY,
    ColdMemoryPolicy,
    ConsolidationCandidate,
    DiscoveryResult,
    EntityNames,
    plan_batches,
)
from graphmem.neo4j.driver import Graph
from graphmem.neo4j.driver_values import Row
from graphmem.tenants.owners import Owner

MIN_PROFILE_FACTS = 6
"""Facts of an entity from which on it has a profile; a reader of fewer reads the facts themselves."""

MIN_NEW_FACTS = 3
"""Facts that are newer than a profile from which on it is written anew, though all that it says still holds."""


class Discovery:
    """Finds what consolidation should analyse, in batches of at most `batch_size` memories.

    Of a user, at most `max_profiles` profiles of entities are due at a time; without a model none are.
    """

    def __init__(
        self,
        graph: Graph,
        *,
        batch_size: int,
        max_batches: int,
        cold_policy: ColdMemoryPolicy = DEFAULT_COLD_MEMORY_POLICY,
        max_profiles: int = 0,
    ) -> None:
        self._graph = graph
        self._batch_size = batch_size
        self._max_batches = max_batches
        self._cold_policy = cold_policy
        self._max_profiles = max_profiles

    async def find_owners(self, tenant: str | None, now: datetime) -> list[Owner]:
        """Return the users of a tenant, or of all tenants, with memories to analyse or profiles to write."""
        rows = await self._graph.fetch(
            "consolidation.list_users_due",
            tenant=tenant,
            now=now,
            old_before=now - self._cold_policy.min_age,
            access_threshold=self._cold_policy.access_threshold,
        )
        if self._max_profiles:
            rows += await self._graph.fetch(
                "consolidation.list_users_with_due_profiles",
                tenant=tenant,
                now=now,
                min_facts=MIN_PROFILE_FACTS,
                min_new=MIN_NEW_FACTS,
            )
        found = sorted({(row["tenant"], row["user_id"]) for row in rows})
        return [Owner.from_stored(of_tenant, user_id) for of_tenant, user_id in found]

    async def find_due_profiles(self, owner: Owner, now: datetime) -> list[str]:
        """Return the ids of the entities whose profile is due, those with the most facts first."""
        if not self._max_profiles:
            return []
        rows = await self._graph.fetch(
            "consolidation.list_due_profiles",
            group_id=owner.group_id,
            now=now,
            min_facts=MIN_PROFILE_FACTS,
            min_new=MIN_NEW_FACTS,
            limit=self._max_profiles,
        )
        return [row["id"] for row in rows]

    async def find_batches(self, owner: Owner, now: datetime) -> DiscoveryResult:
        """Return the batches of one run: memories that no run has analysed, best first, then cold ones."""
        rows = await self._graph.fetch("consolidation.fetch_discovery_candidates", group_id=owner.group_id, now=now)
        candidates = [_candidate_from_row(row) for row in rows]
        names = await self._graph.fetch("consolidation.fetch_entity_names", group_id=owner.group_id)
        entities = [_entity_names_from_row(row) for row in names]
        return plan_batches(candidates, now, self._batch_size, self._max_batches, self._cold_policy, entities)


def _candidate_from_row(row: Row) -> ConsolidationCandidate:
    vector = np.asarray(row["vector"], dtype=np.float32)
    length = float(np.linalg.norm(vector))
    return ConsolidationCandidate(
        memory_id=row["memory_id"],
        content=row["content"],
        subject_id=row["subject_id"],
        scope=row["scope"],
        domain=row["domain"],
        entity_ids=frozenset(row["entity_ids"]),
        associations=row["associations"],
        created_at=row["created_at"],
        access_count=row["access_count"],
        is_new=row["is_new"],
        considered_for_compression=row["considered_for_compression"],
        vector=vector / length if length else vector,
    )


def _entity_names_from_row(row: Row) -> EntityNames:
    return EntityNames(row["id"], (row["name"], *row["aliases"]), row["type"], row["is_user"])
