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
from graphmem.neo4j.driver import Graph, Row
from graphmem.tenants.owners import Owner


class Discovery:
    """Finds what consolidation should analyse, in batches of at most `batch_size` memories."""

    def __init__(
        self,
        graph: Graph,
        *,
        batch_size: int,
        max_batches: int,
        cold_policy: ColdMemoryPolicy = DEFAULT_COLD_MEMORY_POLICY,
    ) -> None:
        self._graph = graph
        self._batch_size = batch_size
        self._max_batches = max_batches
        self._cold_policy = cold_policy

    async def find_owners(self, tenant: str | None, now: datetime) -> list[Owner]:
        """Return the users of a tenant, or of all tenants, with memories to analyse."""
        rows = await self._graph.fetch(
            "consolidation.list_users_due",
            tenant=tenant,
            now=now,
            old_before=now - self._cold_policy.min_age,
            access_threshold=self._cold_policy.access_threshold,
        )
        return [Owner.from_stored(row["tenant"], row["user_id"]) for row in rows]

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
