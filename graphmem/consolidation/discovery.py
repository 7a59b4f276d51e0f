"""Discovery: which memories a night looks at, and in which company. Pure but for one query."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

import numpy as np
import numpy.typing as npt

from graphmem.domain.identity import Owner
from graphmem.store.driver import Graph

RECENCY_WEIGHT, ISOLATION_WEIGHT, SIMILARITY_WEIGHT, OVERLAP_WEIGHT = 0.3, 0.2, 0.3, 0.2
"""Weights of a score (UMB-10): what is new, has few associations, resembles others and shares their entities."""

RECENT_HOURS = 24.0
"""Recency falls to 1/e in this time; what older nights missed is still looked at, after what is new."""

MIN_NEIGHBOUR_SIMILARITY = 0.6
"""Cosine similarity from which two memories are looked at together."""

MAX_OLDER_NEIGHBOURS = 2
"""How many memories of earlier nights keep a new one company."""

SIMILARITY_BLOCK_ROWS = 1024


@dataclass(frozen=True, slots=True)
class ColdMemoryPolicy:
    """Memories older than `min_age` and read less than `access_threshold` times may be summarised with others (UMB-17)."""

    min_age: timedelta = timedelta(days=7)
    access_threshold: int = 3


DEFAULT_COLD_MEMORY_POLICY = ColdMemoryPolicy()


@dataclass(frozen=True, slots=True)
class ConsolidationCandidate:
    """What discovery knows of a current memory; `vector` has length one."""

    memory_id: str
    subject_id: str
    scope: str
    domain: str | None
    entity_ids: frozenset[str]
    associations: int
    created_at: datetime
    access_count: int
    is_new: bool
    considered_for_compression: bool
    vector: npt.NDArray[np.float32]

    @property
    def merge_group(self) -> tuple[str, str, str]:
        """What must be equal for two memories to be merged: scope, domain and subject."""
        return (self.scope, self.domain or "", self.subject_id)

    def is_compressible(self, now: datetime, cold_policy: ColdMemoryPolicy) -> bool:
        """Return whether the memory is old and seldom read and no longer new to consolidation."""
        return (
            self.created_at < now - cold_policy.min_age
            and self.access_count < cold_policy.access_threshold
            and not self.is_new
        )


@dataclass(frozen=True, slots=True)
class Batch:
    """Memories that are analysed together; `old` ones are candidates for compression."""

    memory_ids: list[str]
    old: bool = False


@dataclass(frozen=True, slots=True)
class DiscoveryResult:
    """What is to be analysed, and the old memories that resemble no other and so need no analysis."""

    batches: list[Batch]
    isolated_ids: list[str]


class Discovery:
    """Finds what is to be analysed for one user."""

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
        """Return the users with memories to look at, of one tenant or of all."""
        return await find_owners_with_work(self._graph, tenant, now, self._cold_policy)

    async def find_batches(self, owner: Owner, now: datetime) -> DiscoveryResult:
        """Return what one run is to analyse: what no run has looked at, the best first, then what may be compressed."""
        rows = await self._graph.fetch("consolidation.fetch_discovery_candidates", group_id=owner.group_id, now=now)
        return plan_batches(
            [_candidate(row) for row in rows], now, self._batch_size, self._max_batches, self._cold_policy
        )


async def find_owners_with_work(
    graph: Graph, tenant: str | None, now: datetime, cold_policy: ColdMemoryPolicy
) -> list[Owner]:
    """Return the users with memories that no run has looked at or considered for compression, of one tenant or of all."""
    rows = await graph.fetch(
        "consolidation.list_users_due",
        tenant=tenant,
        now=now,
        old_before=now - cold_policy.min_age,
        access_threshold=cold_policy.access_threshold,
    )
    return [Owner(row["tenant"], row["user_id"]) for row in rows]


def plan_batches(
    candidates: Sequence[ConsolidationCandidate],
    now: datetime,
    batch_size: int,
    max_batches: int,
    cold_policy: ColdMemoryPolicy = DEFAULT_COLD_MEMORY_POLICY,
) -> DiscoveryResult:
    """Return batches of at most `batch_size` memories, like beside like; never more than `max_batches`."""
    nearest = neighbours(candidates)
    new = [index for index, each in enumerate(candidates) if each.is_new]
    scores = {index: discovery_score(candidates, index, nearest[index], now) for index in new}
    chosen = sorted(new, key=lambda index: -scores[index])[: batch_size * max_batches]
    ordered = _order_with_neighbours(candidates, chosen, nearest, scores)
    batches = [
        Batch([candidates[index].memory_id for index in ordered[start : start + batch_size]])
        for start in range(0, len(ordered), batch_size)
    ][:max_batches]
    taken = {key for batch in batches for key in batch.memory_ids}
    old = {
        index
        for index, each in enumerate(candidates)
        if each.memory_id not in taken and each.is_compressible(now, cold_policy)
    }
    compressed, isolated_ids = _compression_batches(candidates, nearest, old, batch_size, max_batches - len(batches))
    return DiscoveryResult(batches + compressed, isolated_ids)


def discovery_score(
    candidates: Sequence[ConsolidationCandidate], index: int, near: Sequence[tuple[int, float]], now: datetime
) -> float:
    """Return how much a memory deserves to be looked at, between 0 and 1.

    `0.3·exp(−hours/24) + 0.2/(1 + associations) + 0.3·similarity + 0.2·overlap`, similarity and entity overlap
    (Jaccard) being those with the most similar other memory of the same place.
    """
    one = candidates[index]
    hours = max(0.0, (now - one.created_at).total_seconds() / 3600)
    similarity = near[0][1] if near else 0.0
    overlap = _jaccard(one.entity_ids, candidates[near[0][0]].entity_ids) if near else 0.0
    return (
        RECENCY_WEIGHT * math.exp(-hours / RECENT_HOURS)
        + ISOLATION_WEIGHT / (1 + one.associations)
        + SIMILARITY_WEIGHT * max(0.0, similarity)
        + OVERLAP_WEIGHT * overlap
    )


def neighbours(candidates: Sequence[ConsolidationCandidate], most: int = 8) -> list[list[tuple[int, float]]]:
    """Return for each memory the most similar others of its place, the nearest first, as index and cosine."""
    found: list[list[tuple[int, float]]] = [[] for _ in candidates]
    groups: dict[tuple[str, str, str], list[int]] = defaultdict(list)
    for index, each in enumerate(candidates):
        groups[each.merge_group].append(index)
    for members in groups.values():
        if len(members) < 2:
            continue
        vectors = np.stack([candidates[index].vector for index in members])
        for start in range(0, len(members), SIMILARITY_BLOCK_ROWS):
            cosines = vectors[start : start + SIMILARITY_BLOCK_ROWS] @ vectors.T
            cosines[np.arange(len(cosines)), np.arange(start, start + len(cosines))] = -1.0
            kept = min(most, len(members) - 1)
            best = np.argpartition(-cosines, kept - 1, axis=1)[:, :kept]
            for row, columns in enumerate(best):
                near = [(members[column], float(cosines[row, column])) for column in columns]
                found[members[start + row]] = sorted(near, key=lambda each: -each[1])
    return found


def _order_with_neighbours(
    candidates: Sequence[ConsolidationCandidate],
    chosen: Sequence[int],
    nearest: Sequence[Sequence[tuple[int, float]]],
    scores: dict[int, float],
) -> list[int]:
    """Return the chosen memories place by place, each followed by what resembles it, new or of earlier nights."""
    groups: dict[tuple[str, str, str], list[int]] = defaultdict(list)
    for index in chosen:
        groups[candidates[index].merge_group].append(index)
    ordered: dict[int, None] = {}
    for members in sorted(groups.values(), key=lambda members: -max(scores[index] for index in members)):
        waiting = dict.fromkeys(members)
        while waiting:
            stack = [next(iter(waiting))]
            while stack:
                index = stack.pop()
                if index in ordered:
                    continue
                ordered[index] = None
                waiting.pop(index, None)
                alike = [
                    other
                    for other, cosine in nearest[index]
                    if cosine >= MIN_NEIGHBOUR_SIMILARITY and other not in ordered
                ]
                stack += [other for other in reversed(alike) if other in waiting]
                ordered |= dict.fromkeys(
                    [other for other in alike if not candidates[other].is_new][:MAX_OLDER_NEIGHBOURS]
                )
    return list(ordered)


def _compression_batches(
    candidates: Sequence[ConsolidationCandidate],
    nearest: Sequence[Sequence[tuple[int, float]]],
    old: set[int],
    batch_size: int,
    max_batches: int,
) -> tuple[list[Batch], list[str]]:
    """Return batches of `old` memories with those that resemble them, and those that resemble none.

    Each is considered once; one that was considered before comes along as the company of another.
    """
    ordered: dict[int, None] = {}
    isolated_ids = []
    for index in sorted(old, key=lambda each: candidates[each].created_at):
        if candidates[index].considered_for_compression:
            continue
        alike = [other for other, cosine in nearest[index] if other in old and cosine >= MIN_NEIGHBOUR_SIMILARITY]
        if alike:
            ordered |= dict.fromkeys([index, *alike])
        else:
            isolated_ids.append(candidates[index].memory_id)
    found = list(ordered)
    starts = range(0, len(found), batch_size)
    chunks = [found[start : start + batch_size] for start in starts][: max(0, max_batches)]
    return [Batch([candidates[index].memory_id for index in chunk], old=True) for chunk in chunks], isolated_ids


def _candidate(row: dict[str, Any]) -> ConsolidationCandidate:
    vector = np.asarray(row["vector"], dtype=np.float32)
    length = float(np.linalg.norm(vector))
    return ConsolidationCandidate(
        memory_id=row["memory_id"],
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


def _jaccard(one: frozenset[str], other: frozenset[str]) -> float:
    return len(one & other) / len(one | other) if one | other else 0.0
